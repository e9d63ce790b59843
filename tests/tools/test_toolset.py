"""The tools of an agent: the same bytes at every call, run by name, refused in plain words."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import tools
from tools.framework.registry import TOOLS, discover_tools
from tools.framework.schema import SignatureError
from tools.framework.tool import ToolContext
from tools.framework.toolset import NO_TOOLS, Toolset

SEARCH = {"type": "web_search_20260209", "name": "web_search", "max_uses": 3}
SCRATCH = '''
from tools.framework.tool import ToolContext, tool


@tool(icon="tool", effect="read")
async def {name}(context: ToolContext) -> str:
    """Do nothing."""
    return ""
'''


def test_the_definitions_are_the_same_bytes_in_every_process() -> None:
    own = json.dumps(Toolset(TOOLS).definitions())
    program = (
        "import json; from tools.framework.registry import TOOLS;"
        "from tools.framework.toolset import Toolset;"
        "print(json.dumps(Toolset(TOOLS).definitions()))"
    )
    for seed in ("1", "2"):
        made = subprocess.run(
            [sys.executable, "-c", program],
            cwd=Path(__file__).parents[2],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        assert made.stdout.strip() == own


def test_recall_is_offered_from_the_first_call_on() -> None:
    assert "recall" in [each["name"] for each in Toolset(TOOLS).definitions()]


def test_what_the_api_runs_comes_last_and_as_it_was_given() -> None:
    found = Toolset(TOOLS, (SEARCH,))
    assert found.definitions()[-1] == SEARCH
    assert found.definitions()[:-1] == Toolset(TOOLS).definitions()


def test_a_changed_definition_changes_nothing_here() -> None:
    found = Toolset(TOOLS, (SEARCH,))
    for each in found.definitions():
        each.clear()
    assert found.definitions()[-1] == SEARCH
    assert found.definitions()[0]["name"] == next(iter(TOOLS))


def test_the_effects_are_those_that_the_tools_declare() -> None:
    assert Toolset(TOOLS).effects["write_file"] == TOOLS["write_file"].effect
    assert NO_TOOLS.effects == {}


@pytest.mark.asyncio
async def test_a_tool_that_may_not_be_used_is_answered_with_the_reason(
    context: ToolContext,
) -> None:
    found = Toolset({}, refused={"fetch_url": "the person has switched it off."})
    result = await found.run("fetch_url", {"url": "https://e.org"}, context)
    assert result.content == ("The tool fetch_url cannot be used: the person has switched it off.")
    assert (result.is_error, result.details) == (True, {"code": "tool_off"})
    unknown = await found.run("nope", {}, context)
    assert unknown.content == "There is no tool 'nope'. The tools are: none."


def test_a_file_of_the_folder_is_a_tool_and_a_folder_in_it_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tools, "__path__", [*tools.__path__, str(tmp_path)])
    for name in ("zz_second", "aa_first"):
        tmp_path.joinpath(f"{name}.py").write_text(SCRATCH.format(name=name), encoding="utf-8")
    tmp_path.joinpath("inner").mkdir()
    tmp_path.joinpath("inner", "__init__.py").write_text("raise ValueError", encoding="utf-8")
    found = discover_tools(tools.__path__)
    assert list(found) == sorted([*TOOLS, "aa_first", "zz_second"])
    # What is read again is the same tool.
    assert discover_tools(tools.__path__) == found


def test_two_tools_of_one_name_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools, "__path__", [*tools.__path__, str(tmp_path)])
    tmp_path.joinpath("other_clock.py").write_text(
        SCRATCH.format(name="current_time"), encoding="utf-8"
    )
    with pytest.raises(SignatureError, match="another tool named current_time"):
        discover_tools(tools.__path__)


def test_a_tool_may_be_named_in_several_files() -> None:
    assert replace(TOOLS["recall"]) == TOOLS["recall"]
    assert discover_tools(tools.__path__)["recall"] is TOOLS["recall"]
