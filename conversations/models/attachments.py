"""Attachments: files that a person attached to a message.

The bytes are stored once, as base64 in a Blob, however often a file is sent. A prompt references
the blob where the request will have the data, so the log stays small and pages never load them.
Of an Office file, a mail, a page or a long text the request has the text; the file stays beside it.
"""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db import models

from conversations.models.log import Blob, Conversation


class Attachment(models.Model):
    """An uploaded file; without a conversation it has not been sent yet."""

    public_id = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="attachments"
    )
    conversation = models.ForeignKey(
        Conversation, null=True, on_delete=models.PROTECT, related_name="attachments"
    )
    name = models.CharField(max_length=255)
    media_type = models.CharField(max_length=60)
    size = models.PositiveBigIntegerField()
    #: Pixels of an image, pages of a PDF; None where it is neither.
    width = models.PositiveIntegerField(null=True)
    height = models.PositiveIntegerField(null=True)
    pages = models.PositiveIntegerField(null=True)
    #: The ending of a file of which the text is sent, such as docx; its uploaded bytes as base64;
    #: and the characters of the whole text where only a part of it is sent.
    ending = models.CharField(max_length=10, default="")
    original = models.ForeignKey(Blob, null=True, on_delete=models.PROTECT, related_name="+")
    characters = models.PositiveIntegerField(null=True)
    #: Estimated tokens as a content block.
    estimate = models.PositiveIntegerField()
    #: Base64 of the bytes; of a text file the text itself, of a document what is sent of its text.
    data = models.ForeignKey(Blob, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        indexes = [
            models.Index(fields=["owner", "-created_at"]),
            models.Index(
                fields=["created_at"],
                condition=models.Q(conversation=None),
                name="attachment_unsent",
            ),
        ]

    def __str__(self) -> str:
        return f"attachment {self.public_id}"
