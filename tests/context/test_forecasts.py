"""The forecast binds: what is said before a message is what is done at its call."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace

import pytest

from conversations.context.policy.in_full import build_full_policy
from conversations.context.policy.policy import build_policy
from conversations.context.steps.next_call import forecast_call, forecast_message
from conversations.context.steps.open_calls import leave_out_open_calls
from conversations.context.view.cost_decision import Rates
from conversations.context.view.view import Message, View
from tests.context.forecast_turns import play
from tests.context.samples import Shell, answer, content, prompt, round_of, situation, use, view_of
from tests.context.test_adaptive import HAIKU, SONNET
from tests.context.test_defects import grown
from tests.context.test_rules import SEARCH

#: Turns of every run, in so many tests; `python -m tests.context.forecast_turns` plays 10,000.
TURNS, PARTS = int(os.environ.get("AGENTWEB_TEST_TURNS", "240")), 4
#: First conversations of the parts, far from each other.
_APART = 100_000
_met: Counter[str] = Counter()


@pytest.mark.parametrize("part", range(PARTS))
def test_what_was_said_before_a_message_is_what_is_done(part: int) -> None:
    _met.update(play(TURNS // PARTS, part * _APART))


def test_the_turns_met_everything_and_few_were_left_open() -> None:
    met = _met or play(TURNS)
    assert all(met[name] for name in ("nothing", "compact", "trim", "summarise", "refuse"))
    assert met["known without reading"] > 0
    assert met["not certain"] * 10 <= met["turns"]


def long_chat(tokens: int, view: View | None = None) -> View:
    view = view or view_of(prompt("Where do we begin?"), answer("Here."))
    while view.tokens < tokens:
        page = f"line {view.length} of a page\n" * 400
        view = grown(view, prompt("And?"), *round_of(f"t{view.length}", page), answer("so " * 40))
    return view


def test_within_the_promise_it_says_nothing_and_above_it_how_much_is_left() -> None:
    policy = build_policy("adaptive", {"compaction_enabled": False})
    short, long = long_chat(60_000), long_chat(180_000)
    for age in (0, 90_000):
        more = {"rates": SONNET, "cache_age": age, "calls": 400}
        found = forecast_message(short, situation(short, short.tokens, **more), policy)
        assert (found.action, found.tokens_after) == ("nothing", found.tokens)
        # All but the message itself can come from the cache.
        assert found.tokens - 10 <= found.kept <= found.tokens
        found = forecast_message(
            long, situation(long, long.tokens, window=1_000_000, **more), policy
        )
        assert found.action == "trim"
        assert found.tokens_after < found.tokens // 4
        assert found.kept < found.tokens_after


def test_a_summary_is_forecast_with_what_it_reads_and_about_what_it_leaves() -> None:
    policy, view = build_policy("rebuild", {"max_conversation_messages": 0}), long_chat(100_000)
    found = forecast_message(view, situation(view, view.tokens), policy)
    assert (found.action, found.kinds) == ("summarise", ("summary",))
    assert found.summary_input > 10_000
    assert 1_000 < found.tokens_after < 40_000


def test_what_the_api_does_itself_is_forecast() -> None:
    policy, view = build_policy("native"), long_chat(120_000)
    known = situation(view, view.tokens, clears=True, compacts=True)
    assert forecast_message(view, known, policy).action == "compact"
    view = long_chat(165_000)
    known = situation(view, view.tokens, clears=True, compacts=True)
    found = forecast_message(view, known, policy)
    assert found.action == "summarise"
    assert found.compaction_input > 50_000
    assert found.summary_input == 0


def test_what_cannot_fit_is_said_before_it_is_sent() -> None:
    view = view_of(prompt("word " * 200_000), answer("No."))
    found = forecast_message(view, situation(view, view.tokens, window=64_000), build_policy("off"))
    assert (found.action, found.is_refused) == ("refuse", True)


def test_a_figure_so_near_the_room_that_it_is_counted_is_not_certain() -> None:
    view = long_chat(172_000)
    assert not forecast_message(view, situation(), build_policy("off")).is_certain


def test_where_the_length_of_the_message_decides_the_forecast_says_so() -> None:
    view = long_chat(60_000)
    policy = build_policy("tool-budget", {"input_token_budget": view.tokens + 300})
    found = forecast_message(view, situation(view, view.tokens), policy)
    assert (found.action, found.is_certain) == ("nothing", False)


@pytest.mark.parametrize("rates", [SONNET, HAIKU, None])
def test_in_full_nothing_is_reduced_but_for_the_window(rates: Rates | None) -> None:
    view = grown(long_chat(150_000), prompt("And now?"))
    for name in ("adaptive", "thrifty", "classic", "rebuild", "gated-trim", "structured", "native"):
        policy = build_full_policy(build_policy(name))
        more = {"rates": rates, "cache_age": 90_000, "calls": 400, "clears": True, "compacts": True}
        wide = situation(view, view.tokens, window=1_000_000, **more)
        assert forecast_call(view, wide, policy).action == "nothing", name
        shell = Shell()
        assert shell.prepare(view, wide, policy).view is view
        tight = situation(view, view.tokens, window=100_000, **more)
        assert forecast_call(view, tight, policy).action != "nothing", name


def test_a_repair_is_no_reduction_and_is_not_forecast_as_one() -> None:
    view = view_of(prompt("a"), answer(use("t1")), prompt("b"))
    found = forecast_call(view, situation(), build_policy("adaptive"))
    assert (found.action, found.kinds) == ("nothing", ())


def test_a_search_that_was_cut_off_is_left_out_by_a_rule_and_not_to_save_room() -> None:
    view = view_of(prompt("a"), answer("b", SEARCH), prompt("c"))
    assert leave_out_open_calls(view) is not None
    found = forecast_call(view, situation(), build_policy("adaptive"))
    assert (found.action, found.kinds) == ("nothing", ())


def test_what_was_changed_since_the_last_request_is_not_in_the_cache() -> None:
    view, policy = long_chat(60_000), build_policy("adaptive")
    known = situation(view, view.tokens)
    for at in (0, 5, view.length - 1):
        edited = replace(known, edited_from=view.messages[at].seq)
        found = forecast_message(view, edited, policy)
        assert found.kept == sum(message.tokens for message in view.messages[:at])
        assert found.full_kept == found.kept
        assert (found.action, found.tokens_after) == ("nothing", found.tokens)
    assert forecast_message(view, known, policy).full_kept > view.tokens


def test_a_message_that_forces_a_reduction_is_decided_with_it() -> None:
    policy = build_policy("adaptive", {"compaction_enabled": False})
    view = long_chat(60_000).append(Message.parse(10_000, "prompt", content(["word " * 90_000])))
    found = forecast_call(view, situation(view, view.tokens, window=140_000), policy)
    assert found.action == "trim"
    assert found.tokens_after < found.tokens
