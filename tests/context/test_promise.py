"""The promise: while a chat is within it nothing leaves, whatever pauses, models and results."""

from __future__ import annotations

from random import Random

import pytest

from conversations.context.policy.continuation import Continuation
from conversations.context.policy.policy import Policy, build_policy
from conversations.context.view.cost_decision import Rates
from conversations.context.view.view import View
from tests.context.samples import Shell, answer, keeping, prompt, round_of, situation, view_of
from tests.context.test_defects import grown

POLICY, OPEN = build_policy("adaptive"), build_policy("adaptive", {"keep_below_tokens": 0})
#: Input, output, cache write, cache read: Sonnet 5.5, Opus 5.5, Fable 5.2, and no price at all.
PRICES = (
    Rates(2_000_000, 10_000_000, 2_500_000, 100_000),
    Rates(4_000_000, 20_000_000, 5_000_000, 200_000),
    Rates(8_000_000, 40_000_000, 10_000_000, 200_000),
    None,
)
PAUSES = (0, 5, 60, 299, 300, 301, 900, 3_599, 3_600, 20_000, 86_400)
CHATS, PARTS = 500, 5


@pytest.mark.parametrize("part", range(PARTS))
def test_nothing_leaves_a_chat_within_the_promise(part: int) -> None:
    for number in range(part, CHATS, PARTS):
        assert _play(number, POLICY) == 0, number


def test_without_the_promise_the_same_chats_would_lose_something() -> None:
    assert sum(_play(number, OPEN) for number in range(20)) > 10


def _play(number: int, policy: Policy) -> int:
    """Play one chat up to the promise; return how often something was proposed or requested."""
    chance, acted, calls = Random(number), 0, 0
    window = chance.choice((32_000, 64_000, 200_000, 1_000_000))
    rates, most = chance.choice(PRICES), POLICY.promise(window)
    view = view_of(prompt("Where do we begin?"))
    while (view := _go_on(view, chance, most)).tokens <= most and calls < 40:
        calls += 1
        shell = Shell(writes=keeping)
        known = situation(
            view,
            view.tokens,
            window=window,
            rates=rates,
            cache_age=chance.choice(PAUSES),
            calls=chance.choice((calls, 20 * calls)),
            continuation=Continuation((chance.randint(10, 990),) * 12),
        )
        is_same = shell.prepare(view, known, policy).view is view
        acted += not is_same or bool(shell.records or shell.wanted)
    assert calls
    return acted


def _go_on(view: View, chance: Random, most: int) -> View:
    """Add a turn of talk or a round with a tool, some with results of a third of what is kept."""
    words = "so it is said " * chance.randint(1, 200)
    if chance.random() < 0.4:
        return grown(view, answer(words), prompt(words[: chance.randint(1, 400)]))
    page = "a line of a page\n" * chance.choice((10, 100, 1_000, max(1, most // 15)))
    name = chance.choice(("fetch_url", "read_file", "search_mail"))
    return grown(view, *round_of(f"t{view.length}", page, name, url=f"https://e.org/{view.length}"))
