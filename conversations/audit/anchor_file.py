"""The anchor file: one JSON line for each anchor, append-only, each with the digest of the previous
line.

A line has the ends of the chains that have grown since the previous line, so the file grows with
what changes, and for each chain it shows which row was at which link. A line that a crash left
incomplete is skipped: the next line follows the last complete one. One process at a time locks the
file.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings

from conversations.conf import conf
from conversations.context.view import wire

#: The name of the site's chain among the conversations' ids.
SITE_NAME = "site"
_TAIL = 1_000_000


class AnchorError(Exception):
    """The anchors cannot be continued; the message says why, and what to do."""

    code = "anchor"


@dataclass(frozen=True, slots=True)
class Head:
    """The end of a chain: its name, its number of links, and the value of the last."""

    name: str
    links: int
    chain: str


@dataclass(frozen=True, slots=True)
class Anchor:
    number: int
    at: str
    #: The digest of the previous line; "" for the first line.
    before: str
    heads: tuple[Head, ...]
    #: Why the file was started anew, or why the database was restored and to which anchor.
    reason: str = ""
    back_to: int | None = None
    digest: str = ""


def find_anchor_path() -> Path | None:
    """Return the path of the anchor file; None where anchors are off."""
    match conf.anchor_file:
        case "off":
            return None
        case "":
            return Path(settings.DATA_DIR) / "anchors.jsonl"
        case path:
            return Path(path)


def format_line(anchor: Anchor) -> str:
    """Write an anchor as a line of the file."""
    data: dict[str, Any] = {
        "anchor": anchor.number,
        "at": anchor.at,
        "before": anchor.before,
        "heads": [[head.name, head.links, head.chain] for head in anchor.heads],
    }
    if anchor.reason:
        data["reason"] = anchor.reason
    if anchor.back_to is not None:
        data["back_to"] = anchor.back_to
    return json.dumps(data, separators=(",", ":"))


def read_line(text: str) -> Anchor | None:
    """Read a line; None where it is no anchor."""
    try:
        data = json.loads(text)
        return Anchor(
            number=int(data["anchor"]),
            at=str(data["at"]),
            before=str(data["before"]),
            heads=tuple(Head(str(n), int(links), str(chain)) for n, links, chain in data["heads"]),
            reason=str(data.get("reason", "")),
            back_to=None if data.get("back_to") is None else int(data["back_to"]),
            digest=wire.digest(text),
        )
    except (ValueError, TypeError, KeyError, RecursionError, AttributeError):
        return None


def read_anchors(path: Path) -> Iterator[Anchor]:
    """Yield the anchors in order; raises AnchorError if one does not follow the previous one."""
    number, digest = None, ""
    with path.open(encoding="utf-8", errors="replace", newline="\n") as file:
        for text in file:
            anchor = read_line(text.rstrip("\n"))
            if anchor is None:
                continue
            follows = number is None or anchor.number == number + 1
            if anchor.before != digest or not follows:
                raise AnchorError(
                    f"anchor {anchor.number} does not follow anchor {number or 'none'}:"
                    f" lines of {path} were changed or removed"
                )
            number, digest = anchor.number, anchor.digest
            yield anchor


class AnchorFile:
    """The file, locked by this process."""

    def __init__(self, handle: int) -> None:
        self._handle = handle

    @property
    def last(self) -> Anchor | None:
        """The last complete line."""
        size = os.fstat(self._handle).st_size
        taken = _TAIL
        while True:
            text = os.pread(self._handle, taken, max(0, size - taken)).decode(errors="replace")
            for line in reversed(text.split("\n")):
                if (anchor := read_line(line)) is not None:
                    return anchor
            if taken >= size:
                return None
            taken *= 10

    def after(self, number: int) -> list[Anchor]:
        """Return the anchors with higher numbers."""
        with os.fdopen(os.dup(self._handle), encoding="utf-8", errors="replace") as file:
            file.seek(0)
            rows = (read_line(text.rstrip("\n")) for text in file)
            return [row for row in rows if row is not None and row.number > number]

    def add(self, anchor: Anchor) -> Anchor:
        """Append a line, flush it to the disk, and return the anchor with its digest."""
        text = format_line(anchor)
        size = os.fstat(self._handle).st_size
        is_torn = size > 0 and os.pread(self._handle, 1, size - 1) != b"\n"
        rest = f"{chr(10) * is_torn}{text}\n".encode()
        while rest:
            rest = rest[os.write(self._handle, rest) :]
        os.fsync(self._handle)
        found = read_line(text)
        assert found is not None  # noqa: S101 - just written
        return found


@contextmanager
def lock_anchor_file(path: Path) -> Iterator[AnchorFile]:
    """Open and lock the file for appending; raises AnchorError where it cannot be written."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise AnchorError(f"the anchor file {path} cannot be written: {error.strerror}") from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield AnchorFile(handle)
    finally:
        os.close(handle)
