"""Attachments for display: their values on a page, and the texts that prompts reference.

A reference is valid only in its own conversation: the text of a blob is returned only for a
conversation that has an attachment of it, so no written text can give access to another person's
file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet
from django.shortcuts import get_object_or_404
from django.urls import reverse

from conversations.context.errors import WireError
from conversations.context.tokens.images import TYPES as IMAGES
from conversations.context.tokens.media import TEXT
from conversations.context.view import attachment_refs
from conversations.context.view.stored_blocks import read_blocks
from conversations.files.attached_bytes import decode_data
from conversations.log.attachment_texts import read_attachment_texts
from conversations.models import Attachment, Conversation, User
from conversations.models.cursor import Cursor, format_cursor

PAGE = 40
_VISIBLE = Q(conversation=None) | Q(conversation__deleted_at=None)
#: The largest box of an image in a transcript, in pixels.
MOST_WIDTH, MOST_HEIGHT = 352, 288


@dataclass(frozen=True, slots=True)
class Attached:
    """A file of a message. `url` is the address of its bytes; "" where it cannot be shown.

    An imported image in a format that is not stored as a file has a data URL and no `id`.
    """

    name: str
    media_type: str
    is_image: bool
    url: str = ""
    id: str = ""
    size: int = 0
    width: int | None = None
    height: int | None = None
    pages: int | None = None
    tokens: int = 0
    #: The ending of a file whose text is sent, and the characters of it where not all are sent.
    ending: str = ""
    characters: int | None = None
    #: The page that shows what is sent of a text.
    text_url: str = ""
    is_sent: bool = True
    created_at: datetime | None = None
    #: The conversation it was sent in, for a list of files.
    conversation: str = ""
    conversation_title: str = ""

    @property
    def box(self) -> tuple[int, int] | None:
        """The size an image is shown in, known before it is loaded."""
        if not (self.width and self.height):
            return None
        scale = min(1, MOST_WIDTH / self.width, MOST_HEIGHT / self.height)
        return max(1, round(self.width * scale)), max(1, round(self.height * scale))

    @property
    def kind(self) -> str:
        """The type, for people."""
        found = self.ending or self.media_type.rpartition("/")[2].replace("plain", "text")
        return found.upper()


@dataclass(frozen=True, slots=True)
class FilesPage:
    """A page of files; `after` is the cursor of the last row when there are more."""

    rows: tuple[Attached, ...] = ()
    after: str = ""


def map_named_files(conversation: Conversation, contents: Iterable[str]) -> dict[str, Attached]:
    """Return the files that prompts reference, by digest; one query, or none."""
    digests = {digest for content in contents for digest in list_referenced_digests(content)}
    if not digests:
        return {}
    rows = Attachment.objects.filter(conversation=conversation, data__in=digests)
    return {row.data_id: _show_row(row) for row in rows.order_by("-pk")}


def list_referenced_digests(content: str) -> set[str]:
    """Return the digests of the files that a prompt references."""
    return {one.digest for one in list_references(content)}


def list_references(content: str) -> tuple[attachment_refs.FileReference, ...]:
    """Return the files that a prompt references; none where its content cannot be parsed."""
    try:
        return attachment_refs.list_references(content)
    except WireError:
        return ()


def list_shown_files(content: str, files: Mapping[str, Attached]) -> tuple[Attached, ...]:
    """Return the files of a prompt for a page: those it references and those it embeds."""
    found = (_show_block(block, files) for block in read_blocks(content))
    return tuple(one for one in found if one is not None)


def _show_block(block: dict[str, Any], files: Mapping[str, Attached]) -> Attached | None:
    if block.get("type") not in ("image", "document"):
        return None
    one = attachment_refs.find_reference(block)
    if one is not None and one.digest in files:
        return replace(files[one.digest], name=one.title or files[one.digest].name)
    return _show_embedded(block)


def _show_embedded(block: dict[str, Any]) -> Attached:
    """Show a file that was imported with its data in the message; any field may be missing."""
    source = block.get("source")
    source = source if isinstance(source, dict) else {}
    kind, data = str(source.get("media_type") or ""), source.get("data")
    name = str(block.get("title") or block["type"])
    if block["type"] != "image" or kind not in IMAGES or not isinstance(data, str):
        return Attached(name, kind, is_image=False)
    return Attached(name, kind, is_image=True, url=f"data:{kind};base64,{data}")


def expand_for_reading(conversation: Conversation, content: str) -> list[dict[str, Any]]:
    """Return a prompt's blocks with referenced texts inserted and other files described."""
    blocks: list[dict[str, Any]] = read_blocks(content)
    names = list_references(content)
    if not names:
        return blocks
    files = map_named_files(conversation, [content])
    digests = [one.digest for one in names if one.media_type == TEXT]
    texts = read_attachment_texts(conversation.pk, digests)
    return [_expand_block(block, files, texts) for block in blocks]


def _expand_block(
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


def load_owned_attachment(user: User, public_id: UUID) -> Attachment:
    """Return one of the user's files; raises Http404 for others and for chats in the trash."""
    rows = Attachment.objects.filter(_VISIBLE, owner=user)
    return get_object_or_404(rows, public_id=public_id)


def list_file_names(user: User) -> list[tuple[UUID, str]]:
    """Return the ids and names of all the user's files, in the order they were uploaded."""
    rows = Attachment.objects.filter(_VISIBLE, owner=user).order_by("pk")
    return list(rows.values_list("public_id", "name"))


def read_owned_bytes(user: User, public_id: UUID) -> bytes:
    """Return one of the user's files as it was uploaded; raises Http404 as for its row."""
    return decode_data(load_owned_attachment(user, public_id))


def load_sent_text(user: User, public_id: UUID) -> tuple[Attached, str]:
    """Return one of the user's files of which a text is sent, and the text; raises Http404."""
    rows = Attachment.objects.filter(_VISIBLE, owner=user, media_type=TEXT)
    rows = rows.select_related("data", "conversation")
    row = get_object_or_404(rows, public_id=public_id)
    return _show_row(row), row.data.text


def build_data_urls(conversation: Conversation, ids: Sequence[str]) -> dict[str, str]:
    """Return images by their ids as data URLs, for a self-contained page."""
    if not ids:
        return {}
    rows = Attachment.objects.filter(conversation=conversation, public_id__in=ids)
    found = rows.values_list("public_id", "media_type", "data__text")
    return {str(key): f"data:{kind};base64,{text}" for key, kind, text in found}


def list_unsent(user: User, ids: Sequence[UUID]) -> list[Attached]:
    """Return those of the files that the user has uploaded and not sent, in the given order."""
    rows = Attachment.objects.filter(owner=user, conversation=None, public_id__in=ids[:PAGE])
    found = {row.public_id: _show_row(row) for row in rows}
    return [found[key] for key in dict.fromkeys(ids) if key in found]


def list_files(user: User, after: str = "") -> FilesPage:
    """Return a page of the user's files, the newest or those after a cursor; one query."""
    rows: QuerySet[Attachment] = Attachment.objects.filter(_VISIBLE, owner=user)
    if place := Cursor.read(after):
        older = Q(created_at__lt=place.at) | Q(created_at=place.at, id__lt=place.id)
        rows = rows.filter(older)
    rows = rows.select_related("conversation").order_by("-created_at", "-id")
    page = list(rows[: PAGE + 1])
    last = page[PAGE - 1] if len(page) > PAGE else None
    more = format_cursor(last.created_at, last.pk) if last else ""
    return FilesPage(tuple(map(_show_row, page[:PAGE])), more)


def _show_row(row: Attachment) -> Attached:
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
        ending=row.ending,
        characters=row.characters,
        text_url=reverse("file_text", args=[row.public_id]) if row.media_type == TEXT else "",
        is_sent=row.conversation_id is not None,
        created_at=row.created_at,
        conversation=str(chat.public_id) if chat else "",
        conversation_title=chat.title if chat else "",
    )
