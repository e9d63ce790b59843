"""A conversation as a self-contained HTML page, rendered like the transcript.

Of a conversation with versions only the shown path is written; the record has all. The page has no
script and makes no request; its own content security policy forbids both, should the renderer ever
let something through. Long tool results are cut as on the site; the record has them in full.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from django.template.loader import render_to_string

from conversations.files.attachment_display import build_data_urls
from conversations.log.tree import filter_path_turns
from conversations.models import Conversation
from conversations.transcript import transcript
from conversations.transcript.shapes import Turn


def write_page(conversation: Conversation, *, with_events: bool = False) -> Iterator[str]:
    """Yield the document in pieces."""
    context: dict[str, object] = {"conversation": conversation}
    yield render_to_string("conversations/exports/head.html", context)
    keys = list(filter_path_turns(conversation).order_by("number").values_list("pk", flat=True))
    for at in range(0, len(keys), transcript.PAGE):
        rows = conversation.turns.filter(pk__in=keys[at : at + transcript.PAGE])
        found = list(rows.order_by("number").select_related("draft"))
        for turn in transcript.build_turns(conversation, found, None):
            shown = _embed_files(conversation, turn if with_events else _strip_controls(turn))
            yield render_to_string("conversations/exports/turn.html", {"turn": shown})
    yield render_to_string("conversations/exports/foot.html", context)


def _embed_files(conversation: Conversation, turn: Turn) -> Turn:
    """Embed images in the page; other files are named."""
    ids = [file.id for file in turn.files if file.is_image and file.id]
    data = build_data_urls(conversation, ids)
    files = (replace(file, url=data.get(file.id, "")) if file.id else file for file in turn.files)
    return replace(turn, files=tuple(files))


def _strip_controls(turn: Turn) -> Turn:
    return replace(turn, rounds=tuple(replace(row, markers=()) for row in turn.rounds))
