"""The README of `tools/` is true: its example works as it stands, its tables are complete."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import tools
from tests.tools.examples import README, add_example, read_example
from tools.framework.registry import TOOLS
from tools.framework.tool import ToolContext
from tools.framework.toolset import Toolset

HOME = Path(tools.__file__).parent
#: Run by the API and not here.
SERVED = {"web_search"}


@pytest.fixture
def added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add_example(tmp_path, monkeypatch)


def test_the_example_is_short() -> None:
    source, _ = read_example()
    assert len(source.splitlines()) < 30


@pytest.mark.usefixtures("added")
def test_the_example_is_told_to_the_model() -> None:
    told = Toolset(TOOLS).definitions()[-1]
    assert told == {
        "name": "roll_dice",
        "description": "Roll one die and tell the number.",
        "input_schema": {
            "type": "object",
            "properties": {
                "sides": {
                    "type": "integer",
                    "description": "how many sides the die has",
                    "default": 6,
                }
            },
            "required": [],
            "additionalProperties": False,
        },
    }


@pytest.mark.asyncio
@pytest.mark.usefixtures("added")
async def test_the_example_passes_its_test(context: ToolContext) -> None:
    space: dict[str, Any] = {}
    exec(compile(read_example()[1], "test_dice.py", "exec"), space)
    found = [value for name, value in space.items() if name.startswith("test_")]
    assert len(found) == 1
    await found[0](context)


def test_the_table_names_every_tool() -> None:
    table = README.split("| tool | does |\n|---|---|\n")[1].split("\n\n")[0]
    named = [
        name for row in table.splitlines() for name in re.findall("`(\\w+)`", row.split("|")[1])
    ]
    assert sorted(named) == sorted({*TOOLS, *SERVED})


def test_the_table_of_packages_is_complete() -> None:
    table = README.split("| package | holds |\n|---|---|\n")[1].split("\n\n")[0]
    folders = {path.parent.name for path in HOME.glob("*/__init__.py")}
    assert {row.split("`")[1] for row in table.splitlines()} == folders


def test_every_file_holds_one_tool_of_its_name() -> None:
    files = {path.stem for path in HOME.glob("*.py")} - {"__init__"}
    assert files == set(TOOLS)
