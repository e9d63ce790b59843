"""Sentences about tool calls: what is done, in the present and in the past, never a raw name."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.template.loader import render_to_string
from django.utils import translation

from conversations.toolbox import call_labels
from conversations.toolbox.call_labels import CallLabel, find_subject, phrase_call, phrase_calls
from conversations.toolbox.tool_labels import TOOL_LABELS, name_tool
from conversations.transcript.shapes import Round, ToolCard

#: An address, a folder, a query, receivers: something that each tool's sentence can name.
GIVEN: dict[str, Any] = {
    "path": "notes/plan.md", "url": "https://www.example.org/a?b=1", "query": "budget",
    "text": "budget", "to": ["ann@example.org", "bob@example.org"],
}  # fmt: skip


def say(name: str, given: dict[str, Any], state: str) -> str:
    return join(phrase_call(name, find_subject(name, given), state))


def join(words: CallLabel) -> str:
    return words.before + words.what + words.after


@pytest.mark.parametrize("name", [*TOOL_LABELS, "web_search", "web_fetch"])
@pytest.mark.parametrize("given", [GIVEN, {}], ids=["named", "alone"])
def test_each_tool_has_a_sentence_for_its_running_and_for_its_end(
    name: str, given: dict[str, Any]
) -> None:
    now, done, failed = (say(name, given, state) for state in ("started", "ok", "error"))
    assert given == {} or len({now, done, failed}) == 3
    assert not any(re.search(r"\w_\w|%\(", line) for line in (now, done, failed))
    assert failed.startswith(str(name_tool(name)))


@pytest.mark.parametrize(
    ("name", "given", "state", "line"),
    [
        ("fetch_url", GIVEN, "planned", "Reading a page of example.org"),
        ("fetch_url", {"url": "javascript:1"}, "ok", "Read a web page"),
        ("read_file", GIVEN, "ok", "Read notes/plan.md"),
        ("read_file", GIVEN, "denied", "Read a file · notes/plan.md"),
        ("search_files", GIVEN, "started", "Searching the workspace for “budget”"),
        ("send_mail", GIVEN, "ok", "Sent an e-mail to ann@example.org, bob@example.org"),
        ("list_files", {"path": ""}, "ok", "Listed the files of the workspace"),
        ("recall", {"query": 7}, "ok", "Read an earlier result again"),
        ("roll_dice", {"sides": 2}, "ok", "Used Roll dice"),
        ("mcp__tracker__create-issue", {}, "started", "Using Create issue (tracker)"),
        ("mcp__", {}, "ok", "Used Mcp"),
    ],
)
def test_a_sentence_names_what_the_call_is_about(
    name: str, given: dict[str, Any], state: str, line: str
) -> None:
    assert say(name, given, state) == line


def test_what_a_call_names_is_one_short_line_and_never_a_place_for_values() -> None:
    found = find_subject("read_file", {"path": "a\n%(what)s " + "b" * 999})
    assert len(found) == call_labels.LONGEST
    assert join(phrase_call("read_file", found, "ok")) == f"Read {found}"


@pytest.mark.parametrize(
    ("names", "subjects", "is_running", "line"),
    [
        (["fetch_url"] * 3, ["example.org"] * 3, True, "Reading 3 pages of example.org"),
        (["fetch_url"] * 3, ["example.org"] * 3, False, "Read 3 pages of example.org"),
        (["fetch_url"] * 2, ["example.org", "example.net"], False, "Read 2 pages"),
        (["web_search"] * 2, ["tea", "tea"], False, "Made 2 searches of the web"),
        (["read_file", "fetch_url"], ["a", "b"], True, "Using 2 tools"),
        (["current_time"] * 2, ["", ""], False, "Used 2 tools"),
    ],
)
def test_several_calls_have_one_sentence(
    names: list[str], subjects: list[str], is_running: bool, line: str
) -> None:
    assert join(phrase_calls(names, subjects, is_running=is_running)) == line
    assert call_labels.is_counted(names) is (" tools" not in line)


def card(name: str, state: str) -> ToolCard:
    is_error = state in ("error", "denied", "unknown")
    return ToolCard(name + state, name, "", "{}", state, "", False, is_error, None)


@pytest.mark.parametrize(
    ("calls", "line", "counts"),
    [
        (["write_file ok", "write_file ok"], "Wrote 2 files", True),
        (["write_file ok", "write_file denied"], "Wrote 1 file", True),
        (["write_file started", "write_file denied"], "Writing 2 files", True),
        (["write_file cancelled", "write_file cancelled"], "Write a file", False),
        (["send_mail denied", "write_file error"], "Send an e-mail · Write a file", False),
    ],
)
def test_calls_that_did_not_end_well_are_not_said_to_be_done(
    calls: list[str], line: str, counts: bool
) -> None:
    row = Round(1, tools=tuple(card(*each.split()) for each in calls))
    assert (join(row.tools_label), row.is_counted) == (line, counts)


def test_the_calls_of_a_round_are_folded_below_their_sentence() -> None:
    row = Round(1, tools=(card("write_file", "ok"), card("write_file", "error")))
    page = render_to_string("conversations/_partials/round.html", {"round": row})
    summary = page.partition("<summary>")[2].partition("</summary>")[0]
    assert "Wrote" in summary
    assert "1 file" in summary


def test_the_sentence_is_in_the_language_of_the_reader() -> None:
    with translation.override("de"):
        assert say("read_file", GIVEN, "ok") == "notes/plan.md gelesen"
        assert join(phrase_calls(["read_file"] * 2, ["a", "b"], is_running=True)) == (
            "Liest 2 Dateien"
        )
