"""The tool `recall`: ranges and matching lines of an original."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tools.framework.registry import TOOLS
from tools.framework.tool import ToolContext
from tools.framework.toolset import Toolset

pytestmark = pytest.mark.asyncio

run = Toolset(TOOLS).run

TEXT = "first line\nsecond LINE\n\nfourth\n"


async def recalled(context: ToolContext, **arguments: Any) -> tuple[str, str]:
    """Return the head line and the rest."""
    result = await run("recall", {"id": "toolu_1", **arguments}, context)
    assert not result.is_error, result
    head, _, body = str(result.content).partition("\n")
    return head, body


async def test_an_original_comes_back_to_the_letter(context: ToolContext, originals: Any) -> None:
    originals.texts["toolu_1"] = TEXT
    assert await recalled(context) == ("[toolu_1: 31 characters, showing 0 to 31]", TEXT)
    head, body = await recalled(context, start=6, length=4)
    assert (head, body) == (
        "[toolu_1: 31 characters, showing 6 to 10; continue with start=10]",
        "line",
    )
    assert (await recalled(context, start=25))[1] == TEXT[25:]


async def test_an_empty_original_is_empty(context: ToolContext, originals: Any) -> None:
    originals.texts["toolu_1"] = ""
    assert await recalled(context) == ("[toolu_1: 0 characters, showing 0 to 0]", "")


async def test_no_answer_is_longer_than_the_limit(context: ToolContext, originals: Any) -> None:
    originals.texts["toolu_1"] = "x" * 50_000
    head, body = await recalled(context, length=10**9)
    assert len(body) == 20_000
    assert "continue with start=20000" in head


async def test_matching_lines_come_with_their_numbers(context: ToolContext, originals: Any) -> None:
    originals.texts["toolu_1"] = TEXT
    head, body = await recalled(context, matching="Line")
    assert head == "[toolu_1: 31 characters, searched whole, 2 matches shown]"
    assert body == "1: first line\n2: second LINE"
    head, body = await recalled(context, matching="line", start=11)
    assert (head, body) == (
        "[toolu_1: 31 characters, searched from 11, 1 matches shown]",
        "2: second LINE",
    )
    assert (await recalled(context, matching=".*"))[1] == ""
    assert "0 matches" in (await recalled(context, matching="nowhere"))[0]


async def test_a_match_may_have_its_accents_written_otherwise(
    context: ToolContext, originals: Any
) -> None:
    originals.texts["toolu_1"] = "Über\nelse\nU\u0308ber, über, u\u0308ber"
    for matching in ("ÜBER", "u\u0308ber"):
        assert (await recalled(context, matching=matching))[1].split("\n") == [
            "1: Über",
            "3: U\u0308ber, über, u\u0308ber",
        ]
    originals.texts["toolu_1"] = "\ufa1b"  # A compatibility character, which normal forms replace.
    assert (await recalled(context, matching="\ufa1b"))[1] == "1: \ufa1b"


async def test_a_match_in_an_endless_line_is_shown_with_what_is_around_it(
    context: ToolContext, originals: Any
) -> None:
    originals.texts["toolu_1"] = "needle" + "x" * 300 + "needle" + "y" * 100_000 + "needle, needle"
    _, body = await recalled(context, matching="needle")
    lines = body.split("\n")
    assert lines[0] == "1: needle" + "x" * 200 + "…"
    assert lines[1] == "1: …" + "x" * 200 + "needle" + "y" * 200 + "…"
    assert lines[2] == "1: …" + "y" * 200 + "needle, needle"
    assert len(lines) == 3


async def test_many_matches_are_read_in_turns_that_meet(
    context: ToolContext, originals: Any
) -> None:
    originals.texts["toolu_1"] = "\n".join(f"row {number}" for number in range(300))
    seen: list[str] = []
    start = 0
    while True:
        head, body = await recalled(context, matching="row", length=500, start=start)
        assert len(body) <= 500
        seen += body.split("\n")
        if "start=" not in head:
            break
        start = int(head.partition("start=")[2].rstrip("]"))
    assert seen == [f"{number + 1}: row {number}" for number in range(300)]


async def test_a_match_wider_than_the_room_is_cut_and_passed(
    context: ToolContext, originals: Any
) -> None:
    originals.texts["toolu_1"] = "needle in a line\nneedle again"
    head, body = await recalled(context, matching="needle", length=5)
    assert body == "1: ne"
    assert "continue with start=17]" in head


@pytest.mark.parametrize("id_", ["toolu_2", "x" * 3_999, "../1"])
async def test_an_unknown_id_says_what_ids_look_like(id_: str, context: ToolContext) -> None:
    result = await run("recall", {"id": id_}, context)
    assert result.details["code"] == "unknown_original"
    assert "toolu_" in str(result.content)


@pytest.mark.parametrize("wrong", [{"start": -1}, {"length": 0}, {"length": -5}, {"start": 31}])
async def test_a_range_that_is_none_is_refused(
    wrong: dict[str, int], context: ToolContext, originals: Any
) -> None:
    originals.texts["toolu_1"] = TEXT
    assert (await run("recall", {"id": "toolu_1", **wrong}, context)).details["code"] == "bad_input"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    text=st.text(alphabet="ab\n", min_size=1), start=st.integers(0, 50), length=st.integers(1, 50)
)
async def test_a_range_is_that_slice(
    text: str, start: int, length: int, context: ToolContext, originals: Any
) -> None:
    originals.texts["toolu_1"] = text
    if start < len(text):
        assert (await recalled(context, start=start, length=length))[1] == text[
            start : start + length
        ]


async def test_without_an_id_the_originals_are_searched(
    context: ToolContext, originals: Any
) -> None:
    originals.texts |= {
        "toolu_1": "A page about tea.\n" * 50,
        "msg_7": "The deadline of the offer from Acme is 30 June." + " Nothing more." * 99,
        "toolu_2/input": "path: notes/acme.md\ntext: They pay 70,000.",
    }
    originals.shown = {"toolu_2/input"}
    result = str((await run("recall", {"query": "Acme deadline"}, context)).content)
    first, line, passage, *more = result.splitlines()
    assert first == "The best 2 for 'Acme deadline'; recall an id to read it:"
    assert line == 'recall "msg_7": a page (1,433 characters)'
    assert "deadline of the offer from Acme is 30 June." in passage
    assert more[0] == 'recall "toolu_2/input": a page (42 characters, in view)'
    originals.also = "toolu_2"
    result = str((await run("recall", {"query": "70,000"}, context)).content)
    assert 'recall "toolu_2/input" (and "toolu_2"): a page' in result
    nothing = await run("recall", {"query": "zebra"}, context)
    assert str(nothing.content).startswith("Nothing in this conversation has any of these words.")


async def test_a_search_names_near_copies_with_the_entry_they_are_copies_of(
    context: ToolContext, originals: Any
) -> None:
    page = " ".join(f"word{number}" for number in range(60))
    originals.texts |= {"toolu_1": f"{page} early", "toolu_2": f"{page} late"}
    result = str((await run("recall", {"query": "word7"}, context)).content)
    assert 'recall "toolu_2" (nearly the same: "toolu_1"): a page' in result
    assert result.startswith("The best 1 for")


@pytest.mark.parametrize("arguments", [{}, {"query": "  "}, {"id": "", "matching": ""}])
async def test_with_neither_id_nor_query_it_says_what_is_missing(
    context: ToolContext, arguments: dict[str, Any]
) -> None:
    result = await run("recall", arguments, context)
    assert result.is_error
    assert "Give an id to read, or a query to search for." in str(result.content)


@pytest.mark.parametrize("name", ["query", "matching"])
async def test_a_search_for_more_than_is_sensible_is_refused(
    context: ToolContext, originals: Any, name: str
) -> None:
    originals.texts["toolu_1"] = TEXT
    result = await run("recall", {"id": "toolu_1", name: "x" * 1_001}, context)
    assert result.is_error
    assert "at most 1,000 characters" in str(result.content)


async def test_letters_that_grow_in_lower_case_do_not_move_what_is_found(
    context: ToolContext, originals: Any
) -> None:
    originals.texts["toolu_1"] = "İİİ" * 400 + " Ankara " + "İ" * 400
    _, body = await recalled(context, matching="ankara")
    assert " Ankara " in body
