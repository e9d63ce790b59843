"""The tool `search_files`: lines that contain a text, in the files of the workspace.

The query is plain text, searched in time linear in the file's length, and a short glob for names,
compiled once, so no query can be slow. Time is bounded: text files are searched first, documents
that have to be unpacked last, and the answer says how many files were not reached.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fnmatch import translate
from typing import Annotated

from tools.documents import extract_text
from tools.framework.errors import (
    FileMissingError,
    FileRefusedError,
    InputError,
    WorkspaceBusyError,
)
from tools.framework.tool import ToolContext, ToolResult, tool
from tools.text.lower_case import lower_text
from tools.workspace.lines import format_count
from tools.workspace.workspace import Entry, Workspace

#: seconds for one search
DEADLINE = 40.0
MOST_MATCHES = 200
LONGEST_LINE = 300
AROUND = 120
#: Characters of a glob for names.
MOST_NAMES = 200
DOCUMENTS = (".pdf", ".docx", ".xlsx", ".xlsm", ".docm")


@tool(icon="find", effect="read", results="head_tail", timeout=90, is_private=True)
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
    await asyncio.to_thread(search.run, sorted(chosen, key=_search_order))
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

    def run(self, entries: list[Entry]) -> None:
        for entry in entries:
            if len(self.matches) >= MOST_MATCHES or time.monotonic() > self.until:
                return
            self.opened += 1
            before = len(self.matches)
            if self.text.strip():
                self.search_file(entry.path)
            else:
                self.matches.append(f"{entry.path} ({entry.bytes:,} bytes)")
            self.files += len(self.matches) > before

    def search_file(self, path: str) -> None:
        try:
            content = extract_text(self.workspace.read(path), path)
        except FileMissingError:  # moved or deleted since the list was made
            return
        except (FileRefusedError, WorkspaceBusyError):
            self.unread.append(path)
            return
        for number, line in _find_lines(content, self.text):
            if len(self.matches) >= MOST_MATCHES:
                return
            self.matches.append(f"{path}:{number}: {line}")

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


def _find_lines(content: str, text: str) -> Iterator[tuple[int, str]]:
    """Yield the number and text of each matching line; a long one around its first match."""
    lowered, wanted = lower_text(content), lower_text(text)
    at, number = 0, 1
    while (found := lowered.find(wanted, at)) >= 0:
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
