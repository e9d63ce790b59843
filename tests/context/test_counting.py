"""When a request is counted: only where the error of an estimate could decide."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from conversations.context.errors import WindowError
from conversations.context.policy.gauge import Report, measure_context
from conversations.context.policy.policy import Policy, build_policy
from conversations.context.steps.working_view import MOST_COUNTS
from conversations.context.view.envelope import STEP, build_envelope
from conversations.context.view.view import View
from tests.context.samples import (
    THOUGHT,
    Shell,
    answer,
    prompt,
    reported,
    round_of,
    situation,
    view_of,
)

OFF = build_policy("off")
TRIM = build_policy("gated-trim", {"max_conversation_tokens": 10_000_000})
ROOM = 184_000
PAGE = "some page text " * 400


def long(rounds: int = 30) -> View:
    return view_of(prompt("a"), *[m for n in range(rounds) for m in round_of(f"t{n}", PAGE)])


def counting(*figures: int | None) -> Callable[[View], int | None]:
    left = list(figures)
    return lambda view: left.pop(0) if len(left) > 1 else left[0]


def known(view: View, figure: int, **more: Any) -> Any:
    """The situation in which the request is estimated at this figure."""
    return situation(overhead=figure - view.tokens, **more)


@pytest.mark.parametrize(
    ("figure", "is_asked"), [(160_000, False), (166_000, True), (184_000, True)]
)
def test_an_estimate_near_the_room_is_counted(figure: int, is_asked: bool) -> None:
    view = long()
    shell = Shell(counts=counting(150_000))
    prepared = shell.prepare(view, known(view, figure), OFF)
    assert shell.counted == [view] * is_asked
    expected = (150_000, "counted") if is_asked else (figure, "estimated")
    assert (prepared.gauge.tokens, prepared.gauge.source) == expected


def test_what_was_reported_is_not_counted_while_it_fits() -> None:
    view = long()
    shell = Shell(counts=counting(1))
    assert shell.prepare(view, situation(view, 183_000), OFF).gauge.source == "reported"
    assert shell.counted == []


@pytest.mark.parametrize("figure", [185_000, 400_000])
@pytest.mark.parametrize("is_reported", [True, False])
def test_no_turn_ends_on_an_estimate_that_a_count_refutes(figure: int, is_reported: bool) -> None:
    view = long()
    facts = situation(view, figure) if is_reported else known(view, figure)
    assert Shell(counts=counting(120_000)).prepare(view, facts, OFF).gauge.tokens == 120_000
    for counts in (counting(185_000), counting(None)):
        shell = Shell(counts=counts)
        with pytest.raises(WindowError):
            shell.prepare(view, facts, OFF)
        assert len(shell.counted) == 1


def test_a_count_above_the_room_reduces_what_the_estimate_would_have_sent() -> None:
    view = long()
    shell = Shell(counts=counting(190_000, 100_000))
    prepared = shell.prepare(view, known(view, 180_000), TRIM)
    assert prepared.gauge.seen <= ROOM
    trigger = shell.applied[0].trigger
    assert (trigger.number, trigger.source) == (190_000, "counted")
    assert Shell().prepare(view, known(view, 180_000), TRIM).view is view


def test_what_was_reduced_is_counted_again_and_reduced_again() -> None:
    view = long()
    shell = Shell(counts=counting(230_000, 190_000, 120_000))
    prepared = shell.prepare(view, known(view, 180_000), TRIM)
    assert len(shell.counted) == 3
    assert len({shown.tokens for shown in shell.counted}) == 3
    assert (prepared.gauge.tokens, prepared.gauge.source) == (120_000, "counted")


def test_a_request_is_counted_a_few_times_at_most_and_not_again_after_a_failure() -> None:
    view = long()
    shell = Shell(counts=counting(230_000, 229_000, 228_000, 227_000))
    with pytest.raises(WindowError):
        shell.prepare(view, known(view, 180_000), TRIM)
    assert 1 < len(shell.counted) <= MOST_COUNTS
    silent = Shell()
    silent.prepare(view, known(view, 190_000), TRIM)
    assert len(silent.counted) == 1


def test_after_an_overflow_nothing_is_counted_before_it_is_reduced() -> None:
    view = long()
    shell = Shell(counts=counting(100))
    shell.prepare(view, known(view, 180_000), TRIM, harder=1)
    assert shell.applied
    assert shell.counted == []


def test_a_count_holds_for_the_view_that_was_counted() -> None:
    view = view_of(prompt("a"), answer(THOUGHT, "b"), prompt("c"))
    report = Report(1_000, view.tokens, 0, view.edits, "counted")
    assert measure_context(view, 0, report, 200_000).source == "counted"
    changed = Shell()
    facts = situation(bound_to="other", overhead=180_000)
    prepared = Shell(counts=counting(170_000)).prepare(view, facts, OFF)
    assert prepared.gauge.source == "counted"
    assert changed.prepare(view, facts, OFF).gauge.source == "estimated"
    assert measure_context(prepared.view, 0, reported(view, 9), 200_000).source == "estimated"


def test_a_count_asks_with_what_is_sent_but_what_concerns_the_answer() -> None:
    made = build_envelope(model="m", max_tokens=9, system="s", thinking={"type": "adaptive"})
    assert made.counting == (
        '{"model":"m","system":[{"type":"text","text":"s","cache_control":{"type":"ephemeral"}}],'
        '"thinking":{"type":"adaptive"},"cache_control":{"type":"ephemeral"}}'
    )


@pytest.mark.parametrize(
    ("window", "room"),
    [(16_000, 12_800), (32_000, 25_600), (80_000, 64_000), (200_000, 184_000), (10**6, 984_000)],
)
def test_a_small_window_keeps_a_share_for_the_answer(window: int, room: int) -> None:
    assert Policy().room(window) == room


def test_the_limit_of_an_answer_shrinks_to_what_is_left_of_the_window() -> None:
    made = build_envelope(model="m", max_tokens=16_000, system="s")
    assert made.fit_window(16_000) is made
    for left in (15_999, 6_400, STEP, 3):
        fitted = made.fit_window(left)
        assert fitted.max_tokens % STEP == 0
        assert fitted.max_tokens == max(STEP, left // STEP * STEP)
        assert fitted.binding == made.binding
