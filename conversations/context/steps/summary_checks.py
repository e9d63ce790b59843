"""Decide by rules, not by a model, whether the text of a summary call may replace messages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from conversations.context.steps.protocol import SummaryReply
from conversations.context.translation import gettext_noop, mark_recorded

#: Beginnings of a text that is an apology or an error instead of a summary.
_NO_SUMMARY = re.compile(
    r"""\s*(?:(?:i'm|i\ am)\ (?:sorry|unable)|sorry\b|i\ (?:can't|cannot|won't)\b
    |(?:api\ |internal\ |server\ )?error\b\s*[:\d(]|\{\s*"(?:type|error)"\s*:)""",
    re.IGNORECASE | re.VERBOSE,
)
#: A refusal or an error is shorter than this; a longer text with the same beginning is accepted.
_LONG_ENOUGH = 400
ENDED = mark_recorded(gettext_noop("it ended with %(reason)s"))
_EMPTY = mark_recorded(gettext_noop("it was empty"))
_APOLOGY = mark_recorded(gettext_noop("it was a refusal or an error, not a summary"))
_MISSING = mark_recorded(gettext_noop("it left out names that later messages refer to"))


@dataclass(frozen=True, slots=True)
class SummaryFlaw:
    """Why a summary is rejected, and the required names it lacks."""

    reason: str
    missing: tuple[str, ...] = ()


def check_summary(reply: SummaryReply, keep: Sequence[str], block: str) -> SummaryFlaw | None:
    """Return why a reply that would become the block `block` is rejected; None if accepted."""
    text = reply.text.strip().replace("’", "'")
    if reply.stop_reason != "end_turn":
        return SummaryFlaw(ENDED % {"reason": reply.stop_reason or "no stop reason"})
    if not text:
        return SummaryFlaw(_EMPTY)
    if len(text) < _LONG_ENOUGH and _NO_SUMMARY.match(text):
        return SummaryFlaw(_APOLOGY)
    missing = tuple(name for name in keep if name not in block)
    if missing:
        return SummaryFlaw(_MISSING, missing)
    return None
