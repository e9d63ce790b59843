"""The texts of attachments that messages reference by digest."""

from __future__ import annotations

from collections.abc import Iterable

from django.db.models import Exists, OuterRef

from conversations.context.view import attachment_refs
from conversations.models import Attachment, Blob


def read_attachment_texts(conversation_id: int, digests: Iterable[str]) -> dict[str, str]:
    """Return the texts of a conversation's files by their digests; one query at most."""
    wanted = set(digests)
    if not wanted:
        return {}
    held = Attachment.objects.filter(conversation=conversation_id, data=OuterRef("pk"))
    rows = Blob.objects.filter(Exists(held), pk__in=wanted)
    return dict(rows.values_list("digest", "text"))


def expand_attachments(conversation_id: int, content: str) -> str:
    """Return the content of one prompt with its files inserted; raises MissingFile."""
    digests = [one.digest for one in attachment_refs.list_references(content)]
    return attachment_refs.expand_references(
        content, read_attachment_texts(conversation_id, digests)
    )
