"""Turns whose worker died: they go on where that repeats nothing, else they are closed.

Behind the answer with tool calls everything a turn has done is stored, so another worker goes on
from there, and asks the API again if it was asked but nothing of its answer was shown. One that
died while it showed an answer ends with it: what was shown stays, and asking again is the person's
choice; so does one that had done nothing yet. A turn whose workers keep dying is what they die of;
it is given up.
"""

from __future__ import annotations

from django.db import transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from conversations.models import ALLOWED, ApiCall, Draft, Message, ToolCall, Turn
from conversations.services.counted import count_takeover, count_turn
from conversations.services.drafts import drop_draft
from conversations.services.leases import GIVEN_BACK, give_back
from conversations.services.leftovers import close_lost_calls, tidy

_INTERRUPTIBLE = tuple(state for state, after in ALLOWED.items() if "interrupted" in after)
#: Workers that may die of one turn before it is given up.
MOST_TAKEOVERS = 3
INTERRUPTED = "The server stopped during this answer."
POISON = "The server stopped each time it worked on this turn, so it was given up."


def expired_turns(*, everything: bool = False) -> list[int]:
    """Name the turns whose worker is gone; `everything`: no worker can be left at all."""
    return list(_expired(everything=everything).values_list("pk", flat=True))


def _expired(*, everything: bool) -> QuerySet[Turn]:
    # By the database's clock, as the leases are: those of the processes may differ.
    turns = Turn.objects.filter(state__in=_INTERRUPTIBLE).exclude(lease_until=None)
    return turns if everything else turns.filter(lease_until__lt=Now())


def claimable_turns() -> list[int]:
    """Name the turns that wait for a worker, oldest first."""
    rows = Turn.objects.filter(Q(state="queued") | GIVEN_BACK)
    return list(rows.order_by("pk").values_list("pk", flat=True))


@transaction.atomic
def take_over(*, turn_id: int, everything: bool = False) -> Turn | None:
    """Take a turn from a worker that died, to be claimed again or closed; None when it has one."""
    # Not its key: who holds the conversation may be writing a row that names this turn.
    rows = _expired(everything=everything).select_for_update(no_key=True)
    turn = rows.filter(pk=turn_id).first()
    if turn is None:
        return None
    turn.takeovers += 1
    if not _can_go_on(turn):
        _close(turn, "interrupted", "crash", "interrupted", INTERRUPTED)
    elif turn.takeovers > MOST_TAKEOVERS:
        _close(turn, "failed", "poison", "poison", POISON)
    else:
        close_lost_calls(turn)
        drop_draft(turn.pk)
        state = "running" if turn.state == "backoff" else turn.state
        give_back(turn, state=state, retry_at=None)
    count_takeover(state=turn.state)
    return turn


def _can_go_on(turn: Turn) -> bool:
    """Say whether it stands behind an answer with tool calls, and nothing more was shown."""
    calls = ApiCall.objects.filter(turn=turn, result=None)
    if turn.state == "cancelling" or Draft.objects.filter(call__in=calls).exists():
        return False
    last = Message.objects.filter(turn=turn).order_by("-seq").first()
    if last is None:
        return False
    return last.kind == "results" or ToolCall.objects.filter(answer=last).exists()


def _close(turn: Turn, state: str, reason: str, code: str, text: str) -> None:
    """Keep the draft, answer open tool calls, mark lost calls."""
    turn.lease_generation += 1
    tidy(turn)
    turn.state, turn.finish_reason, turn.retry_at = state, reason, None
    turn.error_code, turn.error_text = code, text
    turn.ended_at = timezone.now()
    turn.save()
    count_turn(state=state, reason=reason)
