from __future__ import annotations

import pytest

from conversations.context.errors import RuleError
from conversations.context.steps.restore import demand_legal
from conversations.context.view import rules
from conversations.context.view.cache_breakpoints import CONTROLS
from conversations.context.view.view import Kind, Message, View
from tests.context.samples import (
    IMAGE,
    THOUGHT,
    Part,
    answer,
    prompt,
    result,
    results,
    text,
    use,
    view_of,
)

Talk = list[tuple[Kind, list[Part]]]

MARK = {"cache_control": CONTROLS["5m"]}
SEARCH = {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": []}
SEARCH_2, FOUND_2 = {**SEARCH, "id": "srv_2"}, {**FOUND, "tool_use_id": "srv_2"}
CALLER = {"caller": {"type": "code_execution_20250825", "tool_id": "srv_1"}}
BLANK = text("\n\n")
ASK = answer(use("t1"))
GOT = results(result("t1"))


@pytest.mark.parametrize(
    "talk",
    [
        [prompt("a")],
        [prompt("a"), prompt("b")],
        [prompt("a"), answer("b"), answer("c"), prompt("d")],
        [prompt("a"), ASK, results(result("t1"), "more")],
        [prompt("a"), ASK, GOT, prompt("and")],
        [prompt("a"), answer(use("t1")), answer(use("t2")), results(result("t2"), result("t1"))],
        [prompt("a"), ASK, results({"type": "tool_result", "tool_use_id": "t1"})],
        [prompt("a"), ASK, results(result("t1", [text("x"), IMAGE]))],
        [prompt("a"), answer(THOUGHT, SEARCH, FOUND, "x"), prompt("b")],
        [prompt("a"), answer(SEARCH), answer(FOUND, "x"), prompt("b")],
        [prompt("a"), answer(SEARCH)],
        [prompt("a"), answer(SEARCH, FOUND, BLANK)],
        [prompt("a"), answer(BLANK, THOUGHT, "b", BLANK), prompt("c")],
        [prompt("a"), answer(SEARCH, use("t1")), GOT],
        [prompt("a"), answer(SEARCH, use("t1")), GOT, answer(FOUND, "x"), prompt("b")],
        [prompt("a"), answer(SEARCH), answer(FOUND, SEARCH_2, use("t1")), GOT, answer(FOUND_2)],
        [
            prompt("a"), answer(SEARCH, use("t1") | CALLER), GOT,
            answer(use("t2") | CALLER), results(result("t2")), answer(FOUND, "x"), prompt("b"),
        ],
        [prompt("a"), answer({**SEARCH, "type": "mcp_tool_use"})],
        [answer({"type": "compaction", "content": "x"}), prompt("b")],
        [prompt("a"), answer("b"), prompt({**text("c"), **MARK})],
        [prompt("a"), answer({"type": "redacted_thinking", "data": "x"}, "b"), prompt("c")],
    ],
)  # fmt: skip
def test_what_the_api_takes_passes(talk: Talk) -> None:
    rules.check_rules(view_of(*talk))


@pytest.mark.parametrize(
    ("rule", "talk"),
    [
        ("empty", []),
        ("first", [answer("a"), prompt("b")]),
        ("end", [prompt("a"), answer("b")]),
        ("end", [prompt("a"), ASK]),
        ("unanswered", [prompt("a"), ASK, prompt("b")]),
        ("unanswered", [prompt("a"), ASK, prompt("b"), answer("c"), prompt("d")]),
        ("unanswered", [prompt("a"), answer(use("t1"), use("t2")), GOT]),
        ("unexpected", [prompt("a"), GOT]),
        ("unexpected", [GOT]),
        ("unexpected", [prompt("a"), ASK, GOT, answer("b"), GOT]),
        ("duplicate", [prompt("a"), ASK, results(result("t1"), result("t1"))]),
        ("duplicate", [prompt("a"), ASK, GOT, GOT]),
        ("unique", [prompt("a"), ASK, GOT, ASK, GOT]),
        ("order", [prompt("a"), ASK, results("first", result("t1"))]),
        ("order", [prompt("a"), ASK, prompt("first"), GOT]),
        ("server_tool", [prompt("a"), answer(SEARCH), prompt("b")]),
        ("server_tool", [prompt("a"), answer(FOUND, "b"), prompt("c")]),
        ("server_tool", [prompt("a"), answer(FOUND, SEARCH, "b"), prompt("c")]),
        ("server_tool", [prompt("a"), answer(SEARCH, FOUND, FOUND), prompt("c")]),
        ("server_tool", [prompt("a"), answer(SEARCH, FOUND), answer(FOUND, "b"), prompt("c")]),
        ("server_tool", [prompt("a"), answer(SEARCH, use("t1")), GOT, prompt("b")]),
        ("server_tool", [prompt("a"), answer(SEARCH, use("t1")), GOT, answer("b"), prompt("c")]),
        ("server_tool", [
            prompt("a"), answer(SEARCH, use("t1")), GOT, answer(use("t2")), results(result("t2")),
        ]),
        ("kind", [prompt(THOUGHT)]),
        ("kind", [prompt(use("t1"))]),
        ("kind", [prompt("a"), answer(IMAGE), prompt("b")]),
        ("kind", [prompt("a"), ASK, results(result("t1", [result("t2")]))]),
        ("kind", [prompt("a"), ASK, results(result("t1", ["no block"]))]),
        ("text", [prompt("")]),
        ("text", [prompt(" \n")]),
        ("text", [prompt({"type": "text"})]),
        ("text", [prompt("a"), ASK, results(result("t1", [text("")]))]),
        ("thinking", [prompt("a"), answer({"type": "thinking", "thinking": "x"}), prompt("b")]),
        ("thinking", [prompt("a"), answer({"type": "redacted_thinking"}), prompt("b")]),
        ("id", [prompt("a"), answer(use("no good")), prompt("b")]),
        ("id", [prompt("a"), answer({**SEARCH, "id": ""}), prompt("b")]),
        ("id", [prompt("a"), answer(SEARCH, {**FOUND, "tool_use_id": 1}), prompt("b")]),
        ("id", [prompt("a"), ASK, results(result("é"))]),
        ("name", [prompt("a"), answer(use("t1", "x" * 129)), prompt("b")]),
        ("input", [prompt("a"), answer({**use("t1"), "input": []}), prompt("b")]),
        ("is_error", [prompt("a"), ASK, results(result("t1", is_error=None))]),
        ("content", [prompt("a"), ASK, results(result("t1", None))]),
        ("source", [prompt({"type": "image"})]),
        ("cache_control", [prompt(*[{**text("a"), **MARK}] * 2)]),
        ("cache_control", [prompt({**text("a"), "cache_control": CONTROLS["1h"]})]),
        ("cache_control", [prompt({**text("a"), "cache_control": {"type": "x"}})]),
        ("cache_control", [prompt({**text("a"), "cache_control": 1})]),
        ("cache_control", [prompt("a"), answer({**THOUGHT, **MARK}), prompt("b")]),
        ("cache_control", [
            prompt({**text("a"), **MARK}), ASK,
            results(result("t1", [{**text("b"), **MARK}])),
        ]),
    ],
)  # fmt: skip
def test_what_the_api_refuses_is_named(rule: str, talk: Talk) -> None:
    with pytest.raises(RuleError) as caught:
        rules.check_rules(view_of(*talk))
    assert caught.value.rule == rule
    assert caught.value.where.startswith("messages")


def test_content_that_is_no_array_and_messages_without_end_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for content in ('{"a":1}', '[{"type":1}]', "[1]"):
        with pytest.raises(RuleError) as caught:
            rules.check_rules(View().append(Message(1, "prompt", content, 1)))
        assert caught.value.rule == "content"
    monkeypatch.setattr(rules, "MOST_MESSAGES", 1)
    with pytest.raises(RuleError) as caught:
        rules.check_rules(view_of(prompt("a"), prompt("b")))
    assert caught.value.rule == "count"


def test_a_broken_rule_is_found_again() -> None:
    view = view_of(prompt("a"), GOT)
    for _ in range(2):
        with pytest.raises(RuleError):
            rules.check_rules(view)


def test_cuts_never_part_a_call_from_its_result() -> None:
    view = view_of(
        prompt("a"), answer(use("t1"), use("t2")), results(result("t1"), result("t2")),
        answer(SEARCH), answer(FOUND), prompt("b"), answer(use("t3")),
    )  # fmt: skip
    assert rules.find_cuts(view) == [0, 1, 3, 5, 6]


def test_cuts_never_part_an_answer_from_the_result_that_the_next_one_begins_with() -> None:
    view = view_of(
        prompt("a"), answer(SEARCH, use("t1")), GOT, answer(FOUND, SEARCH_2), answer(FOUND_2),
        prompt("b"), answer("c"),
    )  # fmt: skip
    assert rules.find_cuts(view) == [0, 1, 5, 6, 7]


def test_a_call_that_its_turn_left_without_a_result_does_not_keep_later_messages_from_a_cut() -> (
    None
):
    view = view_of(prompt("a"), answer(SEARCH), prompt("b"), answer("c"))
    assert rules.find_cuts(view) == [0, 1, 3, 4]


def test_a_message_without_blocks_is_not_judged() -> None:
    view = view_of(prompt("a")).append(Message(2, "answer", "[]", 4))
    rules.check_rules(view)


def test_a_change_must_keep_the_rules_that_held_before_it() -> None:
    broken = view_of(prompt("a"), answer(use("t")), prompt("b"))
    with pytest.raises(RuleError):
        demand_legal(view_of(prompt("a")), broken)
    demand_legal(broken, broken)
