"""The container of code execution: a shell that prints, and files that it writes.

It runs nothing: `echo`, a `print` of plain words, a file written with `>`. What a file holds is in
its command or follows from its name, so nothing is kept between two calls.
"""

from __future__ import annotations

import mimetypes
import re
from dataclasses import dataclass

from agentweb.emulator import json_codec
from agentweb.emulator.ids import make_id

_PRINT = re.compile(r"""^\s*(?:python3? -c ["'])?print\((["'])(.*?)\1\)(?:["'])?\s*$""")
_ECHO = re.compile(r"^\s*echo ([^>]*?)(?:\s*>\s*([\w./-]+))?\s*$")
_UNKNOWN = "the emulator runs nothing but a print of plain words\n"


@dataclass(frozen=True, slots=True)
class MadeFile:
    """A file that a command wrote, which the Files API serves."""

    id: str
    name: str
    content: bytes

    @property
    def media_type(self) -> str:
        return mimetypes.guess_type(self.name)[0] or "application/octet-stream"


def run_python(tool_input: json_codec.Object) -> json_codec.Object:
    """Return the result of the first version of the tool, which runs Python code."""
    return _ran("code_execution_result", _printed(str(tool_input.get("code", ""))), [])


def run_shell(tool_input: json_codec.Object) -> json_codec.Object:
    command = str(tool_input.get("command", ""))
    made = made_file(command)
    output: json_codec.Object = {"type": "bash_code_execution_output"}
    files = [output | {"file_id": made.id}] if made else []
    return _ran("bash_code_execution_result", "" if made else _printed(command), files)


def made_file(command: str) -> MadeFile | None:
    found = _ECHO.match(command)
    if not found or not found[2]:
        return None
    content = f"{found[1].strip()}\n".encode()
    return MadeFile(make_id("file", command.encode()), found[2].rsplit("/", 1)[-1], content)


def edit_text(tool_input: json_codec.Object) -> json_codec.Object:
    kind, path = "text_editor_code_execution", str(tool_input.get("path", ""))
    match tool_input.get("command"):
        case "create":
            return {"type": f"{kind}_create_result", "is_file_update": False}
        case "view":
            return {
                "type": f"{kind}_view_result",
                "file_type": "text",
                "content": file_text(path),
                "num_lines": 1,
                "start_line": 1,
                "total_lines": 1,
            }
        case "str_replace":
            lines = [f"-{tool_input.get('old_str', '')}", f"+{tool_input.get('new_str', '')}"]
            place = {"old_start": 1, "old_lines": 1, "new_start": 1, "new_lines": 1}
            return {"type": f"{kind}_str_replace_result", "lines": lines} | place
        case _:
            code = {"error_code": "invalid_tool_input", "error_message": "unknown command"}
            return {"type": f"{kind}_tool_result_error"} | code


def file_text(path: str) -> str:
    return f"Everything about {path.rsplit('/', 1)[-1]}."


def _printed(command: str) -> str | None:
    """Return the output of a command; None for one that is not supported."""
    if found := _PRINT.match(command):
        return f"{found[2]}\n"
    found = _ECHO.match(command)
    return f"{found[1]}\n" if found else None


def _ran(kind: str, printed: str | None, files: list[json_codec.Object]) -> json_codec.Object:
    return {
        "type": kind,
        "stdout": printed or "",
        "stderr": _UNKNOWN if printed is None else "",
        "return_code": 1 if printed is None else 0,
        "content": files,
    }
