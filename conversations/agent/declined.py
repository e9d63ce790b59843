"""What a turn does when its model declines to answer: it goes on once with another one.

Which model that is an administrator says; without one the turn ends. What was said before the
refusal stays in the log for people and is left out of the request by a recorded transformation,
so that the other model answers the same messages and every request can be rebuilt. The other model
has a job of its own: window, prices and tools are those of that model, and nothing that was
reported or cached for the first one counts for it.
"""

from __future__ import annotations

from dataclasses import replace

from conversations.agent.job import LoadedConversation
from conversations.context.view import edits
from conversations.context.view.edits import SpliceMessages, Transformation, Trigger
from conversations.context.view.view import View


def build_declined_trim(view: View, seq: int, model: str) -> Transformation:
    """Build the change that removes message `seq`: what a model said before it declined."""
    note = f"Left out what {model} said before it declined"
    return edits.build_transformation(
        view, "trim", Trigger(1, 0, "counted"), (SpliceMessages(seq, seq),), note
    )


def forget_reports(state: LoadedConversation) -> LoadedConversation:
    """Return the conversation without what is known of the calls of another model."""
    return replace(state, report=None, called_at=0.0)
