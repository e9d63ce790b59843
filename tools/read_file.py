"""The tool `read_file`: a file of the workspace as text, in full or a range of its lines.

The result is `verbatim`: a person's own files hold the criteria and facts a conversation rests on,
so the context engine never shortens them; long files are read in ranges instead.
"""

from __future__ import annotations

import asyncio
from typing import Annotated

from tools.documents import read_isolated
from tools.documents.document_text import read_document, read_source
from tools.framework.errors import InputError
from tools.framework.tool import ToolContext, ToolResult, tool
from tools.workspace.lines import format_lines


@tool(icon="file", effect="read", results="verbatim", timeout=60, origin="workspace")
async def read_file(
    context: ToolContext,
    path: Annotated[str, "file to read, relative to the workspace, such as notes/plan.md"],
    offset: Annotated[int, "lines to skip from the start"] = 0,
    limit: Annotated[int, "most lines to return; 0 for all that fit"] = 0,
    part: Annotated[
        str,
        "pages of a PDF or slides of a PPTX (3 or 2-5), or a sheet or range of a workbook (Rates or"
        " Rates!A1:D20)",
    ] = "",
    source: Annotated[
        bool,
        "give the exact text of an HTML or CSV file, as edit_file needs it, not its readable form",
    ] = False,
    start: Annotated[int, "characters to skip in the first line, to read on in a long one"] = 0,
) -> ToolResult:
    """Read a file from the user's workspace, whole or a range of its lines: text, HTML, tables
    (CSV, XLSX), PDF, DOCX, PPTX and mails (EML), each as readable text. Files that the user
    attached to this chat are in the folder attached."""
    if min(offset, limit, start) < 0:
        raise InputError("offset, limit and start must be 0 or more.")
    data = await asyncio.to_thread(context.workspace.read, path)
    shown = await read_isolated(show_file, data, path, part, source, offset, limit, start)
    return ToolResult(shown, details={"path": path, "bytes": len(data)})


def show_file(
    data: bytes, path: str, part: str, is_source: bool, offset: int, limit: int, start: int
) -> str:
    """Return the requested lines of a file."""
    text = read_source(data, path) if is_source else read_document(data, path, "", part)
    return format_lines(path, text, offset, limit, start)
