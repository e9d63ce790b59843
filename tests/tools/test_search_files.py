"""The tool `search_files`: text is found in bounded time."""

from __future__ import annotations

from typing import Literal
from unicodedata import normalize

import pytest

from tests.tools import samples
from tests.tools.memory import MemoryWorkspace
from tools import search_files as module
from tools.framework.execute import execute_tool
from tools.framework.registry import TOOLS
from tools.framework.tool import ToolContext

pytestmark = pytest.mark.asyncio


async def found(context: ToolContext, **arguments: object) -> list[str]:
    result = await execute_tool(TOOLS["search_files"], arguments, context)
    assert not result.is_error, result
    return str(result.content).split("\n")


async def test_matching_lines_come_with_file_and_number(
    context: ToolContext, workspace: MemoryWorkspace
) -> None:
    workspace.files |= {
        "a.md": b"first\nThe RATE is 500\r\nend rate",
        "b/c.md": b"no match",
        "d.bin": b"\0\1rate",
    }
    assert await found(context, text="rate") == [
        "a.md:2: The RATE is 500",
        "a.md:3: end rate",
        "[2 matches in 1 file, 3 of 3 searched; not text, or not readable: d.bin]",
    ]
    assert await found(context, text="first\n", path="b") == [
        "Nothing was found.",
        "[0 matches in 0 files, 1 of 1 searched]",
    ]


async def test_names_are_matched_by_globs(context: ToolContext, workspace: MemoryWorkspace) -> None:
    workspace.files |= {"a.md": b"x", "b/c.MD": b"x", "b/d.txt": b"x"}
    assert [line.partition(":")[0] for line in await found(context, text="x", names="*.md")] == [
        "a.md",
        "b/c.MD",
        "[2 matches in 2 files, 2 of 2 searched]",
    ]
    assert (await found(context, text="", names="b/*"))[:2] == [
        "b/c.MD (1 bytes)",
        "b/d.txt (1 bytes)",
    ]
    result = await execute_tool(TOOLS["search_files"], {"text": " "}, context)
    assert result.details["code"] == "bad_input"


async def test_documents_are_searched_by_the_lines_that_reading_shows(
    context: ToolContext, workspace: MemoryWorkspace
) -> None:
    workspace.files |= {"z.txt": b"Two", "a.pdf": samples.pdf("One", "Two"), "b.pdf": b"%PDF-junk"}
    assert await found(context, text="two") == [
        "z.txt:1: Two",
        "a.pdf:5: Two",
        "[2 matches in 2 files, 3 of 3 searched; not text, or not readable: b.pdf]",
    ]


@pytest.mark.parametrize("form", ["NFC", "NFD"])
async def test_accents_are_found_however_they_are_stored(
    context: ToolContext, workspace: MemoryWorkspace, form: Literal["NFC", "NFD"]
) -> None:
    workspace.files["a.md"] = "in Zürich\nin Zu\u0308rich\nin Zurich".encode()
    lines = await found(context, text=normalize(form, "zürich"))
    assert [line[:6] for line in lines] == ["a.md:1", "a.md:2", "[2 mat"]


async def test_a_long_line_is_shown_around_its_match_and_once(
    context: ToolContext, workspace: MemoryWorkspace
) -> None:
    workspace.files["a"] = b"x" * 9_000 + b" needle needle " + b"y" * 9_000
    (line, _) = await found(context, text="needle")
    assert line.startswith("a:1: …xxx")
    assert "needle" in line
    assert len(line) < 400


async def test_matches_and_time_are_bounded_and_it_is_said(
    context: ToolContext, workspace: MemoryWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace.files |= {"a": b"x\n" * 1_000, "b": b"x"}
    lines = await found(context, text="x")
    assert len(lines) == 201
    assert "more may follow" in lines[-1]
    monkeypatch.setattr(module, "DEADLINE", -1.0)
    assert "0 of 2 searched; time was up" in (await found(context, text="x"))[-1]


@pytest.mark.parametrize("text", ["(a+)+$", ".*" * 50, "[", "\\", "a" * 3_999])
async def test_text_is_text_and_never_a_pattern(
    text: str, context: ToolContext, workspace: MemoryWorkspace
) -> None:
    workspace.files |= {"a": b"a" * 4_000 + b"!", "b": text.encode()[:5_000]}
    assert any(line.startswith("b:1: ") for line in await found(context, text=text))
    await found(context, text="a", names="*a" * 40 + "b")


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ("a" * 3_999 + "b", b"a" * 2_000_000),
        ("b" + "a" * 3_999, b"a" * 2_000_000),
        ("ab" * 1_999, b"ba" * 500_000 + b"b" * 500_000),
    ],
)
async def test_no_text_is_slow_to_search(
    text: str, content: bytes, context: ToolContext, workspace: MemoryWorkspace
) -> None:
    """A search that compares the text at every place would take minutes for each of these."""
    workspace.files["long.txt"] = content
    lines = await found(context, text=text)
    assert lines[-1].endswith("1 of 1 searched]")


async def test_names_are_short_and_read_once(
    context: ToolContext, workspace: MemoryWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    known = module.translate

    def translate(names: str) -> str:
        read.append(names)
        return known(names)

    monkeypatch.setattr(module, "translate", translate)
    workspace.files |= {f"{at}.md": b"x" for at in range(300)}
    assert (await found(context, text="x", names="[0-9]" * 3 + "*.md"))[-1].startswith("[200")
    assert len(read) == 1
    call = {"text": "x", "names": "[" * 1_500}
    result = await execute_tool(TOOLS["search_files"], call, context)
    assert result.details["code"] == "bad_input"
    assert "at most 200" in str(result.content)
