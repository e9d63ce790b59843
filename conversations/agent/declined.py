"""What a turn does when its model declines to answer: it continues once with a fallback model.

An administrator chooses the fallback model; without one the turn ends. Text written before the
refusal stays in the log for people and is removed from the request by a recorded transformation,
so that the fallback model answers the same messages and every request can be rebuilt. The fallback
model has its own job: window, prices and tools are those of that model, and reports and cached
prefixes of the first model do not apply to it.
"""

from __future__ import annotations

from dataclasses import replace

from conversations.agent.job import LoadedConversation
from conversations.context.translation import gettext_noop, mark_recorded
from conversations.context.view import edits
from conversations.context.view.edits import SpliceMessages, Transformation, Trigger
from conversations.context.view.view import View

_NOTE = mark_recorded(gettext_noop("Left out what %(model)s said before it declined"))


def build_declined_trim(view: View, seq: int, model: str) -> Transformation:
    """Build the change that removes message `seq`: the text written before the model declined."""
    note = _NOTE % {"model": model}
    return edits.build_transformation(
        view, "trim", Trigger(1, 0, "counted"), (SpliceMessages(seq, seq),), note
    )


def forget_reports(state: LoadedConversation) -> LoadedConversation:
    """Return the conversation without what is known of the calls of another model."""
    return replace(state, report=None, called_at=0.0)
