"""A conversation as a page that stands alone: the transcript's own renderer, no script, no request.

Its own policy forbids both, should the renderer ever let something through. Long tool results are
cut as on the site; the record holds them whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from django.template.loader import render_to_string

from conversations.models import Conversation
from conversations.queries import transcripts
from conversations.queries.shapes import Turn


def page(conversation: Conversation, *, with_events: bool = False) -> Iterator[str]:
    """Give the document in pieces."""
    context: dict[str, object] = {"conversation": conversation}
    yield render_to_string("conversations/exports/head.html", context)
    numbers = conversation.turns.order_by("number").values_list("pk", flat=True)
    keys = list(numbers)
    for at in range(0, len(keys), transcripts.PAGE):
        rows = conversation.turns.filter(pk__in=keys[at : at + transcripts.PAGE])
        found = list(rows.order_by("number").select_related("draft"))
        for turn in transcripts.turns_of(conversation, found, None):
            shown = turn if with_events else _plain(turn)
            yield render_to_string("conversations/exports/turn.html", {"turn": shown})
    yield render_to_string("conversations/exports/foot.html", context)


def _plain(turn: Turn) -> Turn:
    return replace(turn, rounds=tuple(replace(row, markers=()) for row in turn.rounds))
