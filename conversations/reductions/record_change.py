"""Recording manual changes: under the conversation's lock, while no turn is running.

A running turn works on the view it has read, so another change would make the sent request differ
from the record. So manual changes are refused while a turn is live. A change is compared with its
preview by the digest of the `messages` array. One that needs damaged content is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.utils.translation import gettext as _

from conversations.context.errors import ContextError, WireError
from conversations.context.policy.policy import Policy
from conversations.context.view import wire
from conversations.context.view.edits import Transformation as Change
from conversations.log.append import append_change
from conversations.models import IS_LIVE, Conversation, Transformation
from conversations.reductions.policy import effective_policy
from conversations.rendering.refusal import RefusalError
from conversations.signals import collect_vetoes
from conversations.templatetags.recorded import translated


class ManualChangeError(RefusalError):
    """The change is refused; `text` is the reason for the person, `code` selects the status."""


@contextmanager
def refusing_damage() -> Iterator[None]:
    """Raise ManualChangeError where content cannot be read; also a decorator."""
    try:
        yield
    except WireError as error:
        words = _(
            "This needs a part of the chat that is damaged in the database, so it cannot be done."
            " You can still send messages."
        )
        raise ManualChangeError("damaged", words) from error


def demand_idle(conversation: Conversation) -> None:
    """Raise ManualChangeError while an answer is running; the conversation is locked."""
    if conversation.turns.filter(IS_LIVE).exists():
        raise ManualChangeError("busy", _("An answer is on its way; try again when it is done."))


def demand_same_body(change: Change, digest: str) -> None:
    """Raise ManualChangeError unless the change makes the body that was previewed."""
    if wire.digest(change.view_after.body) != digest:
        raise ManualChangeError("moved", _("The chat went on; here is the new preview."))


def demand_policy(conversation: Conversation) -> Policy:
    """Return the policy in force; raises ManualChangeError when it is invalid."""
    try:
        return effective_policy(conversation)
    except ContextError as error:
        raise ManualChangeError("policy", translated(str(error))) from error


def record_change(
    conversation: Conversation,
    change: Change,
    actor_id: int,
    *,
    parent: int | None = None,
    summary_call: int | None = None,
) -> Transformation:
    """Append a person's change to the last turn of the shown path."""
    demand_idle(conversation)
    veto = collect_vetoes(conversation.pk, change) if change.outcome == "applied" else ""
    if veto:
        raise ManualChangeError("vetoed", _("This site does not allow it: %(why)s") % {"why": veto})
    turns = conversation.turns.filter(number=conversation.leaf)
    return append_change(
        conversation=conversation,
        turn_id=turns.values_list("pk", flat=True).first(),
        change=change,
        policy=demand_policy(conversation),
        parent=parent,
        summary_call=summary_call,
        actor_id=actor_id,
    )
