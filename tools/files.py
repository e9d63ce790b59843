"""The files of the user's workspace, for the model: list, read by lines, write whole.

Disk work runs in a thread. What is read is `verbatim`: the user's own files carry the criteria and
facts a conversation rests on, so they are not shortened behind the model's back; long ones are
read in ranges instead.
"""

from __future__ import annotations

import asyncio
import re
from typing import Annotated

from tools.base import ToolContext, ToolResult, tool
from tools.errors import FileRefusedError, InputError
from tools.text import clean, quote

MOST_ENTRIES = 1_000
MOST_CHARACTERS = 40_000
SNIFFED = 8_192
LINE = re.compile(r"[^\n]*\n|[^\n]+")


@tool(effect="read", results="head_tail", timeout=15)
async def list_files(
    context: ToolContext, path: Annotated[str, "folder to list; empty for the whole workspace"] = ""
) -> str:
    """List the files in the user's workspace, with their sizes in bytes."""
    entries = await asyncio.to_thread(context.workspace.entries, path)
    if not entries:
        return "There are no files here."
    lines = [f"{entry.path} ({entry.bytes:,} bytes)" for entry in entries[:MOST_ENTRIES]]
    if len(entries) > MOST_ENTRIES:
        lines.append(f"[{MOST_ENTRIES:,} of {len(entries):,} files shown; list a folder for less]")
    return "\n".join(lines)


@tool(effect="read", results="verbatim", timeout=15)
async def read_file(
    context: ToolContext,
    path: Annotated[str, "file to read, relative to the workspace, such as notes/plan.md"],
    offset: Annotated[int, "lines to skip from the start"] = 0,
    limit: Annotated[int, "most lines to return; 0 for all that fit"] = 0,
) -> ToolResult:
    """Read a text file from the user's workspace, whole or a range of its lines."""
    if offset < 0 or limit < 0:
        raise InputError("offset and limit must be 0 or more.")
    data = await asyncio.to_thread(context.workspace.read, path)
    text = _decoded(path, data)
    return ToolResult(_lines(path, text, offset, limit), details={"path": path, "bytes": len(data)})


@tool(effect="keyed", results="keep", timeout=30)
async def write_file(
    context: ToolContext,
    path: Annotated[str, "file to write, relative to the workspace; folders are made as needed"],
    content: Annotated[str, "the whole new content of the file"],
) -> ToolResult:
    """Create a text file in the user's workspace, or replace the whole content of one."""
    data = clean(content).encode()
    created = await asyncio.to_thread(context.workspace.write, path, data)
    done = "Created" if created else "Replaced"
    details = {"path": path, "bytes": len(data), "created": created}
    return ToolResult(f"{done} {path} ({len(data):,} bytes).", details=details)


def _decoded(path: str, data: bytes) -> str:
    start = data[:SNIFFED].decode("utf-8-sig", errors="replace")
    if "\0" in start or start.count("\ufffd") * 10 > len(start):
        raise FileRefusedError(f"{quote(path)} is a binary file ({len(data):,} bytes), not text.")
    return data.decode("utf-8-sig", errors="replace")


def _lines(path: str, text: str, offset: int, limit: int) -> str:
    lines = LINE.findall(text)
    if not lines:
        return "[the file is empty]"
    if offset >= len(lines):
        raise InputError(f"{quote(path)} has {len(lines):,} lines: offset must be less.")
    wanted = lines[offset : offset + limit if limit else None]
    shown, room = 0, MOST_CHARACTERS
    while shown < len(wanted) and len(wanted[shown]) <= room:
        room -= len(wanted[shown])
        shown += 1
    if not shown:
        return _long_line(wanted[0], offset + 1, len(lines))
    body = "".join(wanted[:shown])
    if shown == len(lines):
        return body
    end = offset + shown
    more = f"; continue with offset={end}" if end < len(lines) else ""
    return f"{body.rstrip(chr(10))}\n[lines {offset + 1:,} to {end:,} of {len(lines):,}{more}]"


def _long_line(line: str, number: int, lines: int) -> str:
    return (
        f"{line[:MOST_CHARACTERS]}\n[line {number:,} of {lines:,} has {len(line):,} characters,"
        f" {MOST_CHARACTERS:,} shown; continue with offset={number}]"
    )
