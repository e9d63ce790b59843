"""What a document says: run in a process with limits (`tools/isolation`), never in our own.

Besides the limits of that process there is one of time here: readers stop by themselves at `SOFT`
seconds and report where, so a long document gives what was read.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import assert_never

from tools.documents.csv_tables import csv_to_markdown
from tools.documents.document_kind import WITH_PARTS, detect_kind
from tools.documents.parts import Part, RefusedError, UnknownPartError
from tools.documents.text_files import decode_text_file
from tools.framework.clean_text import quote
from tools.framework.errors import FileRefusedError, InputError, ToolError
from tools.html.to_markdown import html_to_markdown
from tools.http.charset import decode_bytes

#: characters of text that are read of one document
MOST_CHARACTERS = 4_000_000
#: seconds after which no further page or sheet is started
SOFT = 12.0

Reader = Callable[[bytes, str], Iterator[Part]]


def read_document(data: bytes, name: str, content_type: str, part: str) -> str:
    """Return the text of a document; arguments and errors are those of `extract_text`."""
    kind = detect_kind(data, name, content_type)
    if part and kind not in WITH_PARTS:
        raise InputError(
            "part is for the pages of a PDF, the sheets of a workbook or the slides of a"
            " presentation."
        )
    return join_parts(list_parts(data, name, content_type, part))


def list_parts(data: bytes, name: str, content_type: str = "", part: str = "") -> list[Part]:
    """Return the requested parts of a document, or all; one without a title where it has none."""
    kind = detect_kind(data, name, content_type)
    match kind:
        case "pdf" | "office":
            return _read_parts(data, kind, name, part)
        case "csv":
            return [Part("", csv_to_markdown(data, name))]
        case "html":
            return [Part("", html_to_markdown(decode_bytes(data, content_type), name))]
        case "mail":
            return [Part("", _read_mail(data))]
        case "text":
            return [Part("", decode_text_file(data, name))]
        case _:
            assert_never(kind)


def _read_mail(data: bytes) -> str:
    from tools.mail.message import parse_message

    mail = parse_message(data, len(data))
    lines = [f"[{note}]" for note in mail.notes]
    lines += [f"{name}: {value}" for name, value in mail.fields.items() if value]
    lines += [
        f"Attachment {each.number}: {each.name} ({each.content_type}, {each.size:,} bytes)"
        for each in mail.attachments
    ]
    return "\n".join([*lines, "", mail.text])


def read_source(data: bytes, name: str) -> str:
    """Return the exact text of a text file; raises FileRefusedError for a PDF or Office file."""
    if detect_kind(data, name, "") in WITH_PARTS:
        raise FileRefusedError(f"{quote(name)} is a document, not a text file: it has no source.")
    return decode_text_file(data, name)


def _read_parts(data: bytes, kind: str, name: str, part: str) -> list[Part]:
    try:
        return collect_parts(_choose_reader(kind)(data, part))
    except UnknownPartError as error:
        raise InputError(f"{quote(name)}: {error}") from error
    except RefusedError as error:
        raise _refusal(name, str(error)) from error
    except MemoryError as error:
        raise _refusal(name, "it needs too much memory") from error
    except ToolError:
        raise
    except Exception as error:  # parsers raise anything on damaged files
        raise _refusal(name, f"it is damaged ({type(error).__name__})") from error


def _refusal(name: str, reason: str) -> FileRefusedError:
    return FileRefusedError(f"{quote(name)} is not read: {reason}.")


def _choose_reader(kind: str) -> Reader:
    if kind == "pdf":
        from tools.documents.pdf import read_pdf

        return read_pdf
    from tools.documents.office import read_office

    return read_office


def collect_parts(parts: Iterator[Part]) -> list[Part]:
    """Collect parts while there is room and time; a last one reports where reading stopped."""
    collected: list[Part] = []
    room, until = MOST_CHARACTERS, time.monotonic() + SOFT
    for part in parts:
        collected.append(Part(part.title, part.text[:room]))
        room -= len(part.text)
        if room <= 0:
            return [*collected, Part(f"the text was cut after {MOST_CHARACTERS:,} characters", "")]
        if time.monotonic() > until:
            return [*collected, Part("reading was stopped here; ask for a later part by name", "")]
    return collected


def join_parts(parts: list[Part]) -> str:
    return "\n\n".join(
        "\n".join(filter(None, (part.title and f"[{part.title}]", part.text))) for part in parts
    )
