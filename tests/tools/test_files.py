"""The tools that list, read and write files."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.tools import samples
from tests.tools.memory import MemoryWorkspace
from tools.framework.registry import TOOLS
from tools.framework.tool import ToolContext, ToolResult
from tools.framework.toolset import Toolset

pytestmark = pytest.mark.asyncio

run = Toolset(TOOLS).run


async def text(context: ToolContext, name: str, **arguments: object) -> str:
    result = await run(name, arguments, context)
    assert not result.is_error, result
    assert isinstance(result.content, str)
    return result.content


async def refusal(context: ToolContext, name: str, **arguments: object) -> ToolResult:
    result = await run(name, arguments, context)
    assert result.is_error
    return result


async def test_a_written_file_is_read_back_to_the_letter(context: ToolContext) -> None:
    content = "# Criteria\n\n.NET, remote, 500–700 €\n"
    assert await text(context, "write_file", path="a/b.md", content=content) == (
        "Created a/b.md (40 bytes)."
    )
    assert await text(context, "read_file", path="a/b.md") == content
    assert (
        await text(context, "write_file", path="a/b.md", content="") == "Replaced a/b.md (0 bytes)."
    )
    assert await text(context, "read_file", path="a/b.md") == "[the file is empty]"


async def test_files_are_listed_with_their_sizes(context: ToolContext) -> None:
    assert await text(context, "list_files") == "There are no files here."
    await text(context, "write_file", path="b.txt", content="x" * 1_234)
    await text(context, "write_file", path="a/c.txt", content="x")
    assert await text(context, "list_files") == "a/c.txt (1 bytes)\nb.txt (1,234 bytes)"
    assert await text(context, "list_files", path="./a/") == "a/c.txt (1 bytes)"


async def test_a_long_list_is_bounded_and_says_so(
    context: ToolContext, workspace: MemoryWorkspace
) -> None:
    workspace.files = {f"{number:04}": b"" for number in range(1_003)}
    lines = (await text(context, "list_files")).split("\n")
    assert len(lines) == 1_001
    assert lines[-1] == "[1,000 of 1,003 files shown; list a folder for less]"


@pytest.mark.parametrize(
    ("offset", "limit", "expected"),
    [
        (0, 0, "a\nb\r\nc\u2028d\ne"),
        (1, 2, "b\r\nc\u2028d\n[lines 2 to 3 of 4; continue with offset=3]"),
        (3, 0, "e\n[lines 4 to 4 of 4]"),
        (0, 1, "a\n[lines 1 to 1 of 4; continue with offset=1]"),
        (0, 4, "a\nb\r\nc\u2028d\ne"),
        (0, 99, "a\nb\r\nc\u2028d\ne"),
    ],
)
async def test_a_range_of_lines_says_where_it_is(
    offset: int, limit: int, expected: str, context: ToolContext
) -> None:
    await text(context, "write_file", path="x", content="a\nb\r\nc\u2028d\ne")
    assert await text(context, "read_file", path="x", offset=offset, limit=limit) == expected


@pytest.mark.parametrize("arguments", [{"offset": 4}, {"offset": -1}, {"limit": -1}])
async def test_a_range_outside_the_file_is_said_so(
    arguments: dict[str, int], context: ToolContext
) -> None:
    await text(context, "write_file", path="x", content="a\nb\nc\nd\n")
    assert (await refusal(context, "read_file", path="x", **arguments)).details[
        "code"
    ] == "bad_input"


async def test_long_files_are_read_in_pieces_that_join(context: ToolContext) -> None:
    roomy = replace(context, workspace=MemoryWorkspace())
    content = "".join(f"line {number} {'x' * 90}\n" for number in range(1_000))
    await text(roomy, "write_file", path="x", content=content)
    pieces, offset = [], 0
    while True:
        piece = await text(roomy, "read_file", path="x", offset=offset)
        body, _, notice = piece.rpartition("\n[")
        pieces.append(f"{body}\n")
        assert len(body) <= 40_000
        if "offset=" not in notice:
            break
        offset = int(notice.partition("offset=")[2].rstrip("]"))
    assert "".join(pieces) == content


async def test_one_endless_line_is_read_in_parts_that_join(context: ToolContext) -> None:
    roomy = replace(context, workspace=MemoryWorkspace())
    await text(roomy, "write_file", path="x", content="x" * 40_000 + "y" * 10_000 + "\nend")
    cut = await text(roomy, "read_file", path="x")
    note = "line 1 of 2 has 50,001 characters, 0 to 40,000 shown"
    assert cut == "x" * 40_000 + f"\n[{note}; continue with offset=0 and start=40000]"
    rest = await text(roomy, "read_file", path="x", offset=0, start=40_000)
    note = "line 1 of 2 has 50,001 characters, 40,000 to 50,001 shown"
    assert rest == "y" * 10_000 + f"\n[{note}; continue with offset=1]"
    only = await text(roomy, "read_file", path="x", offset=1)
    assert only == "end\n[lines 2 to 2 of 2]"
    last = await text(roomy, "read_file", path="x", offset=1, start=1)
    assert last == "nd\n[line 2 of 2 has 3 characters, 1 to 3 shown]"
    for wrong in ({"offset": 1, "start": 3}, {"start": -1}):
        result = await refusal(roomy, "read_file", path="x", **wrong)
        assert result.details["code"] == "bad_input"


@pytest.mark.parametrize(
    "data", [b"\x89PNG\r\n\x1a\n\0\0", b"a\0b", b"\xff\xfe" * 100, b"\x80" * 50]
)
async def test_a_binary_file_is_refused_as_such(data: bytes, context: ToolContext) -> None:
    context.workspace.write("x.bin", data)
    assert "binary" in str((await refusal(context, "read_file", path="x.bin")).content)


async def test_stray_bytes_and_a_byte_order_mark_do_not_hide_the_text(context: ToolContext) -> None:
    context.workspace.write(
        "x", b"\xef\xbb\xbfgr\xfc\xdf aus dem Norden, mit vielen Gr\xfc\xdfen und noch mehr Text"
    )
    assert (await text(context, "read_file", path="x")).startswith("gr\ufffd\ufffd aus")


async def test_lone_surrogates_are_written_as_replacements(context: ToolContext) -> None:
    await text(context, "write_file", path="x", content="a\ud800b")
    assert context.workspace.read("x") == "a\ufffdb".encode()


async def test_a_document_is_read_as_text_and_by_parts(context: ToolContext) -> None:
    context.workspace.write("a.pdf", samples.pdf("One", "Two"))
    assert await text(context, "read_file", path="a.pdf") == (
        "[page 1 of 2]\nOne\n\n[page 2 of 2]\nTwo"
    )
    assert await text(context, "read_file", path="a.pdf", part="2") == "[page 2 of 2]\nTwo"
    assert await text(context, "read_file", path="a.pdf", offset=4, limit=1) == (
        "Two\n[lines 5 to 5 of 5]"
    )
    wrong = await refusal(context, "read_file", path="a.pdf", part="3")
    assert wrong.details["code"] == "bad_input"


async def test_a_table_is_readable_and_its_source_exact(context: ToolContext) -> None:
    context.workspace.write("a.csv", b"x;y\n1;2\n")
    assert await text(context, "read_file", path="a.csv") == "| x | y |\n| --- | --- |\n| 1 | 2 |\n"
    assert await text(context, "read_file", path="a.csv", source=True) == "x;y\n1;2\n"
    context.workspace.write("a.pdf", samples.pdf("One"))
    assert "no source" in str(
        (await refusal(context, "read_file", path="a.pdf", source=True)).content
    )
