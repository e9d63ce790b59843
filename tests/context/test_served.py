"""Tools that the API runs itself: their results count, even where no figure includes them yet."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from conversations.context.policy.gauge import LoopFigures, Report, anchor_report
from conversations.context.view.envelope import build_envelope
from conversations.context.view.view import Message

REPORT = Report(1_000, 9_000, 500, 0)


def answer(*blocks: dict[str, Any]) -> Message:
    return Message.parse(2, "answer", json.dumps(blocks))


CALL = {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": []}


def sized(*blocks: dict[str, Any], **figures: Any) -> int:
    loop = LoopFigures(**{"first": None, "read": 0, "written": 0} | figures)
    made = answer(*blocks)
    report = replace(REPORT, view_tokens=REPORT.view_tokens + made.tokens)
    anchored = anchor_report(report, made, loop)
    assert anchored.source == "estimated"
    return anchored.tokens


def found(tokens: int) -> dict[str, Any]:
    return {**FOUND, "content": [{"encrypted_content": "e" * (tokens * 10 // 3)}]}


def search(number: int, result: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    name = f"srv_{number}"
    return {**CALL, "id": name}, {**result, "tool_use_id": name}


SAID = {"type": "text", "text": "So."}


@pytest.mark.parametrize("estimate", [500, 3_000, 20_000])
def test_the_size_after_a_search_is_what_the_last_round_read_and_not_the_sum(estimate: int) -> None:
    # Two rounds: the first read 2,000, the second those, about 75 written and 3,000 found.
    size = sized(CALL, found(estimate), SAID, first=2_000, read=7_075, written=150)
    assert size == 2_000 + 150 + 3_000


@pytest.mark.parametrize("estimate", [500, 8_000])
def test_a_recorded_sum_comes_down_to_about_what_the_next_request_began_with(estimate: int) -> None:
    # Recorded: 404,500 at the end of about ten rounds, 2,479 at the start; the request behind it
    # began with 80,251.
    calls = [part for n in range(9) for part in search(n, found(estimate))]
    size = sized(*calls, SAID, first=2_479, read=404_500, written=3_000)
    assert abs(size - 80_251) * 100 < 80_251 * 5


@pytest.mark.parametrize(
    ("first", "read", "written", "searches", "size"),
    [
        # Recorded answers, and the size if each search found as much as the others.
        (2_060, 63_011, 760, 4, 23_520),
        (2_060, 37_949, 574, 3, 17_270),
        (2_050, 31_772, 644, 2, 19_560),
        (899, 7_244, 153, 1, 6_420),
    ],
)
def test_recorded_answers_are_sized_from_their_sums(
    first: int, read: int, written: int, searches: int, size: int
) -> None:
    calls = [part for n in range(searches) for part in search(n, found(4_000))]
    guess = sized(*calls, SAID, first=first, read=read, written=written)
    assert abs(guess - size) * 100 < size * 3


def test_calls_that_ran_together_are_one_round() -> None:
    one, two = search(1, found(1_000)), search(2, found(1_000))
    size = sized(one[0], two[0], one[1], two[1], SAID, first=1_000, read=6_000, written=0)
    assert size == 1_000 + 4_000


def test_a_result_that_came_after_the_last_word_is_in_no_figure_and_is_added() -> None:
    size = sized(SAID, CALL, found(3_000), first=2_000, read=2_000, written=50)
    assert 5_000 < size < 5_200


def test_a_result_that_an_answer_begins_with_may_have_been_read_by_its_only_round() -> None:
    assert sized(found(4_000), SAID, first=600, read=3_700, written=50) == 3_700 + 50
    assert sized(found(3_000), SAID, first=3_700, read=3_700, written=50) == 3_700 + 50


def test_without_the_figure_of_the_start_the_estimate_of_the_request_takes_its_place() -> None:
    assert 25_000 < sized(CALL, found(100), SAID, read=40_000, written=200) < 40_000


def test_what_the_api_said_of_its_last_round_is_kept() -> None:
    assert anchor_report(REPORT, answer(CALL, FOUND), None) == REPORT


def test_any_other_answer_is_as_reported() -> None:
    loop = LoopFigures(None, 900, 100)
    assert anchor_report(REPORT, answer(SAID), loop) == REPORT


def test_an_envelope_says_how_often_the_web_may_be_searched() -> None:
    ours = {"name": "fetch_url", "description": "Fetch.", "input_schema": {"type": "object"}}
    search = {"type": "web_search_20250305", "name": "web_search", "max_uses": 4}

    def searches(*tools: dict[str, Any]) -> int:
        return build_envelope(model="m", max_tokens=9, system="Be brief.", tools=tools).searches

    assert searches(ours, search) == 4
    assert searches(ours, search | {"max_uses": None}) == 0
    assert searches(ours) == searches() == 0
