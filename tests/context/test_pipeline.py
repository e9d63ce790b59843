"""The order of steps, the window, overflows and vetoes."""

from __future__ import annotations

from typing import Any

import pytest

from conversations.context import pipeline
from conversations.context.errors import RuleError, WindowError
from conversations.context.policy.policy import PRESETS, build_policy
from conversations.context.view import edits, rules
from conversations.context.view.edits import (
    SpliceMessages,
    Transformation,
    Trigger,
    build_transformation,
)
from conversations.context.view.view import View
from tests.context.independent import violations
from tests.context.samples import (
    THOUGHT,
    Shell,
    answer,
    blocks,
    keeping,
    prompt,
    result,
    results,
    round_of,
    situation,
    use,
    view_of,
    writing,
)

PAGE = "some page text " * 400
CLASSIC = build_policy("classic")
OFF = build_policy("off")


def rounds(count: int, size: str = PAGE) -> list[Any]:
    return [m for n in range(count) for m in round_of(f"t{n}", size, url=f"https://e.org/{n}")]


def test_the_steps_come_in_their_order_and_the_figure_is_measured_anew_after_each() -> None:
    view = view_of(prompt("a"), answer(THOUGHT, "b"), *rounds(30), *round_of("last", "x" * 50_000))
    shell = Shell(writes=keeping)
    known = situation(view, 300_000, window=1_000_000, bound_to="e")
    prepared = shell.prepare(view, known, CLASSIC)
    assert shell.kinds == ["ingest applied", "compaction applied", "summary applied"]
    tokens = [record.trigger.number for record in shell.records[1:]]
    assert 300_000 > tokens[0] > tokens[1] > prepared.gauge.tokens
    assert violations(prepared.view.body) == []


def test_off_sends_the_stored_history_unchanged_or_ends_with_a_clear_error() -> None:
    view = view_of(prompt("a"), *rounds(30))
    assert Shell().prepare(view, situation(view, 180_000), OFF).view is view
    with pytest.raises(WindowError) as caught:
        Shell().prepare(view, situation(view, 190_000), OFF)
    assert str(caught.value) == (
        "The chat is about 190,000 tokens and model takes at most 184,000 here."
    )
    with pytest.raises(WindowError):
        Shell().prepare(view, situation(view, 10), OFF, harder=1)
    thinking = view_of(prompt("a"), answer(THOUGHT, "b"), prompt("c"))
    shell = Shell()
    shell.prepare(thinking, situation(bound_to="other"), OFF)
    assert shell.kinds == ["rebind applied"]


def test_a_window_that_is_too_small_is_refused_and_a_small_one_is_kept() -> None:
    view = view_of(prompt("a"))
    with pytest.raises(WindowError):
        Shell().prepare(view, situation(window=15_999), CLASSIC)
    assert Shell().prepare(view, situation(window=16_000), CLASSIC).view is view


def test_what_cannot_be_made_to_fit_ends_before_sending() -> None:
    view = view_of(prompt("a"))
    with pytest.raises(WindowError):
        Shell().prepare(view, situation(window=32_000, overhead=26_000), CLASSIC)


def test_each_attempt_after_an_overflow_reduces_more() -> None:
    said = [*rounds(20), *round_of("t98", "y " * 9_000), *round_of("t99", "z " * 9_000)]
    view = view_of(prompt("a"), *said)
    policy = build_policy("rebuild", {"max_conversation_messages": 0})
    sizes, kinds = [], []
    for harder in (0, 1, 2, 3):
        shell = Shell(writes=keeping)
        prepared = shell.prepare(view, situation(view, 70_000), policy, harder=harder)
        sizes.append(prepared.view.tokens)
        assert violations(prepared.view.body) == []
        kinds += shell.kinds
        view = prepared.view
    assert sizes[0] > sizes[1] > sizes[2] >= sizes[3]
    assert kinds[:2] == ["summary applied", "compaction applied"]
    assert len(blocks(view, view.length - 1)[0]["content"]) < 1_000


def test_the_last_attempt_takes_the_largest_blocks_even_of_the_first_message() -> None:
    view = view_of(prompt("word " * 30_000), answer("b"), prompt("c"))
    shell = Shell()
    prepared = shell.prepare(view, situation(view, 60_000), CLASSIC, harder=3)
    assert shell.kinds == ["shrink applied"]
    assert prepared.gauge.tokens <= 15_000
    assert '"msg_1"' in blocks(prepared.view, 0)[0]["text"]


@pytest.mark.parametrize("name", [name for name in PRESETS if name != "off"])
def test_a_prompt_behind_what_does_not_fit_does_not_lock_the_conversation(name: str) -> None:
    calls = [use(f"t{n}") for n in range(9)]
    found = [result(call["id"], PAGE * 3) for call in calls]
    stopped = [answer(*calls), results(*found)]
    for said in (stopped, [answer(PAGE * 20)]):
        for asked in ([prompt("go on")], [prompt("go on"), prompt("hello?")]):
            view = view_of(prompt("a"), *said, *asked)
            prepared = Shell().prepare(view, situation(window=32_000), PRESETS[name])
            assert prepared.gauge.tokens <= 25_600
            assert prepared.view.messages[-1] == view.messages[-1]
            # Nothing a person wrote is dropped for what cannot be dropped itself.
            assert prepared.view.length == view.length


def test_a_failed_summary_of_an_overflow_is_followed_by_trimming() -> None:
    view = view_of(prompt("a"), *rounds(20), prompt("b"), *round_of("t98", PAGE))
    shell = Shell(writes=writing(None))
    policy = build_policy("rebuild", {"max_conversation_messages": 0})
    shell.prepare(view, situation(view, 70_000), policy, harder=1)
    assert shell.kinds == ["summary rejected", "trim applied"]
    assert len(shell.wanted) == 1


def test_a_vetoed_proposal_is_recorded_and_its_step_skipped() -> None:
    view = view_of(prompt("a"), *rounds(30))
    shell = Shell(writes=keeping, vetoes=("compaction",))
    prepared = shell.prepare(view, situation(view, 90_000), CLASSIC)
    assert shell.kinds == ["compaction vetoed", "summary applied"]
    assert shell.records[0].reason == "not now"
    assert shell.records[0].bytes_after == shell.records[0].bytes_before == view.size
    assert prepared.view.edits == 1


def test_a_request_that_breaks_a_rule_is_never_given_out() -> None:
    view = view_of(prompt("a"), answer("b"))
    prepared = Shell().prepare(view, situation(), CLASSIC)
    rules.check_rules(prepared.view)
    with pytest.raises(RuleError):
        rules.check_rules(view)


def test_a_rule_that_a_step_broke_is_repaired_before_sending(monkeypatch: Any) -> None:
    view = view_of(prompt("a"), *rounds(2), prompt("b"))

    def lose(view: View, _gauge: object, _policy: object) -> Transformation | None:
        if len(view.messages) < 6:
            return None
        edit, trigger = SpliceMessages(3, 3), Trigger(1, 0, "counted")
        return build_transformation(view, "ingest", trigger, [edit], "Lost")

    monkeypatch.setitem(pipeline._STEPS, "ingest:shape_new_results", lose)
    shell = Shell()
    prepared = shell.prepare(view, situation(), CLASSIC)
    rules.check_rules(prepared.view)
    assert shell.kinds == ["ingest applied", "repair applied"]


def test_trimming_goes_on_when_thinking_was_in_the_way() -> None:
    long = {**THOUGHT, "thinking": "hm " * 2_000}
    said = [part for n in range(3) for part in (prompt(f"p{n}"), answer(long, f"a{n}"))]
    view = view_of(*said, prompt("now"))
    policy = build_policy("gated-trim", {"max_conversation_bytes": 900})
    shell = Shell()
    prepared = shell.prepare(view, situation(bound_to="other"), policy)
    assert shell.kinds == ["rebind applied"]
    assert prepared.view.size < 900
    wide = build_policy("gated-trim", {"max_conversation_bytes": 500})
    pages = view_of(*said[:-1], answer(long, PAGE[:200]), prompt("now"))
    again = Shell()
    again.prepare(pages, situation(bound_to="other"), wide)
    assert again.kinds == ["rebind applied", "trim applied"]


def test_a_dropped_range_may_leave_neighbours_of_one_role() -> None:
    view = view_of(prompt("a"), answer("b"), prompt("c"), *round_of("t", "d"), prompt("e"))
    done = edits.apply(view, "trim", [SpliceMessages(2, 2)])
    assert Shell().prepare(done, situation(), CLASSIC).view == done
    assert blocks(done, 3) == [result("t", "d")]
