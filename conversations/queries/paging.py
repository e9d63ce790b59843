"""Pages of a transcript that need not end with its newest turn: around a message, and later."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from conversations.models import LIVE, Conversation, Message
from conversations.queries import transcripts
from conversations.queries.shapes import Transcript


def asked(conversation: Conversation, values: Mapping[str, Any]) -> Transcript | None:
    """Give the page that an address asks for; None when it asks for none, or for nothing."""
    pages: dict[str, Callable[[Conversation, int], Transcript | None]] = {
        "before": transcripts.transcript,
        "after": later,
        "m": around,
    }
    for name, page in pages.items():
        value = str(values.get(name, ""))
        if value.isdecimal() and len(value) < 10:
            return page(conversation, int(value))
    return None


def around(conversation: Conversation, seq: int) -> Transcript | None:
    """Give the page that holds a message; None when there is no such message."""
    found = Message.objects.filter(conversation=conversation, seq=seq)
    number = found.values_list("turn__number", flat=True).first()
    if number is None:
        return None
    ended = conversation.turns.exclude(state__in=LIVE).select_related("draft")
    last = ended.filter(number__gte=number).order_by("number").values_list("number", flat=True)
    upto = list(last[: transcripts.PAGE // 2])
    end = upto[-1] if upto else number
    page = list(ended.filter(number__lte=end).order_by("-number")[: transcripts.PAGE + 1])
    shown = page[: transcripts.PAGE][::-1]
    newest = ended.order_by("-number").values_list("number", flat=True).first() or 0
    return Transcript(
        tuple(transcripts.turns_of(conversation, shown, None)),
        shown[0].number if len(page) > transcripts.PAGE else None,
        later=end if end < newest else None,
        newest=newest,
    )


def later(conversation: Conversation, after: int) -> Transcript:
    """Give the page of ended turns behind one; running ones have a place of their own."""
    ended = conversation.turns.exclude(state__in=LIVE).select_related("draft")
    page = list(ended.filter(number__gt=after).order_by("number")[: transcripts.PAGE + 1])
    shown = page[: transcripts.PAGE]
    return Transcript(
        tuple(transcripts.turns_of(conversation, shown, None)),
        None,
        later=shown[-1].number if len(page) > transcripts.PAGE else None,
    )
