"""A message as text for the model: headers, text, numbered attachments, and notes on oddities.

Of alternatives the plain text is used, unless it is next to nothing beside the HTML. HTML is
converted like web pages: nothing is loaded, images become their descriptions. Quoted replies stay,
since they are often what the question is about.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import astuple, dataclass
from typing import Any

from tools.html.to_markdown import html_to_markdown
from tools.http.charset import decode_bytes
from tools.isolation.isolated_calls import run_isolated
from tools.mail.hidden import note_hidden_markup, strip_invisible
from tools.mail.mime import Part, Parts, split_parts

#: Most bytes of one text part, and most characters of all of them.
MOST_TEXT_BYTES = 2_000_000
MOST_CHARACTERS = 2_000_000
FIELDS = ("From", "Reply-To", "To", "Cc", "Date", "Subject", "Message-ID")
#: A plain text below so many characters is only a stand-in for an HTML ten times its length.
STAND_IN = 300
BLANK_LINES = re.compile(r"\n[ \t]*\n(?:[ \t]*\n)+")


@dataclass(frozen=True, slots=True)
class Attachment:
    number: int
    name: str
    content_type: str
    size: int


@dataclass(frozen=True, slots=True)
class Mail:
    fields: dict[str, str]
    text: str
    attachments: tuple[Attachment, ...]
    notes: tuple[str, ...]


async def read_message(data: bytes, size: int) -> Mail:
    """Parse a message in a process of its own; raises IsolationError."""
    fields, text, attachments, notes = await run_isolated(list_contents, data, size)
    return Mail(fields, text, tuple(Attachment(*each) for each in attachments), tuple(notes))


def list_contents(data: bytes, size: int) -> tuple[Any, ...]:
    """Return the fields of `parse_message` as a JSON value."""
    mail = parse_message(data, size)
    return mail.fields, mail.text, [astuple(each) for each in mail.attachments], mail.notes


def extract_attachment(data: bytes, number: int) -> bytes:
    """Return the content of an attachment by its number, which counts from 1."""
    parts = [part for part in split_parts(data).parts if part.is_attachment]
    return parts[number - 1].data


def parse_message(data: bytes, size: int) -> Mail:
    """Parse a message; `size` is its full size as the server reports it."""
    found = split_parts(data)
    notes = list(found.notes)
    if size > len(data):
        notes.append(f"Only the first {len(data):,} of its {size:,} bytes were read.")
    if found.header.is_cut:
        notes.append("Its header is too long and was cut.")
    fields = {}
    for name in FIELDS:
        fields[name], removed = strip_invisible(found.header.text(name.lower()))
        notes += [f"{name}: {note}" for note in removed]
    text = "\n\n".join(_extract_texts(found, notes))
    if len(text) > MOST_CHARACTERS:
        text = text[:MOST_CHARACTERS]
        notes.append(f"Only the first {MOST_CHARACTERS:,} characters of its text were kept.")
    return Mail(fields, text, _list_attachments(found), tuple(dict.fromkeys(notes)))


@dataclass(frozen=True, slots=True)
class TextPart:
    """The text of one part, and notes about it."""

    part: Part
    text: str
    notes: tuple[str, ...] = ()

    @property
    def length(self) -> int:
        return len(self.text)


def _extract_texts(found: Parts, notes: list[str]) -> list[str]:
    texts: list[str] = []
    for words in _choose_alternatives(
        [_extract_text(part) for part in found.parts if not part.is_attachment]
    ):
        notes += words.notes
        if words.text:
            texts.append(words.text)
    return texts


def _choose_alternatives(all_words: list[TextPart]) -> list[TextPart]:
    """Keep one part of each set of alternatives: plain text if it is more than a stand-in."""
    lengths = Counter[tuple[int, str]]()
    for words in all_words:
        lengths[words.part.alternative, words.part.content_type] += words.length
    kept = []
    for words in all_words:
        group = words.part.alternative
        plain, html = lengths[group, "text/plain"], lengths[group, "text/html"]
        is_stand_in = plain < STAND_IN and html > 10 * plain
        wanted = "text/html" if is_stand_in else "text/plain"
        has_choice = bool(group and plain and html) and not words.part.is_enclosed
        if not has_choice or words.part.content_type == wanted:
            kept.append(words)
    return kept


def _extract_text(part: Part) -> TextPart:
    if part.is_enclosed:
        fields = [
            f"{name}: {strip_invisible(part.header.text(name.lower()))[0]}" for name in FIELDS
        ]
        lines = [line for line in fields if not line.endswith(": ")]
        return TextPart(part, "\n".join(["---------- enclosed message ----------", *lines]))
    notes: list[str] = []
    data = part.data
    if len(data) > MOST_TEXT_BYTES:
        notes.append(f"A text of {len(data):,} bytes was cut at {MOST_TEXT_BYTES:,}.")
        data = data[:MOST_TEXT_BYTES]
    text = decode_bytes(data, part.header.raw("content-type") or "text/plain")
    if wrong := text.count("\ufffd"):
        notes.append(f"{wrong:,} characters are not of the charset it names; they show as \ufffd.")
    if part.content_type == "text/html":
        notes += note_hidden_markup(text)
        text = html_to_markdown(text, "")
    text, removed = strip_invisible(text.replace("\r\n", "\n").replace("\r", "\n"))
    return TextPart(part, BLANK_LINES.sub("\n\n", text).strip(), (*notes, *removed))


def _list_attachments(found: Parts) -> tuple[Attachment, ...]:
    parts = [part for part in found.parts if part.is_attachment]
    return tuple(
        Attachment(
            number,
            strip_invisible(part.file_name)[0] or "(no name)",
            part.content_type,
            len(part.data),
        )
        for number, part in enumerate(parts, start=1)
    )
