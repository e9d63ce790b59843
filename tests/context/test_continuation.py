"""How many more calls are expected: by doublings, learned, and never more than a few of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conversations.context.policy.continuation import EVEN, Continuation, learn_continuation

CALLS = st.integers(0, 10**6)


@pytest.mark.parametrize("made", [1, 7, 64, 1_000])
def test_as_many_calls_are_expected_as_were_made_while_nothing_is_known(made: int) -> None:
    assert EVEN.expect_calls(made) == made


def test_where_few_go_on_few_calls_are_expected() -> None:
    short = learn_continuation([(4, True)] * 1_000)
    assert short.expect_calls(4) == 0
    # Who got further than all others is expected to go on as before.
    assert short.expect_calls(64) == 64


def test_where_most_go_on_more_are_expected_within_bounds() -> None:
    long = learn_continuation([(1_000, True)] * 1_000)
    assert long.expect_calls(10) == 70
    assert Continuation((990,) * 30).expect_calls(100) == 700


def test_one_that_goes_on_is_not_counted_as_ended() -> None:
    going = learn_continuation([(4, False)] * 1_000)
    assert going.expect_calls(4) == 4
    assert going.expect_calls(2) > learn_continuation([(2, True)] * 1_000).expect_calls(2)


@given(st.lists(st.tuples(CALLS, st.booleans()), max_size=50), CALLS)
def test_the_expectation_is_bounded_and_never_negative(
    seen: list[tuple[int, bool]], made: int
) -> None:
    assert 0 <= learn_continuation(seen).expect_calls(made) <= 7 * max(1, made)
