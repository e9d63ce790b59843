"""The texts of files that messages name, as they were stored."""

from __future__ import annotations

from collections.abc import Iterable

from django.db.models import Exists, OuterRef

from conversations.context.view import attachment_refs
from conversations.models import Attachment, Blob


def texts_named(conversation_id: int, digests: Iterable[str]) -> dict[str, str]:
    """Give the texts of a conversation's files by their digests; one query, none for none."""
    wanted = set(digests)
    if not wanted:
        return {}
    held = Attachment.objects.filter(conversation=conversation_id, data=OuterRef("pk"))
    rows = Blob.objects.filter(Exists(held), pk__in=wanted)
    return dict(rows.values_list("digest", "text"))


def whole(conversation_id: int, content: str) -> str:
    """Give the content of one prompt with its files in it; raises MissingFile."""
    digests = [one.digest for one in attachment_refs.list_references(content)]
    return attachment_refs.expand_references(content, texts_named(conversation_id, digests))
