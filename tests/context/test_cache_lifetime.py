"""How long the prompt cache is kept: by what is added, the pauses, the turns and the prices."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from conversations.context.policy.cache_lifetime import CachedPrefix, choose_lifetime
from conversations.context.policy.gauge import Report
from conversations.context.policy.policy import PRESETS
from conversations.context.view.cache_breakpoints import Lifetime
from conversations.context.view.cost_decision import Rates
from conversations.context.view.envelope import build_envelope, read_lifetime
from conversations.context.view.view import Message, View
from tests.context.samples import (
    Shell,
    answer,
    content,
    prompt,
    round_of,
    situation,
    view_of,
)

SONNET = Rates(2_000_000, 10_000_000, 2_500_000, 100_000, cache_write_1h=4_000_000)
SYSTEM = {"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral", "ttl": "1h"}}


def talk(turns: int) -> View:
    said = [m for n in range(turns - 1) for m in (answer(f"So {n}."), prompt(f"And {n}?"))]
    return view_of(prompt("Well?"), *said)


@pytest.mark.parametrize(
    ("turns", "added", "pauses", "lifetime"),
    [
        # Of 100,000 tokens; at first one call in five is assumed to be the last one of its turn.
        (1, 19_000, (), "1h"),
        (1, 20_000, (), "5m"),
        (9, 39_000, (), "1h"),
        (9, 41_000, (), "5m"),
        # Whoever answers at once, or comes back the next day, has little use for an hour.
        (9, 20_000, (20,) * 30, "5m"),
        (9, 20_000, (86_400,) * 30, "5m"),
        (9, 85_000, (300, 3_599) * 15, "1h"),
        # A whole context is hardly ever written for an hour in advance.
        (9, 100_000, (900,) * 30, "5m"),
    ],
)
def test_what_is_added_the_pauses_and_the_turns_decide(
    turns: int, added: int, pauses: tuple[int, ...], lifetime: Lifetime
) -> None:
    assert choose_lifetime(talk(turns), added, 100_000, SONNET, pauses) == lifetime


def test_a_turn_of_many_rounds_is_rarely_at_its_end() -> None:
    rounds = [m for n in range(60) for m in round_of(f"t{n}", "a page")]
    long = view_of(prompt("go"), *rounds)
    assert choose_lifetime(long, 10_000, 100_000, SONNET, (900,)) == "5m"
    assert choose_lifetime(view_of(prompt("go")), 10_000, 100_000, SONNET, (900,)) == "1h"


def test_of_even_calls_those_at_the_cheapest_distance_pay_for_the_hour() -> None:
    """The rule against the least of all rhythms, by the costs themselves."""
    view, loss, price = talk(9), 24, 15
    for percent, pauses in ((16, ()), (52, (900,) * 4), (3, (20,) * 35)):
        risk = percent * 9 / 13 / 100
        rhythms = [(price + risk * loss * n * (n - 1) / 2) / n for n in range(1, 40)]
        best = 1 + rhythms.index(min(rhythms))
        chosen = next(
            n for n in range(1, 40) if choose_lifetime(view, 900, n * 900, SONNET, pauses) == "1h"
        )
        assert rhythms[chosen - 1] <= 1.05 * rhythms[best - 1]


def test_what_is_kept_for_an_hour_stays_so_until_it_expires_or_is_changed() -> None:
    paid = CachedPrefix().after_call(0, "1h", 5_000, is_changed=True)
    assert paid == CachedPrefix(3_600, 5_000)
    assert paid.after_call(1_000, "5m", 9_000, is_changed=False) == CachedPrefix(2_600, 5_000)
    assert paid.after_call(1_000, "1h", 9_000, is_changed=False) == CachedPrefix(3_600, 9_000)
    for passed, is_changed in ((1_000, True), (3_400, False), (4_000, False)):
        assert paid.after_call(passed, "5m", 9_000, is_changed=is_changed) == CachedPrefix()
    assert CachedPrefix().after_call(60, "5m", 9_000, is_changed=False) == CachedPrefix()


def test_a_request_pays_for_the_hour_only_until_that_is_paid() -> None:
    view = view_of(*(m for n in range(9) for m in (prompt("Word " * 4_000), answer("So."))))
    view = view.append(Message.parse(99, "prompt", content(["And?"])))
    shell = Shell()
    known: dict[str, Any] = {"rates": SONNET, "window": 1_000_000, "cache_age": 60}
    report = Report(view.tokens, view.tokens, 0, view.edits)
    for hour, edits, lifetime in (
        (0, 0, "1h"), (view.tokens, 0, "5m"), (view.tokens, 1, "1h"), (view.tokens - 9_000, 0, "1h")
    ):  # fmt: skip
        told = situation(**known, hour_tokens=hour)
        told = replace(told, report=replace(report, edits=edits))
        assert shell.prepare(view, told, PRESETS["off"]).lifetime == lifetime
    cold = replace(situation(**known | {"cache_age": 4_000}), report=report)
    assert shell.prepare(view, cold, PRESETS["off"]).lifetime == "5m"


def test_a_context_that_a_person_changed_is_not_written_for_an_hour() -> None:
    view = view_of(*(m for n in range(9) for m in (prompt("Word " * 4_000), answer("So."))))
    view = view.append(Message.parse(99, "prompt", content(["And?"])))
    told = situation(rates=SONNET, window=1_000_000, cache_age=60)
    told = replace(told, report=Report(view.tokens, view.tokens, 0, view.edits + 1))
    for edited, lifetime in ((None, "1h"), (99, "1h"), (18, "1h"), (3, "5m"), (0, "5m")):
        found = Shell().prepare(view, replace(told, edited_from=edited), PRESETS["off"])
        assert found.lifetime == lifetime, edited


@pytest.mark.parametrize("rates", [None, replace(SONNET, cache_write_1h=0)])
def test_without_a_price_it_is_never_an_hour(rates: Rates | None) -> None:
    assert choose_lifetime(talk(40), 10, 100_000, rates, (900,) * 9) == "5m"


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
