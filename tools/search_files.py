"""The tool `search_files`: lines that contain a text, in the files of the workspace.

The query is plain text, searched in time linear in the file's length, and a short glob for names,
compiled once, so no query can be slow. Files are searched in processes of their own, many small
ones in one. Time is bounded: text files are searched first, documents that have to be unpacked
last, and the answer says how many files were not reached.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fnmatch import translate
from itertools import islice
from typing import Annotated

from tools.documents import choose_limits
from tools.documents.document_text import read_document
from tools.framework.errors import (
    FileMissingError,
    FileRefusedError,
    InputError,
    IsolationError,
    WorkspaceBusyError,
)
from tools.framework.tool import ToolContext, ToolResult, tool
from tools.isolation.isolated_calls import run_isolated
from tools.isolation.process_limits import OF_TEXT
from tools.text.lower_case import Places, list_spellings, lower_text
from tools.workspace.lines import format_count
from tools.workspace.workspace import Entry, Workspace

#: seconds for one search
DEADLINE = 40.0
MOST_MATCHES = 200
#: Bytes and number of text files that are searched by one process.
BATCH_BYTES, BATCH_FILES = 4_000_000, 200
LONGEST_LINE = 300
AROUND = 120
#: Characters of a glob for names.
MOST_NAMES = 200
DOCUMENTS = (".pdf", ".docx", ".xlsx", ".pptx", ".xlsm", ".docm", ".pptm")


@tool(icon="find", effect="read", results="head_tail", timeout=90, origin="workspace")
async def search_files(
    context: ToolContext,
    text: Annotated[str, "text to find, ignoring case; empty to find files by name alone"],
    names: Annotated[str, "only files whose path matches this, such as *.md or notes/*"] = "",
    path: Annotated[str, "only files in this folder; empty for the whole workspace"] = "",
) -> ToolResult:
    """Find the lines that contain a text in the files of the user's workspace, documents included,
    each with its file and line number as read_file counts them."""
    if not text.strip() and not names:
        raise InputError("Give a text to find, or names to match.")
    if len(names) > MOST_NAMES:
        raise InputError(f"names may have at most {MOST_NAMES} characters.")
    entries = await asyncio.to_thread(context.workspace.entries, path)
    is_wanted = _read_glob(names)
    chosen = [entry for entry in entries if is_wanted(entry.path)]
    search = Search(context.workspace, text, time.monotonic() + DEADLINE)
    await search.run(sorted(chosen, key=_search_order))
    return ToolResult(search.report(len(chosen)), details={"matches": len(search.matches)})


def _search_order(entry: Entry) -> tuple[bool, str]:
    return entry.path.lower().endswith(DOCUMENTS), entry.path


def _read_glob(names: str) -> Callable[[str], bool]:
    """Return a predicate for a path or its file name: *, ? and [...]; a run of * counts as one."""
    if not names:
        return lambda path: True
    pattern = re.compile(translate(re.sub(r"\*+", "*", names.lower())))
    return lambda path: any(pattern.match(each.lower()) for each in (path, path.rpartition("/")[2]))


@dataclass(slots=True)
class Search:
    workspace: Workspace
    text: str
    until: float
    matches: list[str] = field(default_factory=list)
    #: files with a match; files that were opened, readable or not
    files: int = 0
    opened: int = 0
    unread: list[str] = field(default_factory=list)

    @property
    def room(self) -> int:
        """How many more matches are taken; 0 when time is up."""
        return MOST_MATCHES - len(self.matches) if time.monotonic() < self.until else 0

    async def run(self, entries: list[Entry]) -> None:
        for batch in _split_into_batches(entries):
            if self.room <= 0:
                return
            if self.text.strip():
                await self.search_batch(await asyncio.to_thread(self.read_files, batch))
            else:
                self.list_names(batch)

    def list_names(self, batch: list[Entry]) -> None:
        for entry in batch[: self.room]:
            self.matches.append(f"{entry.path} ({entry.bytes:,} bytes)")
            self.opened += 1
            self.files += 1

    def read_files(self, batch: list[Entry]) -> list[tuple[str, bytes]]:
        found: list[tuple[str, bytes]] = []
        for entry in batch:
            try:
                found.append((entry.path, self.workspace.read(entry.path)))
            except FileMissingError:  # moved or deleted since the list was made
                self.opened += 1
            except FileRefusedError:
                self.opened += 1
                self.unread.append(entry.path)
        return found

    async def search_batch(self, files: list[tuple[str, bytes]]) -> None:
        limits = choose_limits(files[0][1]) if len(files) == 1 else OF_TEXT
        try:
            found = await run_isolated(find_in_files, files, self.text, self.room, limits=limits)
        except (IsolationError, WorkspaceBusyError):
            if len(files) == 1:
                found = [None]
            else:
                # One of them is to blame: each is tried by itself.
                for each in files:
                    if self.room > 0:
                        await self.search_batch([each])
                return
        for (path, _), lines in zip(files, found, strict=False):
            self.opened += 1
            self.files += bool(lines)
            if lines is None:
                self.unread.append(path)
            else:
                self.matches += lines

    def report(self, chosen: int) -> str:
        lines = list(self.matches) or ["Nothing was found."]
        count = len(self.matches)
        note = f"{count:,} match{'' if count == 1 else 'es'}"
        notes = [
            f"{note} in {format_count(self.files, 'file')}, {self.opened:,} of {chosen:,} searched"
        ]
        if len(self.matches) >= MOST_MATCHES:
            notes.append("more may follow: search for more exact words or in a folder")
        elif self.opened < chosen:
            notes.append("time was up: search in a folder or by names")
        if self.unread:
            shown = ", ".join(self.unread[:10]) + (" …" if len(self.unread) > 10 else "")
            notes.append(f"not text, or not readable: {shown}")
        return "\n".join([*lines, f"[{'; '.join(notes)}]"])


def _split_into_batches(entries: list[Entry]) -> Iterator[list[Entry]]:
    """Yield files that are searched together: a process each would cost more than the search."""
    batch: list[Entry] = []
    size = 0
    for entry in entries:
        is_alone = entry.path.lower().endswith(DOCUMENTS)
        if batch and (is_alone or size + entry.bytes > BATCH_BYTES or len(batch) >= BATCH_FILES):
            yield batch
            batch, size = [], 0
        if is_alone:
            yield [entry]
        else:
            batch.append(entry)
            size += entry.bytes
    if batch:
        yield batch


def find_in_files(files: list[tuple[str, bytes]], text: str, room: int) -> list[list[str] | None]:
    """Return the matching lines of each file, None for one that is no text, until room is up."""
    found: list[list[str] | None] = []
    for path, data in files:
        if room <= 0:
            break
        try:
            content = read_document(data, path, "", "")
        except FileRefusedError:
            found.append(None)
            continue
        lines = list(islice(_find_lines(content, text), room))
        found.append([f"{path}:{number}: {line}" for number, line in lines])
        room -= len(lines)
    return found


def _find_lines(content: str, text: str) -> Iterator[tuple[int, str]]:
    """Yield the number and text of each matching line; a long one around its first match."""
    lowered = lower_text(content)
    places = Places(lowered, list_spellings(text, lowered))
    at, number = 0, 1
    while place := places.find_first(at):
        found = place[0]
        number += content.count("\n", at, found)
        start = content.rfind("\n", 0, found) + 1
        end = content.find("\n", found)
        end = len(content) if end < 0 else end
        yield number, _clip_line(content[start:end].rstrip("\r"), found - start)
        if end >= len(content):
            return
        at, number = end + 1, number + 1


def _clip_line(line: str, first: int) -> str:
    if len(line) <= LONGEST_LINE:
        return line
    low, high = max(first - AROUND, 0), min(first + 2 * AROUND, len(line))
    return f"{'…' if low else ''}{line[low:high]}{'…' if high < len(line) else ''}"
