"""The cost of a policy that knows the future: exact for its class, and never above a real one's."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, pairwise
from typing import Any

import pytest

from conversations.lab.clairvoyant import PASSAGE, RECENT, Clairvoyant
from conversations.lab.fact_search import FactSearch
from conversations.lab.records import Record
from conversations.lab.report import simulate_record
from conversations.lab.simulated_tokenizer import build_tokenizer
from tests.lab.samples import PAGE, PRICES, reading, record, result, user, world

TOKENS = build_tokenizer(lambda text: len(text) // 4)
RATES = PRICES.rates
assert RATES is not None


def clairvoyant(one: Record, **fields: Any) -> Clairvoyant:
    return Clairvoyant(one, world("off", tokenizer=TOKENS, **fields), FactSearch(one))


def with_fact(rounds: int) -> Record:
    messages = reading(rounds)
    messages[2] = user(result("toolu_0_0", f"CODE-77-XY stands here. {PAGE}"))
    fact = {"fact": "CODE-77-XY", "first_seen_message": 2, "used_at_message": len(messages) - 1}
    return record(messages, facts=[fact])


def test_where_nothing_may_leave_it_costs_what_sending_everything_costs() -> None:
    one = record(reading(30))
    real = simulate_record(one, world("off", tokenizer=TOKENS, minimum=0))
    assert abs(clairvoyant(one).find_cost(10**9, 10**9) - real.total_cost) <= real.calls


def price(one: Record, cuts: tuple[int, ...], promise: int) -> float:
    """Price one schedule of reductions the plain way: call by call, everything in lists."""
    seen = clairvoyant(one)
    calls, head = seen._calls, seen._head
    total = 0.0
    for start, end in pairwise((0, *cuts, len(calls))):
        first = calls[start].first if start else 0
        kept = calls[start].recent if start else calls[start].before
        needs = [tokens for call in calls[start:end] for at, tokens in call.needs if at < first]
        written_before = 0
        for at in range(start, end):
            size = head + kept + sum(needs) + calls[at].before - calls[start].before
            read = written_before if at > start else head * (start > 0)
            total += read * RATES.cache_read + (size - read) * RATES.cache_write
            total += calls[at].output * RATES.output
            written_before = size
        if end < len(calls) and size + calls[end].before - calls[end - 1].before <= promise:
            return float("inf")
    return total / 1_000_000


@pytest.mark.parametrize("promise", [0, 4_000, 9_000, 10**9])
@pytest.mark.parametrize("make", [lambda: record(reading(7)), lambda: with_fact(7)])
def test_no_schedule_of_reductions_is_cheaper(make: Any, promise: int) -> None:
    one = make()
    count = len(clairvoyant(one)._calls)
    prices = [
        price(one, cuts, promise)
        for most in range(count)
        for cuts in combinations(range(1, count), most)
    ]
    assert clairvoyant(one).find_cost(promise, 10**9) == pytest.approx(min(prices), abs=2)


def test_a_promise_costs_and_a_window_costs() -> None:
    one = record(reading(60))
    seen = clairvoyant(one)
    costs = [seen.find_cost(promise, 10**9) for promise in (0, 10_000, 40_000, 10**9)]
    assert costs == sorted(costs)
    assert len(set(costs)) == 4
    assert seen.find_cost(0, 9_000) >= seen.find_cost(0, 10**9)
    assert seen.find_cost(0, 1) > 0


@pytest.mark.parametrize("policy", ["adaptive", "thrifty", "rebuild"])
def test_no_preset_is_cheaper_under_its_own_promise(policy: str) -> None:
    one = with_fact(120)
    played = world(policy, tokenizer=TOKENS, window=60_000, bills_recalls=True)
    seen = Clairvoyant(one, played, FactSearch(one))
    promise = played.policy.promise(60_000)
    assert seen.find_cost(promise, 60_000) <= simulate_record(one, played).total_cost


@pytest.mark.parametrize(("pause", "is_cold"), [(200, False), (900, True), (9_000, True)])
def test_a_cache_is_cold_after_a_pause_unless_an_hour_is_cheaper(pause: int, is_cold: bool) -> None:
    stamps = [f"2026-11-21T10:00:{at:02}+00:00" for at in range(4)]
    messages = [m | {"timestamp": s} for m, s in zip(reading(1), stamps, strict=True)]
    again = reading(1, prompts=2)[4:]
    later = f"2026-11-21T{10 + pause // 3_600}:{pause % 3_600 // 60:02}:{pause % 60:02}+00:00"
    one = record([*messages, *(m | {"timestamp": later} for m in again)])
    cost = clairvoyant(one).find_cost(10**9, 10**9)
    warm = clairvoyant(replace(one, times=())).find_cost(10**9, 10**9)
    assert (cost > warm) is is_cold
    hourly = PRICES.tiers[0][1] | {"cache_write_1h": 2_600_000}
    dearer = replace(PRICES, tiers=((0, hourly),))
    kept = clairvoyant(one, prices=dearer).find_cost(10**9, 10**9)
    assert (warm <= kept < cost) is (pause == 900)


def test_without_prices_nothing_is_known() -> None:
    assert (
        clairvoyant(record(reading(1)), prices=replace(PRICES, tiers=((0, {}),))).find_cost(0, 9)
        == 0
    )


def test_what_a_reduction_leaves_is_the_newest_messages() -> None:
    calls = clairvoyant(with_fact(40))._calls
    assert all(0 < call.recent <= RECENT for call in calls[5:])
    assert [call.needs for call in calls if call.needs] == [((2, PASSAGE),)]
