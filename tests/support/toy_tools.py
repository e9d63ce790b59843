"""Small tools of every kind; each records that it ran, and under which key."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from tools.framework.registry import TOOLS
from tools.framework.tool import ToolContext, tool

#: Names the file in which the tools record their runs.
RAN = "AGENTWEB_TEST_RAN"


def _note(name: str, context: ToolContext) -> str:
    path = Path(os.environ[RAN])
    with path.open("a", encoding="utf-8") as file:
        file.write(f"{name} {context.key}\n")
    return f"{name} has run"


@tool(icon="tool", effect="read")
async def peek(context: ToolContext, at: str = "") -> str:
    """Look at something."""
    return _note("peek", context)


@tool(icon="tool", effect="keyed")
async def put(context: ToolContext, at: str = "") -> str:
    """Put something somewhere, once."""
    return _note("put", context)


@tool(icon="tool", effect="write")
async def fire(context: ToolContext, at: str = "") -> str:
    """Do something that cannot be taken back."""
    return _note("fire", context)


@tool(icon="tool", effect="read", origin="workspace")
async def read_diary(context: ToolContext) -> str:
    """Read the person's diary."""
    return _note("read_diary", context)


@tool(icon="tool", effect="read", destination=lambda arguments: str(arguments["host"]))
async def visit(context: ToolContext, host: str, said: str = "") -> str:
    """Tell a host something."""
    return _note("visit", context)


@tool(
    icon="tool",
    effect="write",
    destination=lambda arguments: f"mail:{arguments['to']}",
    long_arguments=("text",),
)
async def post(context: ToolContext, to: str, text: str = "") -> str:
    """Send somebody a letter."""
    return _note("post", context)


TOYS = {each.name: each for each in (peek, put, fire, read_diary, visit, post)}


def install(monkeypatch: Any, path: Path) -> None:
    """Add the tools to every conversation of a test."""
    monkeypatch.setenv(RAN, str(path))
    for name, each in TOYS.items():
        monkeypatch.setitem(TOOLS, name, each)


def ran(path: Path) -> list[tuple[str, str]]:
    """Return name and key of each run."""
    if not path.exists():
        return []
    pairs = (line.partition(" ") for line in path.read_text(encoding="utf-8").splitlines())
    return [(name, key) for name, _, key in pairs]
