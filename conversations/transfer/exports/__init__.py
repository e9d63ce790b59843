"""Exports of a conversation, yielded in pieces as they are read; nothing is held in memory.

Three formats: a record, which an import reads back; Markdown, for other programs and for reading as
text; a self-contained HTML page. Context events (what was reduced, and how) are included on
request. The trash is not exported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from django.utils.text import slugify

from conversations.library.access import list_owned
from conversations.models import Conversation, User
from conversations.transfer.exports.markdown import write_markdown
from conversations.transfer.exports.page import write_page
from conversations.transfer.exports.record import write_record

__all__ = ["EXPORT_FORMATS", "ExportFormat", "list_exported", "name_file", "write_record"]


@dataclass(frozen=True, slots=True)
class ExportFormat:
    content_type: str
    write: Callable[..., Iterator[str]]


EXPORT_FORMATS = {
    "md": ExportFormat("text/markdown; charset=utf-8", write_markdown),
    "html": ExportFormat("text/html; charset=utf-8", write_page),
    "json": ExportFormat("application/json; charset=utf-8", write_record),
}


def list_exported(user: User) -> Iterator[Conversation]:
    """Yield the user's conversations, oldest first."""
    keys = list(list_owned(user).order_by("created_at", "pk").values_list("pk", flat=True))
    for key in keys:
        found = list_owned(user).filter(pk=key).first()
        if found is not None:
            yield found


def name_file(conversation: Conversation, form: str) -> str:
    """Return a file name made from the title; the id keeps equal titles apart."""
    words = slugify(conversation.title, allow_unicode=True)[:60].strip("-_") or "conversation"
    return f"{words}-{str(conversation.public_id)[:8]}.{form}"
