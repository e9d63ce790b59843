"""Repairs of the API's own calls and results."""

from __future__ import annotations

from typing import Any

from conversations.context.errors import RuleError
from conversations.context.policy.policy import Policy
from conversations.context.view.view import Message, View
from tests.context.samples import (
    Shell,
    answer,
    prompt,
    results,
    situation,
    use,
    view_of,
)
from tests.context.test_repair import obeying, types


def test_searches_that_break_a_rule_although_each_has_its_result_are_left_out(
    monkeypatch: Any,
) -> None:
    def find(view: View) -> RuleError | None:
        is_odd = "web_search" in view.body
        return RuleError("server_tool", "messages.1", "no such tool any more") if is_odd else None

    search: Any = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}}
    found: Any = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []}
    view = obeying(view_of(prompt("a"), answer(search, found, "b"), prompt("c")), monkeypatch, find)
    assert types(view) == [["text"], ["text"], ["text"]]


def test_a_search_whose_result_came_after_a_tool_s_is_left_out_alone(monkeypatch: Any) -> None:
    def find(view: View) -> RuleError | None:
        is_odd = '"s1"' in view.body
        return RuleError("server_tool", "messages.1", "not answered") if is_odd else None

    one, other = ({"type": "server_tool_use", "id": key, "name": "web_search", "input": {}}
                  for key in ("s1", "s2"))  # fmt: skip
    found, known = ({"type": "web_search_tool_result", "tool_use_id": key, "content": []}
                    for key in ("s1", "s2"))  # fmt: skip
    talk = [prompt("a"), answer(one, other, known, use("t1")), results("t1"), answer(found, "b")]
    view = obeying(view_of(*talk, prompt("c")), monkeypatch, find)
    assert '"s2"' in view.body


def test_the_pipeline_repairs_what_stands_behind_a_search_that_came_to_nothing() -> None:
    search: Any = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}}
    view = view_of(prompt("a"), answer("b", search), prompt("c"), answer("d"))
    view = view.append(Message(5, "prompt", '["?', 5))
    shell = Shell()
    done = shell.prepare(view, situation(), Policy())
    assert shell.kinds == ["repair applied"]
    assert "web_search" not in done.view.body
