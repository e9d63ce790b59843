"""The bytes of attached files, as they were uploaded."""

from __future__ import annotations

import base64

from conversations.context.tokens.media import TEXT
from conversations.models import Attachment


def decode_data(attachment: Attachment) -> bytes:
    if attachment.original is not None:
        return base64.b64decode(attachment.original.text)
    text = attachment.data.text
    return text.encode() if attachment.media_type == TEXT else base64.b64decode(text)
