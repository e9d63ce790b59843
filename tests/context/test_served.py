"""Tools that the API runs itself: their results count, even where no figure includes them yet."""

from __future__ import annotations

import json
from typing import Any

from conversations.context.policy.gauge import Report, anchor_report
from conversations.context.view.envelope import build_envelope
from conversations.context.view.view import Message

REPORT = Report(1_000, 9_000, 500, 0)


def answer(*blocks: dict[str, Any]) -> Message:
    return Message.parse(2, "answer", json.dumps(blocks))


CALL = {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": []}


def test_an_answer_in_which_the_api_searched_is_never_taken_for_less_than_its_estimate() -> None:
    assert anchor_report(REPORT, answer(CALL, FOUND)).tokens == 9_500


def test_a_figure_that_has_the_results_already_is_kept() -> None:
    told = Report(20_000, 9_000, 500, 0)
    assert anchor_report(told, answer(CALL, FOUND)) == told


def test_any_other_answer_is_as_reported() -> None:
    assert anchor_report(REPORT, answer({"type": "text", "text": "Hello."})) == REPORT


def test_an_envelope_says_how_often_the_web_may_be_searched() -> None:
    ours = {"name": "fetch_url", "description": "Fetch.", "input_schema": {"type": "object"}}
    search = {"type": "web_search_20250305", "name": "web_search", "max_uses": 4}

    def searches(*tools: dict[str, Any]) -> int:
        return build_envelope(model="m", max_tokens=9, system="Be brief.", tools=tools).searches

    assert searches(ours, search) == 4
    assert searches(ours, search | {"max_uses": None}) == 0
    assert searches(ours) == searches() == 0
