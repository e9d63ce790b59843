"""The files of the user's workspace, for the model: list, read, write, edit, move, delete.

What is read is `verbatim`: the user's own files carry the criteria and facts a conversation rests
on, so they are not shortened behind the model's back; long ones are read in ranges instead. What
changes is keyed: the index keeps the key of the call that changed a file last, so a call repeated
after a crash finds its own work and says so. Blocking work runs in a thread.
"""

from __future__ import annotations

import asyncio
from typing import Annotated

from tools.documents import has_parts, text_of
from tools.documents.plain import plain_text
from tools.framework.clean_text import clean, quote
from tools.framework.errors import FileChangedError, FileMissingError, FileRefusedError, InputError
from tools.framework.tool import ToolContext, ToolResult, tool
from tools.workspace.lines import counted, shown_lines
from tools.workspace.workspace import digest_of

MOST_ENTRIES = 1_000
#: Times an edit is tried again when another one comes between its reading and its writing.
MOST_TRIES = 20


@tool(effect="read", results="head_tail", timeout=15, is_private=True)
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


@tool(effect="read", results="verbatim", timeout=60, is_private=True)
async def read_file(
    context: ToolContext,
    path: Annotated[str, "file to read, relative to the workspace, such as notes/plan.md"],
    offset: Annotated[int, "lines to skip from the start"] = 0,
    limit: Annotated[int, "most lines to return; 0 for all that fit"] = 0,
    part: Annotated[
        str, "pages of a PDF (3 or 2-5), or a sheet or range of a workbook (Rates or Rates!A1:D20)"
    ] = "",
    source: Annotated[
        bool,
        "give the exact text of an HTML or CSV file, as edit_file needs it, not its readable form",
    ] = False,
) -> ToolResult:
    """Read a file from the user's workspace, whole or a range of its lines: text, HTML, tables
    (CSV, XLSX), PDF and DOCX, each as readable text."""
    if offset < 0 or limit < 0:
        raise InputError("offset and limit must be 0 or more.")
    data = await asyncio.to_thread(context.workspace.read, path)
    if source:
        text = await asyncio.to_thread(_source, data, path)
    else:
        text = await asyncio.to_thread(text_of, data, path, part=part)
    shown = shown_lines(path, text, offset, limit)
    return ToolResult(shown, details={"path": path, "bytes": len(data)})


@tool(effect="keyed", results="keep", timeout=60)
async def write_file(
    context: ToolContext,
    path: Annotated[str, "file to write, relative to the workspace; folders are made as needed"],
    content: Annotated[str, "the whole new content of the file"],
) -> ToolResult:
    """Create a text file in the user's workspace, or replace the whole content of one."""
    data = clean(content).encode()
    created = await asyncio.to_thread(context.workspace.write, path, data, key=context.key)
    done = "Created" if created else "Replaced"
    details = {"path": path, "bytes": len(data), "created": created}
    return ToolResult(f"{done} {path} ({len(data):,} bytes).", details=details)


@tool(effect="keyed", results="keep", timeout=60)
async def edit_file(
    context: ToolContext,
    path: Annotated[str, "text file to change, relative to the workspace"],
    old: Annotated[str, "the exact text to replace, with enough around it to be there only once"],
    new: Annotated[str, "the text to put in its place; empty to remove it"],
    all: Annotated[bool, "replace it wherever it stands, not only where it stands once"] = False,
) -> ToolResult:
    """Change a text file of the user's workspace: replace one exact text by another."""
    if not old or old == new:
        raise InputError("old must be a text of the file, and new must differ from it.")
    return await asyncio.to_thread(_edited, context, path, clean(old), clean(new), all)


@tool(effect="keyed", results="keep", timeout=30)
async def move_file(
    context: ToolContext,
    path: Annotated[str, "file or folder to move, relative to the workspace"],
    to: Annotated[str, "its new path; folders are made as needed, nothing is replaced"],
) -> ToolResult:
    """Move or rename a file or a folder of the user's workspace."""
    count = await asyncio.to_thread(context.workspace.move, path, to, key=context.key)
    what = f"the {counted(count, 'file')} of {path}" if count > 1 else path
    return ToolResult(f"Moved {what} to {to}.", details={"path": to, "from": path, "files": count})


@tool(effect="keyed", results="keep", timeout=30)
async def delete_file(
    context: ToolContext, path: Annotated[str, "file to delete, relative to the workspace"]
) -> ToolResult:
    """Delete one file from the user's workspace. It goes to the trash, where the user can bring it
    back for a while; you cannot."""
    await asyncio.to_thread(context.workspace.delete, path, key=context.key)
    return ToolResult(f"Deleted {path}; the user can bring it back.", details={"from": path})


def _source(data: bytes, path: str) -> str:
    if has_parts(data, path):
        raise FileRefusedError(f"{quote(path)} is a document, not a text file: it has no source.")
    return plain_text(data, path)


def _edited(context: ToolContext, path: str, old: str, new: str, is_all: bool) -> ToolResult:
    workspace = context.workspace
    for tried in range(1, MOST_TRIES + 1):
        if context.key and workspace.is_done(path, context.key):
            return ToolResult(f"Changed {path} already.", details={"path": path})
        data = workspace.read(path)
        text, count = _replaced(path, _exact(data, path), old, new, is_all)
        try:
            workspace.write(path, text.encode(), key=context.key, over=digest_of(data))
        except (FileChangedError, FileMissingError):
            if tried == MOST_TRIES:
                raise
            continue
        places = counted(count, "place")
        details = {"path": path, "bytes": len(text.encode()), "places": count}
        return ToolResult(f"Changed {path} in {places}.", details=details)
    raise AssertionError("unreachable")


def _exact(data: bytes, path: str) -> str:
    """Give text that is the very bytes again when it is encoded; byte order mark included."""
    _source(data, path)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise FileRefusedError(
            f"{quote(path)} is not UTF-8, so it cannot be edited in place; write it anew."
        ) from error


def _replaced(path: str, text: str, old: str, new: str, is_all: bool) -> tuple[str, int]:
    count = text.count(old)
    if not count and "\r\n" in text and "\n" in old:
        # The model sees and writes plain line ends.
        old, new = (each.replace("\r\n", "\n").replace("\n", "\r\n") for each in (old, new))
        count = text.count(old)
    if not count:
        raise InputError(
            f"{quote(path)} does not contain the text {quote(old)}. It must match exactly, with"
            " every space and line end; read_file with source shows them."
        )
    if count > 1 and not is_all:
        raise InputError(
            f"The text {quote(old)} stands in {quote(path)} {count:,} times. Give more of what is"
            " around it so that it is there once, or set all."
        )
    return text.replace(old, new), count
