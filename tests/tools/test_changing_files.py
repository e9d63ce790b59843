"""Tools edit, move and delete files, each change once however often the call is repeated."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.tools import samples
from tests.tools.memory import MemoryWorkspace
from tools.framework.execute import execute_tool
from tools.framework.registry import TOOLS
from tools.framework.tool import ToolContext, ToolResult

pytestmark = pytest.mark.asyncio


async def done(context: ToolContext, name: str, **arguments: object) -> str:
    result = await execute_tool(TOOLS[name], arguments, context)
    assert not result.is_error, result
    assert isinstance(result.content, str)
    return result.content


async def refused(context: ToolContext, name: str, **arguments: object) -> ToolResult:
    result = await execute_tool(TOOLS[name], arguments, context)
    assert result.is_error
    return result


async def test_an_exact_text_is_replaced_where_it_stands_once(
    context: ToolContext, workspace: MemoryWorkspace
) -> None:
    workspace.files["a.md"] = "rate: 500 €\nrate: 600\n".encode()
    said = await done(context, "edit_file", path="a.md", old="500 €", new="700 €")
    assert said == "Changed a.md in 1 place."
    assert workspace.files["a.md"].decode() == "rate: 700 €\nrate: 600\n"
    assert await done(context, "edit_file", path="a.md", old="rate", new="fee", all=True) == (
        "Changed a.md in 2 places."
    )
    assert await done(context, "edit_file", path="a.md", old="fee: 600\n", new="")
    assert workspace.files["a.md"].decode() == "fee: 700 €\n"


async def test_what_is_absent_or_ambiguous_is_refused_and_changes_nothing(
    context: ToolContext, workspace: MemoryWorkspace
) -> None:
    workspace.files["a.md"] = b"one one"
    for arguments, words in [
        ({"old": "two", "new": "x"}, "does not contain the text 'two'"),
        ({"old": "one", "new": "x"}, "2 times"),
        ({"old": "", "new": "x"}, "must be a text"),
        ({"old": "one", "new": "one"}, "must differ"),
    ]:
        said = await refused(context, "edit_file", path="a.md", **arguments)
        assert said.details["code"] == "bad_input"
        assert words in str(said.content)
    assert (await refused(context, "edit_file", path="b", old="a", new="b")).details["code"] == (
        "file_missing"
    )
    assert workspace.files == {"a.md": b"one one"}


async def test_line_ends_and_marks_of_a_file_stay_as_they_are(
    context: ToolContext, workspace: MemoryWorkspace
) -> None:
    workspace.files["a"] = b"\xef\xbb\xbfone\r\ntwo\r\nthree"
    await done(context, "edit_file", path="a", old="one\ntwo", new="1\n2")
    assert workspace.files["a"] == b"\xef\xbb\xbf1\r\n2\r\nthree"
    await done(context, "edit_file", path="a", old="three", new="3\n4")
    assert workspace.files["a"] == b"\xef\xbb\xbf1\r\n2\r\n3\r\n4"
    workspace.files["mixed"] = b"one\r\ntwo\nthree"
    await done(context, "edit_file", path="mixed", old="two\nthree", new="2\n3")
    assert workspace.files["mixed"] == b"one\r\n2\n3"


async def test_only_text_in_utf8_is_edited(
    context: ToolContext, workspace: MemoryWorkspace
) -> None:
    workspace.files |= {
        "a.pdf": samples.pdf("One"),
        "b": b"\0\1",
        "c": ("gr\xfc\xdfe " * 9 + "x" * 200).encode("latin-1"),
        "d": "One".encode("utf-16"),
    }
    for path in workspace.files:
        said = await refused(context, "edit_file", path=path, old="One", new="Two")
        assert said.details["code"] == "file_refused"


async def test_an_edit_between_reading_and_writing_is_not_lost(
    context: ToolContext, workspace: MemoryWorkspace
) -> None:
    workspace.files["a"] = b"one two"
    workspace.meanwhile = [("a", b"one two three"), ("a", b"one two three four")]
    await done(context, "edit_file", path="a", old="one", new="1")
    assert workspace.files["a"] == b"1 two three four"


async def test_a_file_that_never_rests_is_given_up(
    context: ToolContext, workspace: MemoryWorkspace
) -> None:
    workspace.files["a"] = b"one"
    workspace.meanwhile = [("a", b"one %d" % number) for number in range(30)]
    said = await refused(context, "edit_file", path="a", old="one", new="1")
    assert said.details["code"] == "file_changed"


async def test_a_change_repeated_after_a_crash_is_made_once(
    context: ToolContext, workspace: MemoryWorkspace
) -> None:
    workspace.files |= {"a": b"x", "b": b"one", "c": b"y"}
    calls = [
        ("edit_file", {"path": "a", "old": "x", "new": "xx"}),
        ("move_file", {"path": "b", "to": "d/b"}),
        ("delete_file", {"path": "c"}),
        ("write_file", {"path": "e", "content": "z"}),
    ]
    for number, (name, arguments) in enumerate(calls):
        call = replace(context, key=f"call {number}")
        for _ in range(2):
            await done(call, name, **arguments)
    assert workspace.files == {"a": b"xx", "d/b": b"one", "e": b"z"}


async def test_a_repeated_deletion_leaves_a_file_that_was_changed_since(
    context: ToolContext, workspace: MemoryWorkspace
) -> None:
    workspace.files["a"], workspace.changed["a"] = b"of the person", context.now()
    again = replace(context, key="call", repeats=context.now())
    assert (await refused(again, "delete_file", path="a")).details["code"] == "file_changed"
    assert workspace.files == {"a": b"of the person"}


async def test_a_repeated_move_leaves_a_file_that_was_put_in_its_place_since(
    context: ToolContext, workspace: MemoryWorkspace
) -> None:
    workspace.files["a"], workspace.changed["a"] = b"of the person", context.now()
    again = replace(context, key="call", repeats=context.now())
    assert (await refused(again, "move_file", path="a", to="b")).details["code"] == "file_changed"
    assert workspace.files == {"a": b"of the person"}


async def test_files_and_folders_are_moved_and_nothing_is_replaced(
    context: ToolContext, workspace: MemoryWorkspace
) -> None:
    workspace.files |= {"a/x": b"1", "a/b/y": b"2", "c": b"3"}
    assert await done(context, "move_file", path="a", to="d/e") == "Moved the 2 files of a to d/e."
    assert sorted(workspace.files) == ["c", "d/e/b/y", "d/e/x"]
    assert await done(context, "move_file", path="c", to="f.txt") == "Moved c to f.txt."
    for path, to, code in [
        ("f.txt", "d/e/x", "file_refused"),
        ("f.txt", "d", "file_refused"),
        ("d", "f.txt", "file_refused"),
        ("d", "f.txt/d", "file_refused"),
        ("d", "d/e/f", "file_refused"),
        ("d", "d", "file_refused"),
        ("nothing", "x", "file_missing"),
        ("", "x", "file_missing"),
        ("f.txt", "../x", "path_refused"),
        ("f.txt", "x/", "path_refused"),
    ]:
        said = await refused(context, "move_file", path=path, to=to)
        assert said.details["code"] == code, (path, to)
    assert sorted(workspace.files) == ["d/e/b/y", "d/e/x", "f.txt"]


async def test_a_folder_may_move_beside_itself_and_over_what_leaves(
    context: ToolContext, workspace: MemoryWorkspace
) -> None:
    workspace.files |= {"a/x": b"1", "ab": b"2"}
    await done(context, "move_file", path="a", to="abc")
    assert sorted(workspace.files) == ["ab", "abc/x"]


async def test_a_deleted_file_can_be_brought_back(
    context: ToolContext, workspace: MemoryWorkspace
) -> None:
    workspace.files["a"] = b"x"
    assert "bring it back" in await done(context, "delete_file", path="a")
    assert (workspace.files, workspace.trash) == ({}, {"a": b"x"})
    assert (await refused(context, "delete_file", path="a")).details["code"] == "file_missing"
