"""Context editing by the API: predicted, recorded, compared with the emulator's own editing."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from agentweb.emulator.api_accounts import Account
from agentweb.emulator.call import Call
from agentweb.emulator.context_editing import edit_context
from agentweb.emulator.model_catalogue import MODELS
from agentweb.emulator.prompt_units import Unit, total_tokens
from conversations.context.policy.gauge import Gauge
from conversations.context.policy.policy import PRESETS, Policy, PolicyError, build_policy
from conversations.context.steps import api_clearing
from conversations.context.steps.api_clearing import (
    Cleared,
    Clearing,
    choose_clearing,
    predict_cleared,
)
from conversations.context.steps.restore import build_restore
from conversations.context.steps.working_view import WorkingView
from conversations.context.tokens.estimate import FRAME, estimate_block
from conversations.context.view.envelope import build_envelope, digest_envelope
from conversations.context.view.view import Message, View
from tests.context.samples import (
    Shell,
    answer,
    prompt,
    result,
    results,
    round_of,
    situation,
    use,
    view_of,
)
from tests.context.strategies import Maker, seeds, view_from
from tests.context.test_pipeline import PAGE, rounds
from tests.context.test_steps import gauge_of

NATIVE = replace(
    PRESETS["native"], input_token_budget=3_000, compaction_threshold_tokens=10_000_000,
    minimum_gain_tokens=1_000, clear_keep_results=1, protected_tail_messages=2,
)  # fmt: skip


def test_the_oldest_results_are_cleared_but_the_newest_and_excluded_tools_stay() -> None:
    said = [*round_of("r", PAGE, name="read_file"), *rounds(4)]
    view = view_of(
        prompt("a"), *said, answer(use("x"), use("y")), results(result("y"), result("x"))
    )
    gauge = gauge_of(view, 100_001)
    assert predict_cleared(view, gauge, Clearing()).ids == ("r", "t0", "t1", "t2")
    kept = Clearing(exclude_tools=("read_file",), keep=1)
    # What is spared counts as one of the calls, and the order is that of the calls.
    assert predict_cleared(view, gauge, kept).ids == ("t0", "t1", "t2", "t3", "x")
    assert predict_cleared(view, gauge, Clearing(keep=50)) == Cleared()
    assert predict_cleared(view, gauge_of(view, 100_000), Clearing()) == Cleared()
    assert predict_cleared(view, gauge, Clearing(at_least=50_000)) == Cleared()


def test_the_envelope_asks_for_what_the_numbers_say() -> None:
    full = Clearing(trigger=80_000, at_least=9_000, exclude_tools=("recall",)).parameters
    assert full == {
        "edits": [
            {
                "type": "clear_tool_uses_20250919",
                "trigger": {"type": "input_tokens", "value": 80_000},
                "keep": {"type": "tool_uses", "value": 3},
                "clear_at_least": {"type": "input_tokens", "value": 9_000},
                "exclude_tools": ["recall"],
            }
        ]
    }
    assert set(Clearing().parameters["edits"][0]) == {"type", "trigger", "keep"}


class Estimating:
    """The emulator's counter, counting as the engine estimates."""

    def count_units(self, body: Any, tokenizer: str) -> list[Unit]:
        del tokenizer
        blocks = [block for message in body["messages"] for block in message["content"]]
        count = sum(map(estimate_block, blocks)) + FRAME * len(body["messages"])
        return [Unit("messages", b"", count, None)] if blocks else []


def counted(view: View) -> int:
    return total_tokens(Estimating().count_units({"messages": json.loads(view.body)}, "newer"))


def judged(view: View, clearing: Clearing) -> tuple[int, int]:
    """Give how many results the emulator clears of this view, and the tokens that frees."""
    body = {"messages": json.loads(view.body), "context_management": clearing.parameters}
    call = Call(body, MODELS[0], Account("default", "default"), frozenset({api_clearing.EDITING}))
    counter: Any = Estimating()
    applied = edit_context(body, call, counter, counted(view)).applied or []
    return (
        sum(edit["cleared_tool_uses"] for edit in applied),
        sum(edit["cleared_input_tokens"] for edit in applied),
    )


@settings(
    max_examples=100, deadline=None, suppress_health_check=list(HealthCheck), database=None,
    derandomize=True,
)  # fmt: skip
@given(seed=seeds)
def test_what_is_predicted_is_what_the_api_clears(seed: int) -> None:
    chance = random.Random(seed)
    maker = Maker(seed)
    view = view_from(maker.conversation())
    last: View | None = None
    for _ in range(4):
        gauge = Gauge(counted(view), "reported", 200_000)
        policy = replace(
            NATIVE,
            input_token_budget=chance.choice([1, 500, 5_000]),
            minimum_gain_tokens=chance.choice([500, 2_000]),
            clear_keep_results=chance.choice([0, 1, 3]),
            tool_policies=chance.choice([(), ("fetch_url=keep",), ("read_file=verbatim",)]),
            pins=chance.choice([frozenset(), frozenset({"toolu_2"})]),
        )
        clearing, predicted = choose_clearing(view, gauge, policy)
        assert judged(view, clearing) == (len(predicted.ids), predicted.tokens)
        assert predict_cleared(view, gauge, clearing) == predicted
        assert not set(predicted.ids) & set(map(str, policy.pins))
        last, view = view, view.with_cleared(predicted.ids)
        if view.messages[-1].role == "user":
            for message in maker.round():
                view = view.append(message)
    assert last is not None


def test_the_line_between_cleared_and_kept_stays_until_moving_it_frees_enough() -> None:
    view = view_of(prompt("a"), *rounds(6))
    clears = situation(clears=True)
    shell = Shell()
    prepared = shell.prepare(view, clears, NATIVE)
    assert prepared.cleared == ("t0", "t1", "t2", "t3", "t4")
    assert shell.kinds == ["clearing expected"]
    record = shell.records[0]
    assert (record.edits, record.reason) == ((), "t0 t1 t2 t3 t4")
    assert record.bytes_after == record.bytes_before
    assert record.tokens_after == record.tokens_before - prepared.gauge.cleared
    assert "The API clears 5 old tool results" in record.note
    assert prepared.view.body == view.body
    again = Shell()
    grown = Message.parse(50, "answer", json.dumps([use("n")]))
    after = prepared.view.append(grown).append(
        Message.parse(51, "results", json.dumps([result("n", "x" * 900)]))
    )
    settled = again.prepare(after, clears, NATIVE)
    assert again.records == []
    assert (settled.clearing and settled.clearing.keep, settled.cleared) == (2, prepared.cleared)
    more = settled.view
    for number in range(4):
        more = more.append(
            Message.parse(60 + 2 * number, "answer", json.dumps([use(f"m{number}")]))
        )
        block = result(f"m{number}", PAGE)
        more = more.append(Message.parse(61 + 2 * number, "results", json.dumps([block])))
    moved = again.prepare(more, clears, NATIVE)
    assert again.kinds == ["clearing expected"]
    assert moved.cleared == (*prepared.cleared, "t5", "n", "m0", "m1", "m2")
    assert moved.clearing is not None
    assert moved.clearing.keep == 1


def test_a_veto_keeps_the_api_from_clearing() -> None:
    view = view_of(prompt("a"), *rounds(6))
    shell = Shell(vetoes=("clearing",))
    prepared = shell.prepare(view, situation(clears=True), NATIVE)
    assert (prepared.clearing, prepared.cleared) == (None, ())
    assert shell.kinds == ["clearing vetoed"]


def test_a_vetoed_change_of_what_is_cleared_leaves_nothing_said_to_be_cleared() -> None:
    view = view_of(prompt("a"), *rounds(6)).with_cleared(("t0", "t1"))
    shell = Shell(vetoes=("clearing",))
    prepared = shell.prepare(view, situation(clears=True), NATIVE)
    assert (prepared.clearing, prepared.cleared) == (None, ())
    assert prepared.view.cleared == ()
    assert shell.kinds == ["clearing vetoed", "clearing expected"]


def test_what_to_clear_is_chosen_once_for_a_view() -> None:
    working = WorkingView(view_of(prompt("a"), *rounds(6)), situation(clears=True), NATIVE, 0)
    chosen = working.clearing
    assert chosen[1].ids
    assert working.gauge.cleared == chosen[1].tokens
    assert working.clearing is chosen
    working.view = view_of(prompt("a"))
    assert working.clearing[1] == Cleared()


def test_under_another_policy_nothing_is_cleared_any_more_and_that_is_said() -> None:
    view = view_of(prompt("a"), *rounds(6)).with_cleared(("t0", "t1"))
    shell = Shell()
    prepared = shell.prepare(view, situation(clears=True), build_policy("off"))
    assert (prepared.clearing, prepared.cleared) == (None, ())
    assert [record.note for record in shell.records] == ["The API clears no tool results any more"]
    assert prepared.view.cleared == ()
    # What left the view by itself needs no words.
    gone = view_of(prompt("a"), *rounds(1)).with_cleared(("x",))
    quiet = Shell()
    quiet.prepare(gone, situation(clears=True), NATIVE)
    assert quiet.records == []


@pytest.mark.parametrize("budget", [0, 3_000])
def test_where_the_api_does_not_clear_our_own_steps_do(budget: int) -> None:
    view = view_of(prompt("a"), *rounds(6))
    shell = Shell()
    policy = replace(NATIVE, input_token_budget=budget, compaction_threshold_tokens=10_000_000)
    prepared = shell.prepare(view, situation(clears=not budget), policy)
    assert shell.kinds == (["compaction applied"] if budget else [])
    assert prepared.clearing is None


def test_a_call_without_its_result_frees_nothing() -> None:
    view = view_of(prompt("a"), *rounds(2), answer(use("open")))
    found = predict_cleared(view, gauge_of(view, 9_000), Clearing(trigger=1, keep=0))
    assert found.ids == ("t0", "t1", "open")


def test_pins_keep_rules_and_what_was_restored_spare_their_tools() -> None:
    view = view_of(prompt("a"), *rounds(3), *round_of("k", PAGE, name="list_files"))
    gauge = gauge_of(view, 99_000)
    for policy in (
        replace(NATIVE, pins=frozenset({"t1"})),
        replace(NATIVE, pins=frozenset({3})),
        replace(NATIVE, tool_policies=("fetch_url=keep",)),
    ):
        clearing, _ = choose_clearing(view, gauge, policy)
        assert clearing.exclude_tools == ("fetch_url",)
    shell = Shell()
    cut = shell.prepare(view, situation(), replace(NATIVE, server_side=False)).view
    change = build_restore(cut, view.messages[2])
    assert change is not None
    clearing, _ = choose_clearing(change.view_after, gauge, NATIVE)
    assert clearing.exclude_tools == ("fetch_url",)


def test_the_window_is_judged_by_what_the_model_sees() -> None:
    view = view_of(prompt("a"), *rounds(60))
    assert view.tokens > 32_000
    policy = replace(NATIVE, compaction_enabled=False, max_conversation_bytes=0)
    seen = Shell()
    prepared = seen.prepare(view, situation(window=32_000, clears=True), policy)
    assert seen.kinds == ["clearing expected"]
    assert max(prepared.gauge.seen, 32_000) < prepared.gauge.tokens
    # What clearing cannot free our own steps do.
    long = view_of(prompt("a"), *[part for n in range(60) for part in (answer(PAGE), prompt("b"))])
    other = Shell()
    fit = other.prepare(long, situation(window=32_000, clears=True), policy)
    assert fit.gauge.seen <= policy.room(32_000)
    assert other.kinds == ["trim applied"]
    # Too large a batch at the end: it is compacted for good.
    batch = view_of(prompt("a"), *rounds(40), answer(*(use(f"b{n}") for n in range(9))),
                    results(*(result(f"b{n}", PAGE) for n in range(9))))  # fmt: skip
    last = Shell()
    kept = replace(policy, clear_keep_results=60)
    last.prepare(batch, situation(window=32_000, clears=True), kept)
    assert last.kinds[0] == "compaction applied"


def test_the_headers_are_part_of_an_envelopes_name_where_there_are_any() -> None:
    plain = build_envelope(model="m", max_tokens=9, system="s")
    assert (plain.headers, plain.digest) == ({}, digest_envelope(plain.text, "{}"))
    view = view_of(prompt("a"))
    assert api_clearing.build_reply_envelope(plain, view, None) == plain
    asked = api_clearing.build_reply_envelope(plain, view, Clearing())
    assert asked.headers == {"anthropic-beta": api_clearing.EDITING}
    assert dict(asked.parameters)["context_management"] == Clearing().parameters
    assert asked.digest != digest_envelope(asked.text, "{}")
    assert (asked.binding, asked.overhead) == (plain.binding, plain.overhead)
    compacting = api_clearing.build_compaction_envelope(plain)
    assert compacting.headers == {"anthropic-beta": api_clearing.COMPACTION}
    assert dict(compacting.parameters)["compaction"] == {"type": "summarize"}


def test_the_numbers_are_validated_like_the_others() -> None:
    policy = build_policy("native", {"clear_keep_results": 5, "server_side": False})
    assert (policy.clear_keep_results, policy.server_side) == (5, False)
    with pytest.raises(PolicyError, match="server_side: must be true or false"):
        build_policy("native", {"server_side": 1})
    with pytest.raises(PolicyError, match="clear_keep_results: must be from 0 to 1,000"):
        build_policy("native", {"clear_keep_results": -1})
    assert isinstance(PRESETS["native"], Policy)
