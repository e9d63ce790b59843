from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conversations.agent.prices import KINDS, PriceList, PriceMissing
from conversations.agent.usage import FACTORS, Usage, read_factors, read_usage

rates = st.fixed_dictionaries({kind: st.integers(0, 50_000_000) for kind in KINDS})
lists = st.lists(
    st.tuples(st.integers(1, 300_000), rates), max_size=2, unique_by=lambda tier: tier[0]
).flatmap(
    lambda above: rates.map(lambda base: PriceList("m", (*above, (0, base)))),
)
counts = st.integers(0, 400_000)
usages = st.builds(Usage, counts, counts, counts, counts, counts)
FIELDS = ("input", "output", "cache_read", "cache_write_5m", "cache_write_1h")
PLAIN = {"input": 2_000_000, "output": 10_000_000, "cache_read": 100_000}
PLAIN |= {"cache_write_5m": 2_500_000}


def in_force(prices: PriceList, kind: str, prompt: int) -> int:
    tiers = sorted(prices.tiers, key=lambda tier: tier[0])
    return [tier[kind] for above, tier in tiers if above == 0 or prompt > above][-1]


@given(lists, usages)
def test_the_cost_is_exact_and_rounded_up_once(prices: PriceList, usage: Usage) -> None:
    exact = sum(
        (
            Fraction(getattr(usage, name) * in_force(prices, name, usage.context), 1_000_000)
            for name in FIELDS
        ),
        Fraction(0),
    )
    assert prices.cost(usage) == ceil(exact)


@given(rates, usages, st.sampled_from(FIELDS), st.integers(0, 10_000))
def test_more_tokens_never_cost_less(
    base: dict[str, int], usage: Usage, name: str, more: int
) -> None:
    prices = PriceList("m", ((0, base),))
    grown = replace(usage, **{name: getattr(usage, name) + more})
    assert prices.cost(grown) >= prices.cost(usage)


@given(lists, usages)
def test_the_worst_is_never_less_than_what_a_call_within_it_costs(
    prices: PriceList, usage: Usage
) -> None:
    # None of our requests asks for a cache of one hour.
    asked = replace(usage, cache_write_1h=0)
    assert prices.worst(asked.context, asked.output) >= prices.cost(asked)
    # Nor does one ask for the country of its workspace.
    kept = replace(asked, factors=read_factors({"inference_geo": "us"}))
    assert prices.worst(asked.context, asked.output) >= prices.cost(kept)
    dearest = {name: max(tier[name] for _, tier in prices.tiers) for name in KINDS}
    alone = PriceList("m", ((0, dearest | {"input": 0, "cache_read": 0}),))
    written = Usage(0, usage.output, 0, usage.context, 0, factors=kept.factors)
    assert alone.worst(usage.context, usage.output) == alone.cost(written)


@given(lists, counts, st.integers(0, 10**9))
def test_an_affordable_output_is_affordable_and_one_more_is_not(
    prices: PriceList, prompt: int, micros: int
) -> None:
    output = prices.affordable_output(prompt, micros)
    if output < 0:
        assert prices.worst(prompt, 0) > micros
        return
    assert prices.worst(prompt, output) <= micros
    dearest = prices.worst(0, 1_000_000)
    if dearest:
        # The input is rounded up by itself, so up to one micro-dollar may be left.
        assert prices.worst(prompt, output + 1 + 1_000_000 // dearest) >= micros


def test_every_prompt_token_counts_for_the_tier() -> None:
    dear = {kind: rate * 5 for kind, rate in PLAIN.items()}
    prices = PriceList("m", ((100_000, dear), (0, PLAIN)))
    assert prices.cost(Usage(0, 0, 100_000, 0, 0)) == 10_000
    assert prices.cost(Usage(1, 0, 100_000, 0, 0)) == 50_010
    assert prices.rate("output", 100_000) == 10_000_000
    assert prices.rate("output", 100_001) == 50_000_000


@pytest.mark.parametrize("kind", sorted(PLAIN))
def test_a_kind_without_a_price_is_refused_before_the_call(kind: str) -> None:
    prices = PriceList("m", ((0, {k: v for k, v in PLAIN.items() if k != kind}),))
    with pytest.raises(PriceMissing, match=kind.replace("_", " ")):
        prices.worst(1, 1)
    with pytest.raises(PriceMissing) as caught:
        prices.cost(Usage(1, 1, 1, 1, 0))
    assert (caught.value.model, caught.value.kind, caught.value.code) == (
        "m",
        kind,
        "price_missing",
    )


@pytest.mark.parametrize(
    ("more", "micros"),
    [
        ({}, 12_000),
        ({"inference_geo": "global", "speed": "standard", "service_tier": "standard"}, 12_000),
        ({"inference_geo": "us"}, 13_200),
        ({"speed": "fast"}, 24_000),
        ({"service_tier": "batch"}, 6_000),
        ({"service_tier": "priority"}, 12_000),
        ({"inference_geo": "us", "speed": "fast"}, 26_400),
        ({"inference_geo": ["us"], "speed": 1, "service_tier": None}, 12_000),
    ],
)
def test_the_price_is_read_from_the_answer(more: dict[str, object], micros: int) -> None:
    usage = read_usage({"input_tokens": 1_000, "output_tokens": 1_000} | more)
    prices = PriceList("m", ((0, PLAIN | {"web_search": 10_000_000_000}),))
    assert prices.cost(usage) == micros
    # A search costs the same wherever it is made.
    assert prices.cost(replace(usage, searches=1)) == micros + 10_000


def test_a_factor_applies_before_the_cost_is_rounded_up() -> None:
    usage = read_usage({"input_tokens": 3, "inference_geo": "us"})
    assert PriceList("m", ((0, PLAIN),)).cost(usage) == 7


def test_every_factor_says_where_it_is_from() -> None:
    assert all(one.source and one.date <= "2026-11-24" for one in FACTORS)


def test_what_was_not_asked_for_and_has_no_price_is_billed_as_the_dearest_input() -> None:
    prices = PriceList("m", ((0, PLAIN),))
    assert prices.cost(Usage(0, 0, 0, 0, 1_000_000)) == 2_500_000


@given(lists)
def test_the_engine_decides_by_the_prices_of_small_prompts_whatever_row_is_the_newest(
    prices: PriceList,
) -> None:
    found = prices.rates
    assert found is not None
    kinds = ("input", "output", "cache_write_5m", "cache_read", "cache_write_1h")
    named = (found.input, found.output, found.cache_write, found.cache_read, found.cache_write_1h)
    assert named == tuple(in_force(prices, kind, 0) for kind in kinds)
