"""How long the prompt cache is kept: by what is added, the pauses, the turns and the prices."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from conversations.context.policy.cache_lifetime import choose_lifetime
from conversations.context.view.cache_breakpoints import Lifetime
from conversations.context.view.cost_decision import Rates
from conversations.context.view.envelope import build_envelope, read_lifetime
from conversations.context.view.view import View
from tests.context.samples import answer, prompt, round_of, view_of

SONNET = Rates(2_000_000, 10_000_000, 2_500_000, 100_000, cache_write_1h=4_000_000)
SYSTEM = {"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral", "ttl": "1h"}}


def talk(turns: int) -> View:
    said = [m for n in range(turns - 1) for m in (answer(f"So {n}."), prompt(f"And {n}?"))]
    return view_of(prompt("Well?"), *said)


@pytest.mark.parametrize(
    ("turns", "added", "pauses", "lifetime"),
    [
        # Of 100,000 tokens; at first one call in five is assumed to be the last one of its turn.
        (1, 3_100, (), "1h"),
        (1, 3_300, (), "5m"),
        (9, 11_000, (), "1h"),
        (9, 11_100, (), "5m"),
        # Whoever answers at once, or comes back the next day, has little use for an hour.
        (9, 3_000, (20,) * 30, "5m"),
        (9, 3_000, (86_400,) * 30, "5m"),
        (9, 48_000, (300, 3_599) * 15, "1h"),
        # A whole context is never written for an hour in advance.
        (9, 100_000, (900,) * 30, "5m"),
    ],
)
def test_what_is_added_the_pauses_and_the_turns_decide(
    turns: int, added: int, pauses: tuple[int, ...], lifetime: Lifetime
) -> None:
    assert choose_lifetime(talk(turns), 100_000, added, SONNET, pauses) == lifetime


def test_a_turn_of_many_rounds_is_rarely_at_its_end() -> None:
    rounds = [m for n in range(60) for m in round_of(f"t{n}", "a page")]
    long = view_of(prompt("go"), *rounds)
    assert choose_lifetime(long, 100_000, 1_000, SONNET, (900,)) == "5m"
    assert choose_lifetime(view_of(prompt("go")), 100_000, 1_000, SONNET, (900,)) == "1h"


@pytest.mark.parametrize("rates", [None, replace(SONNET, cache_write_1h=0)])
def test_without_a_price_it_is_never_an_hour(rates: Rates | None) -> None:
    assert choose_lifetime(talk(40), 100_000, 10, rates, (900,) * 9) == "5m"


def test_all_breakpoints_of_a_request_have_the_lifetime_of_its_envelope() -> None:
    plain = build_envelope(model="m", max_tokens=9, system="Be brief.", tools=[{"name": "t"}])
    kept = plain.with_lifetime("1h")
    assert (plain.lifetime, kept.lifetime) == ("5m", "1h")
    assert (read_lifetime(plain.text), read_lifetime(kept.text)) == ("5m", "1h")
    sent = dict(kept.parameters)
    assert sent["system"] == [SYSTEM]
    assert (sent["tools"], sent["cache_control"]) == ([{"name": "t"}], SYSTEM["cache_control"])
    assert kept.with_lifetime("5m") == plain
    assert kept.binding == plain.binding
    uncached = build_envelope(model="m", max_tokens=9, system="Be brief.", cached=False)
    assert uncached.with_lifetime("1h") == uncached


def test_the_breakpoint_among_the_messages_has_it_too() -> None:
    wide = [m for n in range(20) for m in round_of(f"t{n}", "x")]
    many = answer(*(part for _, parts in wide[::2] for part in parts))
    view = view_of(prompt("go"), many, ("results", [p for _, parts in wide[1::2] for p in parts]))
    body = json.loads(view.join("1h"))
    assert body[0]["content"][0]["cache_control"] == SYSTEM["cache_control"]
    assert view.join("5m") == view.body
    assert view.body.count('"ttl"') == 0
