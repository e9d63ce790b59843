"""Files of messages: what a page shows of them, and the texts that prompts name.

A name is good in its own conversation only: the text of a blob is given to a conversation that has
an attachment with it, so nothing that is written anywhere can reach another person's file.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet
from django.shortcuts import get_object_or_404
from django.urls import reverse

from conversations.context.tokens.images import TYPES as IMAGES
from conversations.context.tokens.media import TEXT
from conversations.context.view import attachment_refs, wire
from conversations.files.shapes import Attached, FilesPage
from conversations.log.named_texts import texts_named
from conversations.models import Attachment, Conversation, User
from conversations.models.cursor import Place, place_of

PAGE = 40


def files_of(conversation: Conversation, contents: Iterable[str]) -> dict[str, Attached]:
    """Give the files that prompts name, by digest; one query, none where no file is named."""
    digests = {
        one.digest for content in contents for one in attachment_refs.list_references(content)
    }
    if not digests:
        return {}
    rows = Attachment.objects.filter(conversation=conversation, data__in=digests)
    return {row.data_id: _shape(row) for row in rows.order_by("-pk")}


def shown_files(content: str, files: Mapping[str, Attached]) -> tuple[Attached, ...]:
    """Give the files of a prompt as a page shows them, those it names and those it holds."""
    found = (_shown(block, files) for block in wire.decode(content))
    return tuple(one for one in found if one is not None)


def _shown(block: dict[str, Any], files: Mapping[str, Attached]) -> Attached | None:
    if block.get("type") not in ("image", "document"):
        return None
    one = attachment_refs.find_reference(block)
    if one is not None and one.digest in files:
        return replace(files[one.digest], name=one.title or files[one.digest].name)
    return _held(block)


def _held(block: dict[str, Any]) -> Attached:
    """Show what was imported with its data in the message; it may lack anything."""
    source = block.get("source")
    source = source if isinstance(source, dict) else {}
    kind, data = str(source.get("media_type") or ""), source.get("data")
    name = str(block.get("title") or block["type"])
    if block["type"] != "image" or kind not in IMAGES or not isinstance(data, str):
        return Attached(name, kind, is_image=False)
    return Attached(name, kind, is_image=True, url=f"data:{kind};base64,{data}")


def spelled(conversation: Conversation, content: str) -> list[dict[str, Any]]:
    """Give a prompt's blocks for reading: the texts it names in them, other files as words."""
    blocks: list[dict[str, Any]] = wire.decode(content)
    names = attachment_refs.list_references(content)
    if not names:
        return blocks
    files = files_of(conversation, [content])
    digests = [one.digest for one in names if one.media_type == TEXT]
    texts = texts_named(conversation.pk, digests)
    return [_spelled(block, files, texts) for block in blocks]


def _spelled(
    block: dict[str, Any], files: Mapping[str, Attached], texts: Mapping[str, str]
) -> dict[str, Any]:
    one = attachment_refs.find_reference(block)
    if one is None or one.digest not in files:
        return block
    if one.digest in texts:
        return block | {"source": block["source"] | {"data": texts[one.digest]}}
    file = files[one.digest]
    facts = [block["type"], f'"{file.name}"', file.kind]
    facts += [f"{file.width} × {file.height}"] if file.width else []
    facts += [f"{file.pages} pages"] if file.pages else []
    return {"type": "text", "text": f"[{', '.join(facts)}]"}


def attachment_for(user: User, public_id: UUID) -> Attachment:
    """Give one of the user's files; any other is not found, nor one of a thrown-away chat."""
    rows = Attachment.objects.filter(_seen, owner=user)
    return get_object_or_404(rows, public_id=public_id)


def data_of(attachment: Attachment) -> bytes:
    text = attachment.data.text
    return text.encode() if attachment.media_type == TEXT else base64.b64decode(text)


def data_urls(conversation: Conversation, ids: Sequence[str]) -> dict[str, str]:
    """Give images by their ids as a page holds them that stands alone."""
    if not ids:
        return {}
    rows = Attachment.objects.filter(conversation=conversation, public_id__in=ids)
    found = rows.values_list("public_id", "media_type", "data__text")
    return {str(key): f"data:{kind};base64,{text}" for key, kind, text in found}


def unsent(user: User, ids: Sequence[UUID]) -> list[Attached]:
    """Give those of the files that the user has uploaded and not sent, in the order asked for."""
    rows = Attachment.objects.filter(owner=user, conversation=None, public_id__in=ids[:PAGE])
    found = {row.public_id: _shape(row) for row in rows}
    return [found[key] for key in dict.fromkeys(ids) if key in found]


def files(user: User, after: str = "") -> FilesPage:
    """Give a page of the user's files, the newest or those after a place; one query."""
    rows: QuerySet[Attachment] = Attachment.objects.filter(_seen, owner=user)
    if place := Place.read(after):
        older = Q(created_at__lt=place.at) | Q(created_at=place.at, id__lt=place.id)
        rows = rows.filter(older)
    rows = rows.select_related("conversation").order_by("-created_at", "-id")
    page = list(rows[: PAGE + 1])
    last = page[PAGE - 1] if len(page) > PAGE else None
    more = place_of(last.created_at, last.pk) if last else ""
    return FilesPage(tuple(map(_shape, page[:PAGE])), more)


_seen = Q(conversation=None) | Q(conversation__deleted_at=None)


def _shape(row: Attachment) -> Attached:
    chat = row.conversation if "conversation" in row._state.fields_cache else None
    return Attached(
        name=row.name,
        media_type=row.media_type,
        is_image=row.media_type in IMAGES,
        url=reverse("file", args=[row.public_id]),
        id=str(row.public_id),
        size=row.size,
        width=row.width,
        height=row.height,
        pages=row.pages,
        tokens=row.estimate,
        is_sent=row.conversation_id is not None,
        created_at=row.created_at,
        conversation=str(chat.public_id) if chat else "",
        conversation_title=chat.title if chat else "",
    )
