"""Calls of the API's own tools that a turn left without a result go with the next message."""

from __future__ import annotations

import json
from typing import Any

import pytest

from conversations.context.policy.policy import PRESETS
from conversations.context.steps.open_calls import NOTE, leave_out_open_calls
from conversations.context.steps.restore import build_restore
from conversations.context.view import edits
from conversations.context.view.server_calls import read_server_calls
from conversations.context.view.view import View
from tests.context.independent import violations
from tests.context.samples import (
    THOUGHT,
    Shell,
    answer,
    prompt,
    result,
    results,
    situation,
    text,
    use,
    view_of,
)
from tests.context.test_rules import CALLER, FOUND, GOT, SEARCH, SEARCH_2


def left(view: View) -> list[Any]:
    """The blocks that are sent, once what is late is left out."""
    change = leave_out_open_calls(view)
    assert change is not None
    again = edits.apply(view, change.kind, edits.load_edits(edits.dump_edits(change.edits)))
    assert again.body == change.view_after.body
    assert violations(again.body) == []
    assert leave_out_open_calls(again) is None
    return [json.loads(message.content) for message in again.messages]


def test_a_search_that_was_never_answered_is_left_out_with_the_next_message() -> None:
    talk = [prompt("a"), answer("b", SEARCH), prompt("c")]
    assert left(view_of(*talk)) == [[text("a")], [text("b")], [text("c")]]
    assert left(view_of(prompt("a"), answer(SEARCH), prompt("c"))) == [
        [text("a")],
        [],
        [text("c")],
    ]


@pytest.mark.parametrize(
    "talk",
    [
        [prompt("a"), answer("b", SEARCH)],
        [prompt("a"), answer(SEARCH, use("t1")), GOT],
        [prompt("a"), answer(SEARCH), answer(FOUND, "b"), prompt("c")],
        [prompt("a"), answer("b")],
    ],
)
def test_what_may_still_be_answered_or_has_been_is_never_left_out(talk: Any) -> None:
    assert leave_out_open_calls(view_of(*talk)) is None


def test_a_search_beside_a_call_goes_alone_and_the_call_keeps_its_result() -> None:
    view = view_of(prompt("a"), answer(SEARCH, use("t1"), SEARCH_2), GOT, prompt("b"))
    assert left(view)[1:3] == [[use("t1")], [result("t1")]]


def test_what_a_late_call_had_called_goes_with_it() -> None:
    ours = {**use("t1"), **CALLER}
    view = view_of(prompt("a"), answer("b", SEARCH, ours), GOT, prompt("c"))
    assert left(view) == [[text("a")], [text("b")], [], [text("c")]]


def test_thinking_that_would_end_the_answer_goes_too_and_other_thinking_stays() -> None:
    view = view_of(prompt("a"), answer(THOUGHT, "b", THOUGHT, SEARCH), prompt("c"))
    assert left(view)[1] == [THOUGHT, text("b")]


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_under_every_policy_the_next_request_is_legal_and_the_change_is_recorded(name: str) -> None:
    view = view_of(prompt("a"), answer("b", SEARCH), prompt("c"))
    shell = Shell()
    prepared = shell.prepare(view, situation(view, view.tokens), PRESETS[name])
    assert violations(prepared.view.body) == []
    assert [(record.kind, record.note) for record in shell.applied] == [("trim", NOTE)]


def test_an_original_with_such_a_call_can_be_brought_back_and_is_left_out_again() -> None:
    view = view_of(prompt("a"), answer("b", SEARCH), prompt("c"))
    change = leave_out_open_calls(view)
    assert change is not None
    back = build_restore(change.view_after, view.messages[1])
    assert back is not None
    assert left(back.view_after)[1] == [text("b")]


def test_the_calls_that_wait_are_known_at_the_end_of_a_view() -> None:
    waits = view_of(prompt("a"), answer(SEARCH, use("t1")), results(result("t1")))
    assert set(read_server_calls(waits).open) == {"srv_1"}
    assert set(read_server_calls(waits).late) == set()
