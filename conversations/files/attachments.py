"""Attachments: files are uploaded, sent with a message, removed again.

An uploaded file belongs to its owner and waits for a message; sending assigns it to the
conversation, in the transaction of the prompt that references it. A file that is never sent is
removed after a day. The files on a path are limited to what one request may carry, so that files
alone never cause a request that the API refuses.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from itertools import chain
from typing import Any
from uuid import UUID

from django.core.files.uploadedfile import UploadedFile
from django.db import transaction
from django.db.models import Case, F, Q, QuerySet, Sum, When
from django.db.models.functions import Length
from django.utils import timezone
from django.utils.translation import gettext as _

from conversations.conf import conf
from conversations.context.tokens import media
from conversations.context.tokens.images import TYPES as IMAGES
from conversations.context.tokens.media import MediaError
from conversations.context.view import attachment_refs, wire
from conversations.context.view.view import Message as ViewMessage
from conversations.db import transact
from conversations.files.attachment_display import list_referenced_digests, list_references
from conversations.files.document_uploads import Upload, read_upload
from conversations.files.file_texts import clean_display_name, explain_media_error, explain_refusal
from conversations.files.workspace.write import find_free_path
from conversations.log.attachment_texts import expand_attachments
from conversations.log.erase_functions import erase_texts
from conversations.log.findings import read_decodable
from conversations.log.legal_holds import is_owner_held
from conversations.log.texts import lock_texts_exclusively, store_blob
from conversations.log.tree import build_path_condition
from conversations.models import ApiModel, Attachment, Conversation, User
from conversations.rendering.numbers import write_number
from conversations.rendering.refusal import RefusalError
from tools.framework.errors import PathRefusedError, ToolError

#: How long an uploaded file waits for its message.
UNSENT_FOR = timedelta(days=1)
#: Media type, size as it is sent, width, height and pages of a file.
_Facts = tuple[str, int, int | None, int | None, int | None]
#: Files that one sweep removes.
MOST_SWEPT = 500


class AttachmentError(RefusalError):
    """A file was refused; the text is for its owner."""


def store_attachment(*, owner_id: int, name: str, data: bytes) -> Attachment:
    """Read and store an uploaded file until it is sent; raises AttachmentError."""
    try:
        found = read_upload(data, clean_display_name(name, ""), person=str(owner_id))
    except MediaError as error:
        raise AttachmentError(error.code, explain_media_error(error)) from error
    except ToolError as error:
        raise AttachmentError("unread", explain_refusal(error)) from error
    return _store_waiting(owner_id, name, data, found)


@transact
def _store_waiting(owner_id: int, name: str, data: bytes, found: Upload) -> Attachment:
    User.objects.select_for_update(no_key=True).only("pk").get(pk=owner_id)
    _demand_waiting_room(owner_id, len(data))
    return _create_attachment(
        owner_id, None, clean_display_name(name, found.media.media_type), data, found
    )


def store_uploads(*, owner_id: int, files: Iterable[UploadedFile[Any]]) -> list[UUID]:
    """Store the files of a submitted form; raises AttachmentError."""
    return [
        store_attachment(
            owner_id=owner_id, name=file.name or "", data=file.read(media.MOST_BYTES + 1)
        ).public_id
        for file in files
    ]


def _demand_waiting_room(owner_id: int, size: int) -> None:
    waiting = Attachment.objects.filter(owner_id=owner_id, conversation=None)
    count, held = waiting.count(), waiting.aggregate(sum=Sum("size"))["sum"] or 0
    if count >= conf.max_unsent_files or held + size > conf.max_unsent_bytes:
        words = _(
            "%(count)s files with %(held)s MB are waiting to be sent; at most %(most)s with"
            " %(most_held)s MB may wait. Send or remove some of them, here or on the page of your"
            " files."
        )
        numbers = {
            "count": count,
            "held": round(held / 1_000_000),
            "most": conf.max_unsent_files,
            "most_held": conf.max_unsent_bytes // 1_000_000,
        }
        raise AttachmentError("full", words % _write_each(numbers))


def _write_each(numbers: dict[str, int]) -> dict[str, str]:
    return {name: write_number(number) for name, number in numbers.items()}


def _create_attachment(
    owner_id: int, conversation: Conversation | None, name: str, data: bytes, upload: Upload
) -> Attachment:
    found = upload.media
    original = base64.b64encode(data).decode() if upload.ending else ""
    text = found.text or base64.b64encode(data).decode()
    digest = store_blob(text)
    content = wire.join([attachment_refs.write_block(found.media_type, digest, name)])
    sent = attachment_refs.expand_references(content, {digest: text})
    if attachment_refs.list_references(sent):
        raise AttachmentError(
            "type", _("This text is the name of a file here, and no file itself.")
        )
    return Attachment.objects.create(
        owner_id=owner_id,
        conversation=conversation,
        name=name,
        media_type=found.media_type,
        size=len(data),
        width=found.width,
        height=found.height,
        pages=found.pages,
        ending=upload.ending,
        original_id=store_blob(original) if original else None,
        characters=upload.characters,
        estimate=ViewMessage.parse(0, "prompt", sent).blocks[0].tokens,
        data_id=digest,
    )


def lock_files(*, conversation: Conversation, ids: Sequence[UUID]) -> list[Attachment]:
    """Lock the files of a message to a conversation and return them; raises AttachmentError.

    It accepts waiting files, and for a repeated send those of the conversation. It runs in the
    transaction of the prompt, under the owner's lock. A file that is being removed is not waited
    for.
    """
    if len(ids) > conf.max_attachments:
        words = _("A message takes at most %(most)s files; remove some.")
        raise AttachmentError("too_many", words % {"most": write_number(conf.max_attachments)})
    there = Q(conversation=None) | Q(conversation=conversation)
    rows = Attachment.objects.filter(there, owner_id=conversation.owner_id, public_id__in=ids)
    found = {row.public_id: row for row in rows.select_for_update(skip_locked=True, no_key=True)}
    if any(key not in found for key in ids):
        raise AttachmentError(
            "gone", _("A file of this message is not there any more; attach it again.")
        )
    files = [found[key] for key in dict.fromkeys(ids)]
    _number_names(conversation, files)
    return files


def _number_names(conversation: Conversation, files: Iterable[Attachment]) -> None:
    """Number the names of new files that others of the conversation have: tools read by name."""
    rows = Attachment.objects.filter(conversation=conversation)
    taken = dict(rows.values_list("name", "data"))
    for row in files:
        is_read = row.conversation_id is None and row.media_type not in IMAGES
        if is_read and taken.get(row.name, row.data_id) != row.data_id:
            with suppress(PathRefusedError):  # what is no path cannot be read by its name
                row.name = find_free_path(taken, row.name)
                row.save(update_fields=["name"])
        taken[row.name] = row.data_id


def write_blocks(files: Iterable[Attachment]) -> list[str]:
    """Return the content blocks that refer to files."""
    return [attachment_refs.write_block(row.media_type, row.data_id, row.name) for row in files]


def attach_files(*, conversation: Conversation, files: Sequence[Attachment]) -> None:
    """Assign the locked files of a new message to its conversation; raises AttachmentError.

    The message follows the shown path and what waits in the queue.
    """
    keys = [row.pk for row in files]
    Attachment.objects.filter(pk__in=keys, conversation=None).update(conversation=conversation)
    _demand_request_room(conversation, wire.join(write_blocks(files)))


def detach_files(*, conversation: Conversation, content: str) -> None:
    """Return the files of an unsent message to waiting, except those of other messages.

    They wait from now on, however long ago they were uploaded.
    """
    for digest in list_referenced_digests(content):
        sent = conversation.messages.filter(kind="prompt", content__contains=digest)
        queued = conversation.queued_prompts.filter(content__contains=digest)
        if not sent.exists() and not queued.exists():
            files = conversation.attachments.filter(data=digest)
            files.update(conversation=None, created_at=timezone.now())


def find_first_name(*, owner_id: int, ids: Sequence[UUID]) -> str:
    """Return the name of the first file; "" when it is missing."""
    rows = Attachment.objects.filter(owner_id=owner_id, public_id__in=ids[:1])
    return rows.values_list("name", flat=True).first() or ""


def _list_carried(conversation: Conversation, content: str) -> list[_Facts]:
    """Return the facts of each file that a request with this new prompt carries.

    A file counts as often as the shown path and the queue refer to it: so often it is sent.
    """
    path = build_path_condition("turn", conversation)
    hint = {"content__contains": attachment_refs.HINT}
    prompts = conversation.messages.filter(path, kind="prompt", **hint)
    queue = conversation.queued_prompts.filter(**hint)
    contents: list[list[str]] = [
        read_decodable(partial(list, rows.values_list("content", flat=True)))
        for rows in (prompts, queue)
    ]
    # Of a file whose text is sent, the text counts.
    sent = Case(When(original=None, then=F("size")), default=Length("data__text"))
    rows = Attachment.objects.filter(conversation=conversation).values_list(
        "data", "media_type", sent, "width", "height", "pages"
    )
    facts = {(row[0], row[1]): row[1:] for row in rows}
    found = (list_references(text) for text in chain(*contents, [content]))
    keys = [(one.digest, one.media_type) for one in chain.from_iterable(found)]
    return [facts[key] for key in keys if key in facts]


def _demand_request_room(conversation: Conversation, content: str) -> None:
    """Raise AttachmentError where a request with this prompt has more files than it takes.

    Only files of people count: images of tools make room for them
    (`context/steps/image_limits.py`).
    """
    facts = _list_carried(conversation, content)
    carried = sum(size * 4 // 3 if kind != media.TEXT else size for kind, size, *_ in facts)
    if carried > media.MOST_CARRIED:
        words = _(
            "With these this chat would carry %(size)s MB of files in every request; at most"
            " %(most)s MB fit. Start a new chat for them."
        )
        numbers = {
            "size": round(carried / 1_000_000),
            "most": media.MOST_CARRIED // 1_000_000,
        }
        raise AttachmentError("carried", words % _write_each(numbers))
    sides = [
        max(wide or 0, high or 0) for kind, _size, wide, high, _pages in facts if kind in IMAGES
    ]
    if len(sides) > media.FEW_IMAGES and max(sides) > media.MOST_SIDE_OF_MANY:
        words = _(
            "A chat with more than %(few)s images takes none with a side of more than %(most)s"
            " pixels, and one here has %(side)s. Scale it down, or start a new chat."
        )
        numbers = {
            "few": media.FEW_IMAGES,
            "most": media.MOST_SIDE_OF_MANY,
            "side": max(sides),
        }
        raise AttachmentError("many_images", words % _write_each(numbers))
    _demand_pages(conversation, len(sides), sum(count or 0 for *__, count in facts))


def _demand_pages(conversation: Conversation, images: int, pages: int) -> None:
    window = ApiModel.objects.filter(pk=conversation.model).values_list("window", flat=True).first()
    most = media.find_most_media(window or 0)
    if max(pages, images) > most:
        words = _(
            "This chat would have %(images)s images and %(pages)s pages of PDF; %(model)s takes at"
            " most %(most)s of each in a request."
        )
        numbers = {"images": images, "pages": pages, "most": most}
        raise AttachmentError(
            "pages", words % (_write_each(numbers) | {"model": conversation.model})
        )


def estimate_prompt_tokens(*, conversation_id: int, content: str) -> int:
    """Estimate the tokens of a prompt as it is sent, its files included."""
    return ViewMessage.parse(0, "prompt", expand_attachments(conversation_id, content)).tokens


def store_imported_files(*, conversation: Conversation, content: str) -> str:
    """Store the files of an imported prompt once, and return its content with references."""
    kept: set[str] = set()
    for media_type, title, text in attachment_refs.list_sources(content):
        try:
            data = (
                text.encode() if media_type == media.TEXT else base64.b64decode(text, validate=True)
            )
            found = media.identify_media(data)
        except (MediaError, ValueError):
            continue
        is_same = found.media_type == media_type
        if is_same and (found.text or base64.b64encode(data).decode()) == text:
            digest = wire.digest(text)
            if not conversation.attachments.filter(data=digest).exists():
                name = clean_display_name(title, media_type)
                _create_attachment(conversation.owner_id, conversation, name, data, Upload(found))
            kept.add(digest)
    return attachment_refs.collapse_files(content, kept.__contains__)


def drop_attachment(*, attachment: Attachment) -> bool:
    """Remove an unsent file; a sent one is part of its conversation, a held one stays."""
    return _drop_waiting(Attachment.objects.filter(pk=attachment.pk)) > 0


def drop_unsent(*, owner_id: int, ids: Sequence[UUID] | None = None) -> int:
    """Remove the files of a user that were not sent, all or some; return how many."""
    rows = Attachment.objects.filter(owner_id=owner_id)
    return _drop_waiting(rows if ids is None else rows.filter(public_id__in=ids))


def sweep_unsent(*, now: datetime | None = None) -> int:
    """Remove the files that have waited too long; return how many."""
    before = (now or timezone.now()) - UNSENT_FOR
    rows = Attachment.objects.filter(~is_owner_held(), conversation=None, created_at__lt=before)
    keys = list(rows.order_by("created_at").values_list("pk", flat=True)[:MOST_SWEPT])
    return _drop_waiting(Attachment.objects.filter(pk__in=keys)) if keys else 0


def _drop_waiting(rows: QuerySet[Attachment]) -> int:
    with transaction.atomic():
        owners = User.objects.select_for_update(no_key=True).filter(pk__in=rows.values("owner"))
        list(owners.order_by("pk").only("pk"))
        # A file that is being sent is locked, so it is skipped.
        waiting = rows.filter(~is_owner_held(), conversation=None)
        waiting = waiting.select_for_update(skip_locked=True)
        facts = {key: texts for key, *texts in waiting.values_list("pk", "data_id", "original_id")}
        lock_texts_exclusively()
        Attachment.objects.filter(pk__in=facts).delete()
        erase_texts(digests={digest for texts in facts.values() for digest in texts if digest})
        return len(facts)
