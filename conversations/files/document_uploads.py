"""An uploaded file as a message takes it: as the API takes its bytes, or else as its text.

Images, PDF files and texts of UTF-8 are sent as they are. Of Office files, mails, pages of HTML,
texts in other charsets and long ones the text is read in a process with limits; where it is long,
the model gets the beginning of each part, and reads on with its tools (workspace/attached.py).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from conversations.context.tokens import images, media, pdf
from conversations.context.tokens.media import Media, MediaError
from conversations.context.view import wire
from conversations.files.workspace.attached import FOLDER
from tools.documents import detect_kind, extract_attached
from tools.framework.errors import FileRefusedError

#: Most characters that are sent of a text that was read from a file.
MOST_SENT = 200_000
_ENDING = re.compile(r"\.([A-Za-z0-9]{1,10})$")


@dataclass(frozen=True, slots=True)
class Upload:
    """`ending`: of a file whose text is sent; `characters`: of its text, if not all is sent."""

    media: Media
    ending: str = ""
    characters: int | None = None


def read_upload(data: bytes, name: str, *, person: str) -> Upload:
    """Read a file under its clean name; raises MediaError, or ToolError with a text for people."""
    if len(data) > media.MOST_BYTES:
        raise MediaError("large", media.MOST_BYTES)
    if images.detect_media_type(data) or pdf.is_pdf(data):
        return Upload(media.identify_media(data))
    kind = detect_kind(data, name, "")
    if kind in ("text", "csv"):
        try:
            return Upload(media.identify_media(data))
        except MediaError as error:
            if error.code == "empty":
                raise
    try:
        text, size = extract_attached(data, name, MOST_SENT, person=person)
    except FileRefusedError as error:
        if kind == "text":
            raise MediaError("type") from error
        raise
    return _make_upload(text, size, name, kind)


def _make_upload(text: str, size: int, name: str, kind: str) -> Upload:
    text = media.CONTROL.sub("\ufffd", wire.clean(text))
    if not text.strip():
        raise MediaError("no_text")
    is_cut = len(text) < size
    if is_cut:
        text = (
            f"[This is the beginning of each part of the file, which has {size:,} characters."
            f" read_file reads on in the folder {FOLDER}, by the title of this document.]\n\n{text}"
        )
    found = _ENDING.search(name)
    ending = found[1].lower() if found else kind
    return Upload(Media(media.TEXT, text=text), ending, size if is_cut else None)
