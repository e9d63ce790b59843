"""The tool `edit_file`: replace one exact text of a file by another.

The call is keyed: the index stores the key of the call that changed a file last, so a call repeated
after a crash finds its own change and says so. A write is conditional on the digest of what was
read, and tried again when another change came between.
"""

from __future__ import annotations

import asyncio
from typing import Annotated

from tools.documents.document_text import read_source
from tools.framework.clean_text import clean_text, quote
from tools.framework.errors import FileChangedError, FileMissingError, FileRefusedError, InputError
from tools.framework.tool import ToolContext, ToolResult, tool
from tools.isolation.isolated_calls import run_isolated
from tools.workspace.lines import format_count
from tools.workspace.workspace import compute_digest, is_done_before

#: Times an edit is tried when other changes come between reading and writing.
MOST_TRIES = 20
#: Characters that a file may have after an edit; a workspace allows fewer.
MOST_CHARACTERS = 20_000_000


@tool(
    icon="pen",
    effect="keyed",
    results="keep",
    timeout=60,
    long_arguments=("old", "new"),
    action="edited {path}",
)
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
    workspace, key = context.workspace, context.key
    old, new = clean_text(old), clean_text(new)
    if context.repeats is not None:
        await asyncio.to_thread(is_done_before, workspace, path, key, context.repeats)
    for tried in range(1, MOST_TRIES + 1):
        is_done = bool(key) and await asyncio.to_thread(workspace.is_done, path, key)
        if is_done:
            return ToolResult(f"Changed {path} already.", details={"path": path})
        data = await asyncio.to_thread(workspace.read, path)
        text, count = await run_isolated(replace_text, data, path, old, new, all)
        changed, digest = text.encode(), compute_digest(data)
        try:
            await asyncio.to_thread(workspace.write, path, changed, key=key, over=digest)
        except (FileChangedError, FileMissingError):
            if tried == MOST_TRIES:
                raise
            continue
        places = format_count(count, "place")
        details = {"path": path, "bytes": len(changed), "places": count}
        return ToolResult(f"Changed {path} in {places}.", details=details)
    raise AssertionError("unreachable")


def _decode_exactly(data: bytes, path: str) -> str:
    """Return text that encodes to the same bytes again, byte order mark included."""
    read_source(data, path)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise FileRefusedError(
            f"{quote(path)} is not UTF-8, so it cannot be edited in place; write it anew."
        ) from error


def replace_text(data: bytes, path: str, old: str, new: str, is_all: bool) -> tuple[str, int]:
    """Return the changed text of a file, and at how many places it was changed."""
    text = _decode_exactly(data, path)
    count, ends = text.count(old), text.count("\r\n")
    if ends and (not count or (ends == text.count("\n") and "\r" not in old)):
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
    if (size := len(text) + count * (len(new) - len(old))) > MOST_CHARACTERS:
        raise InputError(
            f"{quote(path)} would have {size:,} characters, and at most {MOST_CHARACTERS:,} are"
            " written by one edit."
        )
    return text.replace(old, new), count
