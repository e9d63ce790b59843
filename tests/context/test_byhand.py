"""A person's reductions: the same edits as the steps', whatever the thresholds."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import partial
from typing import Any

from hypothesis import HealthCheck, given, settings

from conversations.context.errors import RuleError
from conversations.context.policy.policy import PRESETS, build_policy
from conversations.context.steps.by_hand import (
    build_working_view,
    compact_by_hand,
    drop_turns_by_hand,
    estimate_input,
    is_smaller,
    list_summary_requests,
    replace_by_hand,
    summarise_by_hand,
)
from conversations.context.steps.exclude import exclude_targets, write_exclusion_notice
from conversations.context.steps.protocol import SummaryReply
from conversations.context.steps.restore import demand_legal
from conversations.context.steps.summary import END, START
from conversations.context.steps.summary_checks import SummaryFlaw
from conversations.context.steps.summary_versions import (
    EDIT,
    find_covered_zone,
    read_summary,
    request_again,
    reword_summary,
)
from conversations.context.steps.summary_zone import OURS
from conversations.context.steps.working_view import WorkingView
from conversations.context.view import edits
from conversations.context.view.edits import SpliceBlocks, SpliceMessages, Transformation
from conversations.context.view.view import Message, View
from tests.context.independent import violations
from tests.context.samples import (
    IMAGE,
    THOUGHT,
    Shell,
    answer,
    blocks,
    content,
    keeping,
    prompt,
    result,
    round_of,
    situation,
    text,
    use,
    view_of,
)
from tests.context.samples import results as batch
from tests.context.strategies import (
    RATES,
    Maker,
    policy_from_seed,
    seeds,
    situation_from_seed,
    view_from,
    writer_from_seed,
)

many = settings(
    max_examples=200, deadline=None, suppress_health_check=list(HealthCheck), database=None,
    derandomize=True,
)  # fmt: skip
LONG = "some page text " * 400
SUMMED = "They looked for jobs and liked the second one. " * 3
TALK = view_of(
    prompt("compare them", IMAGE),
    *round_of("a", LONG),
    answer(THOUGHT, "The first is good."),
    prompt("and the next " * 40),
    *round_of("b", LONG),
    answer("The second is better, I think. " * 20),
    prompt("and the last"),
    *round_of("c", LONG),
    answer("The third is bad."),
)
ROOMY = build_policy("off", {"protected_tail_messages": 2, "summary_max_tokens": 256})


def working_view_of(view: View = TALK, policy: Any = ROOMY, **more: Any) -> WorkingView:
    return build_working_view(view, situation(view, 50_000, **more), policy)


def made(change: Transformation | None) -> View:
    """Give the talk after a change, as a replay of its record makes it."""
    assert change is not None
    assert change.outcome == "applied"
    assert is_smaller(change)
    return edits.apply(TALK, change.kind, edits.load_edits(edits.dump_edits(change.edits)))


def answered(steps: Any, write: Any) -> Any:
    """Drive a summary with a writer and give what it returns."""
    reply = None
    try:
        while True:
            reply = write(steps.send(reply))
    except StopIteration as stop:
        return stop.value


def test_results_go_down_to_the_latest_batch_below_every_threshold() -> None:
    change = compact_by_hand(working_view_of())
    done = made(change)
    assert [len(str(blocks(done, at)[0]["content"])) < 700 for at in (2, 6, 10)] == [
        True, True, False,
    ]  # fmt: skip
    assert change is not None
    assert (change.trigger.threshold, change.trigger.setting) == (0, "by_hand")
    assert (change.trigger.number, change.trigger.source) == (50_000, "reported")
    assert change.note == "Compacted 2 old tool results by hand"
    assert compact_by_hand(working_view_of(done)) is None
    assert compact_by_hand(working_view_of(view_of(prompt("Hello")))) is None
    one = compact_by_hand(working_view_of(pins=frozenset({"a"})))
    assert one is not None
    assert one.note == "Compacted 1 old tool result by hand"
    assert blocks(one.view_after, 2) == blocks(TALK, 2)


def test_the_oldest_turns_go_whole_down_to_half() -> None:
    done = made(drop_turns_by_hand(working_view_of()))
    assert [message.seq for message in done.messages] == [1, 9, 10, 11, 12]
    assert '"msg_3"' in str(blocks(done, 0)[-1]["text"])
    assert blocks(done, 0)[:2] == blocks(TALK, 0)
    assert drop_turns_by_hand(working_view_of(done)) is None
    assert drop_turns_by_hand(working_view_of(view_of(prompt("Hello"), answer("Hi")))) is None
    few = view_of(*[step for n in range(9) for step in (prompt(f"ask {n} " * 99), answer("ok"))])
    left = drop_turns_by_hand(working_view_of(few))
    assert left is not None
    assert few.tokens * 3 < left.tokens_after * 10 <= few.tokens * 6
    held = drop_turns_by_hand(working_view_of(pins=frozenset({6})))
    assert held is not None
    assert [message.seq for message in held.view_after.messages] == [1, 6, 7, 9, 10, 11, 12]


def test_what_would_free_nothing_is_not_proposed() -> None:
    view = edits.apply(
        view_of(prompt("a"), answer("b"), prompt("c")), "trim", [SpliceBlocks(2, 0, 1)]
    )
    assert drop_turns_by_hand(working_view_of(view)) is None


def test_a_summary_is_asked_for_below_every_threshold() -> None:
    change = answered(
        summarise_by_hand(working_view_of()), lambda wanted: SummaryReply(SUMMED, "end_turn")
    )
    done = made(change)
    assert read_summary(done) == SUMMED.strip()
    assert answered(summarise_by_hand(working_view_of(view_of(prompt("Hello")))), keeping) is None
    assert answered(summarise_by_hand(working_view_of(View())), keeping) is None
    again = replace_by_hand(working_view_of(), SUMMED)
    assert isinstance(again, Transformation)
    assert again.view_after.body == done.body
    assert isinstance(replace_by_hand(working_view_of(), ""), SummaryFlaw)
    assert isinstance(replace_by_hand(working_view_of(View()), SUMMED), SummaryFlaw)
    failed = answered(summarise_by_hand(working_view_of()), lambda wanted: None)
    assert (failed.outcome, failed.view_after) == ("rejected", TALK)


def test_the_questions_of_a_summary_are_known_before_any_is_asked() -> None:
    (one,) = list_summary_requests(summarise_by_hand(working_view_of()))
    assert one.max_tokens == 256
    assert estimate_input([one]) > 100
    narrow = build_working_view(
        TALK, situation(window=1_500), replace(ROOMY, window_reserve_tokens=300)
    )
    assert len(list_summary_requests(summarise_by_hand(narrow))) > 2
    naming = view_of(
        prompt("Look"), *round_of("a", "see https://e.org/17 " + LONG), answer("ok"),
        prompt("open https://e.org/17"), answer("done"),
    )  # fmt: skip
    assert len(list_summary_requests(summarise_by_hand(working_view_of(naming)))) == 1
    assert list_summary_requests(summarise_by_hand(working_view_of(view_of(prompt("Hello"))))) == []


def test_a_second_change_costs_only_what_the_first_one_left_in_the_cache() -> None:
    def cost(edited_from: int | None) -> int:
        change = compact_by_hand(working_view_of(rates=RATES, edited_from=edited_from))
        assert change is not None
        assert change.decision is not None
        return change.decision.cost

    # The first result is in message 3.
    assert cost(None) > cost(9) > cost(5) > cost(3) == cost(0) == 0


def test_what_a_change_costs_is_what_the_cache_writes_anew() -> None:
    warm = compact_by_hand(working_view_of(rates=RATES, overhead=3_000))
    cold = compact_by_hand(working_view_of(rates=RATES, cache_age=400))
    assert warm is not None
    assert cold is not None
    assert warm.decision is not None
    assert cold.decision is not None
    assert (warm.decision.why, cold.decision.cost) == ("asked", 0)
    late = exclude_targets(working_view_of(rates=RATES), {8})
    assert late is not None
    assert late.decision is not None
    # Only what stands behind the first difference; system prompt and tools stand before it.
    assert 0 < late.decision.cost < warm.decision.cost


def test_what_a_person_leaves_out_is_a_notice_that_names_it() -> None:
    done = made(exclude_targets(working_view_of(), {"b", 5, 8}))
    assert blocks(done, 6) == [result("b", write_exclusion_notice("b"))]
    assert blocks(done, 4) == [text(write_exclusion_notice("msg_5"))]
    assert blocks(done, 7) == [text(write_exclusion_notice("msg_8"))]
    assert blocks(done, 3)[0] == THOUGHT  # before the first edit
    assert exclude_targets(working_view_of(done), {"b", 5, 8}) is None
    assert compact_by_hand(working_view_of(done)) is not None
    change = exclude_targets(working_view_of(), {"b"})
    assert change is not None
    assert (change.trigger.setting, change.note) == ("exclude", "Left 1 part out by hand")
    assert blocks(made(exclude_targets(working_view_of(), {7})), 6) == [
        result("b", write_exclusion_notice("b"))
    ]


def test_only_words_leave_an_answer_and_the_first_message_stays() -> None:
    view = view_of(
        prompt("look", "[and this] " * 40), answer(THOUGHT, "a " * 90, THOUGHT, "b", use("a")),
        batch(result("a", "ok", is_error=True)), answer("Good."), prompt(IMAGE, "that? " * 40),
    )  # fmt: skip
    change = exclude_targets(working_view_of(view), {1, 2, 4, 5, "a"})
    assert change is not None
    assert blocks(change.view_after, 0) == blocks(view, 0)
    assert blocks(change.view_after, 1) == [
        THOUGHT,
        text(write_exclusion_notice("msg_2")),
        use("a"),
    ]
    assert blocks(change.view_after, 2) == blocks(view, 2)
    assert blocks(change.view_after, 3) == [text("Good.")]
    assert blocks(change.view_after, 4) == [text(write_exclusion_notice("msg_5"))]
    assert exclude_targets(working_view_of(view), {1, 4, "a", "gone"}) is None


def test_a_view_that_the_next_request_repairs_can_be_changed_before() -> None:
    broken = view_of(prompt("x"), *round_of("a", LONG), *round_of("b", "ok"), answer(use("c")))
    change = compact_by_hand(working_view_of(broken))
    assert change is not None
    done = Shell().prepare(
        change.view_after.append(Message.parse(9, "prompt", content(["y"]))),
        situation(),
        PRESETS["off"],
    )
    assert violations(done.view.body) == []
    assert len(str(blocks(done.view, 2)[0]["content"])) < 700


def summarised(view: View = TALK) -> Transformation:
    change = answered(
        summarise_by_hand(working_view_of(view)),
        lambda wanted: SummaryReply(SUMMED + keeping(wanted).text, "end_turn"),
    )
    assert isinstance(change, Transformation)
    return change


def test_a_person_gives_a_summary_other_words() -> None:
    first = summarised()
    zone = find_covered_zone(TALK, first.edits)
    assert zone is not None
    assert [message.seq for message in zone.messages] == [2, 3, 4, 5, 6, 7, 8]
    working = working_view_of(first.view_after)
    longer = SUMMED * 2 + " Rate 650."
    change = reword_summary(working, TALK, zone, longer, EDIT)
    assert isinstance(change, Transformation)
    assert change.bytes_after > change.bytes_before
    assert (change.kind, change.trigger.setting) == ("summary", "edit")
    assert read_summary(change.view_after) == longer
    whole = str(blocks(change.view_after, 0)[-1]["text"])
    assert (whole.startswith(START), whole.endswith(END)) == (True, True)
    assert '"msg_3"' in whole
    assert change.view_after.messages[0].by[-1] in OURS
    assert reword_summary(working_view_of(change.view_after), TALK, zone, longer, EDIT) is None
    assert find_covered_zone(first.view_after, change.edits) is None


def test_words_are_checked_as_those_of_the_model() -> None:
    first = summarised()
    zone = find_covered_zone(TALK, first.edits)
    assert zone is not None
    for bad in ("", "Error: 529", SUMMED * 999):
        assert isinstance(
            reword_summary(working_view_of(first.view_after), TALK, zone, bad, EDIT), SummaryFlaw
        )
    assert reword_summary(working_view_of(), TALK, zone, SUMMED, EDIT) is None
    assert reword_summary(working_view_of(View()), TALK, zone, SUMMED, EDIT) is None
    put = SpliceBlocks(0, 0, 0, ('{"type":"text","text":"x"}',))
    signed = edits.apply(TALK, "summary", [SpliceMessages(0, 0, ((0, "answer", "[]"),)), put])
    assert read_summary(signed) == ""


def test_a_summary_is_asked_for_again_over_the_same_messages() -> None:
    first = summarised()
    zone = find_covered_zone(TALK, first.edits)
    assert zone is not None
    working = working_view_of(first.view_after)
    said = "Other words for the same things. " * 4
    again = answered(
        request_again(TALK, zone, working.gauge, working.policy),
        lambda wanted: SummaryReply(said, "end_turn"),
    )
    assert find_covered_zone(TALK, again.edits) == zone
    change = reword_summary(working, TALK, zone, said, "rebuild")
    assert isinstance(change, Transformation)
    assert change.view_after.body == again.view_after.body


def test_only_a_summary_of_ours_has_messages_it_stands_for() -> None:
    put = SpliceBlocks(1, 2, 0, ('{"type":"text","text":"x"}',))
    assert find_covered_zone(TALK, ()) is None
    assert find_covered_zone(View(), (put,)) is None
    assert find_covered_zone(TALK, (put,)) is None
    assert find_covered_zone(TALK, (SpliceMessages(2, 3),)) is None
    assert find_covered_zone(TALK, (SpliceBlocks(2, 0, 0), SpliceMessages(3, 4))) is None
    assert find_covered_zone(TALK, (put, SpliceMessages(2, 2, ((2, "prompt", "[]"),)))) is None
    assert find_covered_zone(TALK, (put, SpliceMessages(2, 3))) is not None


def legal(view: View) -> bool:
    try:
        demand_legal(TALK, view)
    except RuleError:
        return False
    return True


def _summed(working: WorkingView, seed: int) -> Transformation | None:
    change: Transformation | None = answered(summarise_by_hand(working), writer_from_seed(seed))
    return change


@many
@given(seed=seeds)
def test_whatever_is_done_by_hand_is_legal_and_shrinks_and_replays(seed: int) -> None:
    chance = random.Random(seed)
    view = view_from(Maker(seed).conversation())
    if chance.random() < 0.5 and view.messages[-1].kind == "prompt":
        view = view.append(Message.parse(10**6, "answer", '[{"type":"text","text":"Done."}]'))
    if not legal(view):
        return
    known, policy = situation_from_seed(seed, view), policy_from_seed(seed)
    pins = known.pins
    ids = [r.id for m in view.messages for r in m.shape.results]
    targets = {pin for pin in [*ids, *(m.seq for m in view.messages)] if chance.random() < 0.3}
    for _ in range(3):
        working = build_working_view(view, known, policy)
        made = (
            partial(compact_by_hand, working),
            partial(drop_turns_by_hand, working),
            partial(_summed, working, seed),
            partial(exclude_targets, working, targets - pins),
        )
        change = chance.choice(made)()
        if change is None or change.outcome != "applied":
            continue
        assert is_smaller(change)
        after = edits.apply(view, change.kind, edits.load_edits(edits.dump_edits(change.edits)))
        assert after.body == change.view_after.body
        asked = after
        if after.messages[-1].kind == "answer":
            asked = after.append(Message.parse(10**7, "prompt", '[{"type":"text","text":"?"}]'))
        assert violations(asked.body) == []
        own = [b.text for b in view.messages[0].blocks if b.by not in OURS]
        assert [b.text for b in after.messages[0].blocks if b.by not in OURS] == own
        kept = {m.seq: m for m in after.messages}
        assert all(pin in kept for pin in pins if pin in {m.seq for m in view.messages})
        view = after


@many
@given(seed=seeds)
def test_what_was_done_by_hand_is_not_done_again(seed: int) -> None:
    view = view_from(Maker(seed).conversation())
    if not legal(view):
        return
    known, policy = situation_from_seed(seed, view), policy_from_seed(seed)
    every = {found.id for message in view.messages for found in message.shape.results}
    for step in (compact_by_hand, lambda working: exclude_targets(working, every)):
        change = step(build_working_view(view, known, policy))
        if change is not None:
            assert step(build_working_view(change.view_after, known, policy)) is None


def test_presets_do_not_matter_to_a_wish() -> None:
    for policy in PRESETS.values():
        assert compact_by_hand(working_view_of(policy=policy)) is not None
        assert drop_turns_by_hand(working_view_of(policy=policy)) is not None
