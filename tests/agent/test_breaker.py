from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from conversations.agent.ports import ModelFailed
from conversations.claude.errors import MOST_FAILURES, PAUSES, Breaker

BUSY = ModelFailed("overloaded", "The model is overloaded.", 529, may_retry=True)
DOWN = ("overloaded", "upstream", "unreachable", "timeout", "cut")


@dataclass
class Wall:
    """A breaker on a clock that is turned by hand."""

    now: float = 1_000.0
    opened: list[tuple[str, float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.breaker = Breaker(lambda: self.now, lambda why, s: self.opened.append((why.code, s)))

    def fail(self, failure: ModelFailed = BUSY, times: int = 1) -> None:
        for _ in range(times):
            with pytest.raises(ModelFailed) as caught, self.breaker.call():
                raise failure
            assert caught.value is failure

    def answer(self) -> None:
        with self.breaker.call() as answered:
            answered()
            answered()

    def refused(self) -> ModelFailed:
        with pytest.raises(ModelFailed) as caught, self.breaker.call():
            raise AssertionError
        return caught.value


def raise_after(step: Callable[[], None]) -> None:
    step()
    raise BUSY


@pytest.mark.parametrize("code", DOWN)
def test_so_many_failures_in_a_row_stop_all_calls(code: str) -> None:
    wall = Wall()
    wall.fail(ModelFailed(code, "No."), MOST_FAILURES - 1)
    assert wall.opened == []
    wall.fail(ModelFailed(code, "No."))
    assert wall.opened == [(code, PAUSES[0])]
    failure = wall.refused()
    assert (failure.code, failure.may_retry) == (code, False)
    assert "Calls pause for everybody; try again in 5 seconds." in failure.text


def test_an_answer_between_them_begins_the_count_anew() -> None:
    wall = Wall()
    wall.fail(times=MOST_FAILURES - 1)
    wall.answer()
    wall.fail(times=MOST_FAILURES - 1)
    wall.answer()


@pytest.mark.parametrize("code", ["invalid_request", "rate_limited", "authentication", "overflow"])
def test_a_refusal_is_an_answer_too(code: str) -> None:
    wall = Wall()
    wall.fail(times=MOST_FAILURES - 1)
    wall.fail(ModelFailed(code, "No."))
    wall.fail(times=MOST_FAILURES - 1)
    wall.answer()


def test_failures_further_apart_than_a_minute_stop_nothing() -> None:
    wall = Wall()
    for _ in range(3 * MOST_FAILURES):
        wall.fail()
        wall.now += 10
    wall.answer()
    assert wall.opened == []


def test_a_failure_behind_the_first_word_of_an_answer_does_not_count() -> None:
    wall = Wall()
    for _ in range(2 * MOST_FAILURES):
        with pytest.raises(ModelFailed), wall.breaker.call() as answered:
            raise_after(answered)
    wall.answer()


def test_after_the_pause_one_call_probes_and_the_pauses_grow_until_it_is_answered() -> None:
    wall = Wall()
    wall.fail(times=MOST_FAILURES)
    for pause in (*PAUSES[1:], PAUSES[-1]):
        wall.now += wall.opened[-1][1] - 0.1
        assert "in 1 second" in wall.refused().text
        wall.now += 0.1
        wall.fail()
        assert wall.opened[-1] == ("overloaded", pause)
    wall.now += PAUSES[-1]
    wall.answer()
    wall.fail(times=MOST_FAILURES)
    assert wall.opened[-1] == ("overloaded", PAUSES[0])


def test_while_one_call_probes_the_others_still_fail_at_once() -> None:
    wall = Wall()
    wall.fail(times=MOST_FAILURES)
    wall.now += PAUSES[0]
    with wall.breaker.call() as answered:
        assert "try again in 1 second" in wall.refused().text
        answered()
        wall.answer()


def test_a_probe_that_was_stopped_leaves_its_place_to_the_next() -> None:
    wall = Wall()
    wall.fail(times=MOST_FAILURES)
    wall.now += PAUSES[0]
    with pytest.raises(GeneratorExit), wall.breaker.call():
        raise GeneratorExit
    wall.answer()


def test_calls_that_were_under_way_do_not_lengthen_the_pause() -> None:
    wall = Wall()
    with pytest.raises(ModelFailed), wall.breaker.call():
        raise_after(lambda: wall.fail(times=MOST_FAILURES))
    assert wall.opened == [("overloaded", PAUSES[0])]


def test_an_account_that_cannot_pay_stops_all_calls_at_once_for_a_minute() -> None:
    wall = Wall()
    wall.fail(ModelFailed("billing", "Cannot pay.", 429))
    assert wall.opened == [("billing", 60.0)]
    assert wall.refused().code == "billing"
    wall.now += 60
    wall.fail(ModelFailed("billing", "Cannot pay.", 429))
    wall.now += 60
    wall.answer()
