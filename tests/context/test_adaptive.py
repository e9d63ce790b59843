"""Reducing rarely and a lot: when it acts, how far it goes, and the numbers it reports."""

from __future__ import annotations

from typing import Any

import pytest

from conversations.context.policy.policy import build_policy
from conversations.context.policy.scaling import scale_policy
from conversations.context.steps.protocol import Prepared
from conversations.context.view.cost_decision import Rates, weigh_reduction
from conversations.context.view.edits import Transformation
from conversations.context.view.view import View
from tests.context.independent import violations
from tests.context.samples import (
    Shell,
    answer,
    blocks,
    keeping,
    prompt,
    result,
    round_of,
    situation,
    view_of,
    writing,
)
from tests.context.test_defects import grown

SONNET = Rates(2_000_000, 10_000_000, 2_500_000, 100_000)
HAIKU = Rates(100_000, 500_000, 125_000, 10_000, cliff=100_000)
#: Without the promise, and with a mark that the conversations below can reach.
OPEN = {"keep_below_tokens": 0, "low_water_tokens": 20_000}
ADAPTIVE = build_policy("adaptive", OPEN)
PLAIN = build_policy("adaptive", OPEN, {"compaction_enabled": False})
WHOLE = build_policy("adaptive", OPEN, {"compaction_enabled": False, "max_tool_result_chars": 0})
PAGE = "some page text " * 400
#: Many small results: shortening them is not enough.
MANY, SMALL = 165, PAGE[:2_000]


def talk(count: int, page: str = PAGE) -> View:
    explanation = [
        m for n in range(count) for m in round_of(f"t{n}", page, url=f"https://e.org/{n}")
    ]
    return view_of(prompt("go"), *explanation)


def run(view: View, shell: Shell, policy: Any = PLAIN, **more: Any) -> Prepared:
    made = {"calls": sum(message.kind == "answer" for message in view.messages)}
    return shell.prepare(view, situation(view, view.tokens, **(made | more)), policy)


def decided(change: Transformation) -> str:
    assert change.decision is not None
    return change.decision.why


def test_without_prices_only_the_share_of_the_window_counts() -> None:
    view = talk(MANY, SMALL)
    shell = Shell()
    assert run(view, shell, window=200_000).view is view
    prepared = run(view, shell, window=120_000)
    assert shell.kinds == ["trim applied", "compaction applied"]
    [first, second] = shell.records
    assert decided(first) == decided(second) == "share"
    assert first.trigger.threshold == 104_000 * 90 // 100
    assert f"input tokens {view.tokens:,} exceeded 93,600; frees about " in second.note
    assert prepared.view.tokens <= 20_000
    assert violations(prepared.view.body) == []
    assert run(prepared.view, shell, window=120_000).view == prepared.view
    assert run(view, shell, window=120_000, cache_age=9_999).view == prepared.view


def test_it_goes_down_to_the_low_water_mark_in_one_go_and_what_left_is_named() -> None:
    view = talk(MANY, SMALL)
    roomy = build_policy(
        "adaptive", OPEN, {"compaction_enabled": False, "recall_list_chars": 8_000}
    )
    done = run(view, Shell(), roomy, window=1_000_000, rates=SONNET).view
    assert 12_000 < done.tokens <= 20_000
    listed = blocks(done, 0)[1]["text"]
    gone = {message.seq for message in view.messages if message.kind == "results"}
    gone -= {message.seq for message in done.messages}
    assert len(gone) > 20
    assert all(f'"msg_{seq}": fetch_url https://e.org/' in listed for seq in gone)
    # A list with less room counts the others.
    done = run(view, Shell(), window=1_000_000, rates=SONNET).view
    gone = {message.seq for message in view.messages if message.kind == "results"}
    gone -= {message.seq for message in done.messages}
    listed = blocks(done, 0)[1]["text"]
    named = sum(f'"msg_{seq}"' in listed for seq in gone)
    assert 0 < named < len(gone)
    assert f"(and {len(gone) - named} older ones; recall with a query finds them)" in listed
    # The newest are whole, the others keep their structure.
    assert blocks(done, done.length - 1) == [result(f"t{MANY - 1}", SMALL)]
    assert blocks(done, 2)[0]["content"].endswith("for the rest]")
    assert "characters left out" in blocks(done, 2)[0]["content"]
    assert len(blocks(done, 2)[0]["content"]) <= 500


def test_what_is_recent_stays_whole_for_a_good_part_of_the_low_water_mark() -> None:
    view = talk(60)
    done = run(view, Shell(), window=1_000_000, rates=SONNET).view
    results = [message for message in done.messages if message.kind == "results"]
    whole = [message.seq for message in results if not message.by]
    used = sum(message.tokens for message in done.messages if message.seq >= whole[0])
    assert whole[-1] == view.messages[-1].seq
    assert len(whole) > 3
    assert 8_000 < used <= 12_000


def test_it_acts_when_the_calls_to_come_pay_for_the_rewriting_and_says_so() -> None:
    view, acted = talk(1), []
    for n in range(1, 100):
        view = grown(view, *round_of(f"u{n}", PAGE))
        shell = Shell()
        view = run(view, shell, window=1_000_000, rates=SONNET).view
        acted += [(n, record) for record in shell.applied]
    firsts = [n for n, record in acted if record.kind == "compaction"]
    assert 2 <= len(firsts) <= 4
    change = acted[0][1]
    found = change.decision
    assert found is not None
    assert found.why == "pays"
    assert found.pays
    assert found.cost > 0
    assert found.saved_each * found.pays_back_calls >= found.cost
    assert found.saved_each * (found.pays_back_calls - 1) < found.cost
    back = found.pays_back_calls
    assert change.note.endswith(f"back after {back} calls, about {found.expected_calls} expected")


def test_a_conversation_of_few_calls_is_not_reduced_for_money() -> None:
    view = view_of(prompt("word " * 200_000), answer("done"), prompt("thanks"))
    shell = Shell()
    assert run(view, shell, window=1_000_000, rates=SONNET).view is view
    far = talk(3, PAGE * 20)
    assert run(far, shell, WHOLE, window=1_000_000, rates=SONNET).view is far


def test_a_cold_cache_is_a_good_moment() -> None:
    view = talk(25)
    shell = Shell()
    assert run(view, shell, window=1_000_000, rates=SONNET, cache_age=299).view is view
    done = run(view, shell, window=1_000_000, rates=SONNET, cache_age=300).view
    assert decided(shell.records[0]) == "cold"
    assert shell.records[0].note.endswith(
        "), costs no more than sending them once more: nothing is in the prompt cache"
    )
    assert done.tokens <= 20_000
    short = talk(15)
    assert run(short, shell, window=1_000_000, rates=SONNET, cache_age=300).view is short


def test_a_price_cliff_is_not_stepped_over() -> None:
    view = talk(55)
    assert 96_000 < view.tokens < 100_000
    shell = Shell()
    done = run(view, shell, window=1_000_000, rates=HAIKU).view
    assert decided(shell.records[0]) == "cliff"
    assert done.tokens <= 21_000
    below = view_of(prompt("x " * 90_000), answer("a"), prompt("b"))
    assert run(below, shell, window=1_000_000, rates=HAIKU).view is below


def test_it_never_acts_for_less_than_the_minimum_gain() -> None:
    # Nearly all of it is the latest batch, which is never touched.
    view = view_of(prompt("go"), *round_of("a", "small"), *round_of("b", PAGE * 60))
    shell = Shell()
    assert run(view, shell, WHOLE, window=120_000).view is view
    alone = view_of(prompt("word " * 70_000))
    assert run(alone, shell, window=120_000).view is alone
    wanted = build_policy("adaptive", {"minimum_gain_tokens": 200_000})
    long = talk(60)
    assert run(long, shell, wanted, window=1_000_000, rates=SONNET, cache_age=300).view is long
    assert shell.records == []


def test_compaction_alone_is_enough_where_results_are_large() -> None:
    view = talk(8, PAGE * 5)
    shell = Shell(writes=keeping)
    done = run(view, shell, ADAPTIVE, window=1_000_000, rates=SONNET, cache_age=300).view
    assert shell.kinds == ["compaction applied"]
    assert done.length == view.length


def test_what_does_not_fit_is_summarised_and_dropped_where_there_is_no_summary() -> None:
    view = talk(MANY, SMALL)
    good = Shell(writes=keeping)
    done = run(view, good, ADAPTIVE, window=120_000).view
    assert good.kinds == ["summary applied", "compaction applied"]
    assert decided(good.records[0]) == "share"
    assert "; frees about " in good.records[0].note
    assert done.tokens <= 20_000
    over = {"window": view.tokens, "rates": SONNET}
    bad = Shell(writes=writing(None))
    assert run(view, bad, ADAPTIVE, **over).view.tokens <= 20_000
    assert bad.kinds == ["summary rejected", "trim applied", "compaction applied"]
    tired = Shell(writes=keeping)
    run(view, tired, ADAPTIVE, rejected=3, **over)
    assert tired.kinds == ["trim applied", "compaction applied"]
    assert tired.wanted == []


def test_a_failed_summary_leaves_the_context_as_it_was_unless_the_window_forces_it() -> None:
    view = talk(MANY, SMALL)
    bad = Shell(writes=writing(None))
    assert run(view, bad, ADAPTIVE, window=1_000_000, rates=SONNET).view is view
    assert bad.kinds == ["summary rejected"]
    tired = Shell(writes=keeping)
    assert run(view, tired, ADAPTIVE, window=1_000_000, rates=SONNET, rejected=3).view is view
    assert tired.kinds == []


def test_a_rejected_summary_is_requested_again_only_once_its_zone_has_grown() -> None:
    view = talk(MANY, SMALL)
    known = {"window": 1_000_000, "rates": SONNET, "rejected": 1}
    for refused_at, requests in ((view.tokens, 0), (view.tokens * 100 // 126, 1)):
        shell = Shell(writes=keeping)
        run(view, shell, ADAPTIVE, rejected_at=refused_at, **known)
        assert len(shell.wanted) == requests


def test_a_veto_ends_the_attempt() -> None:
    view = talk(MANY, SMALL)
    shell = Shell(vetoes=("compaction", "trim"))
    assert run(view, shell, window=120_000).view is view
    assert shell.kinds == ["trim vetoed", "compaction vetoed"]


def test_a_small_window_has_everything_in_proportion() -> None:
    large = scale_policy(ADAPTIVE, 184_000, 3_000)
    assert large == ADAPTIVE
    small = scale_policy(ADAPTIVE, 25_600, 5_600)
    assert small.low_water_tokens == 20_000 * ADAPTIVE.low_water_percent // 100
    assert small.minimum_gain_tokens == small.low_water_tokens
    assert small.recall_list_chars == small.low_water_tokens // 2
    assert small.action_list_chars == small.low_water_tokens // 10
    assert small.name_list_chars == small.low_water_tokens * 2
    assert small.summary_max_tokens == small.low_water_tokens // 4
    assert small.max_tool_result_chars == 15_000
    # What a person set lower stays, and 0 is still never.
    lists = {"recall_list_chars": 600, "action_list_chars": 310, "name_list_chars": 700}
    off = build_policy("adaptive", {"max_tool_result_chars": 0, **lists})
    assert scale_policy(off, 25_600, 0).max_tool_result_chars == 0
    assert scale_policy(off, 25_600, 0).recall_list_chars == 600
    assert scale_policy(off, 25_600, 0).action_list_chars == 310
    assert scale_policy(off, 25_600, 0).name_list_chars == 700
    tiny = scale_policy(ADAPTIVE, 12_800, 12_800)
    assert tiny.max_tool_result_chars > tiny.tool_result_retention_chars
    assert (tiny.summary_max_tokens, tiny.recall_list_chars) == (256, 500)
    assert tiny.action_list_chars == 300


@pytest.mark.parametrize(
    ("window", "kind"), [(16_000, "trim"), (32_000, "trim"), (64_000, "summary")]
)
def test_in_a_small_window_one_reduction_serves_many_calls(window: int, kind: str) -> None:
    """Where even so a summary costs more than the reduction saves, no model is asked for one."""
    view, bodies, kinds = view_of(prompt("go")), [""], list[str]()
    for n in range(200):
        view = grown(view, *round_of(f"t{n}", SMALL, url=f"https://e.org/{n}"))
        shell = Shell(writes=keeping)
        view = run(view, shell, ADAPTIVE, window=window, rates=SONNET).view
        kinds += [change.kind for change in shell.applied]
        bodies.append(view.body[:-1])
        assert len(shell.wanted) == kinds[len(kinds) - len(shell.applied) :].count("summary")
    assert {kind} <= set(kinds) <= {"compaction", kind}
    assert kinds.count(kind) * (window * 8 // 10) <= 200 * 650 * 2


@pytest.mark.parametrize(("least", "kinds"), [(0, ["summary"]), (50_000, ["trim"])])
def test_a_summary_is_written_of_what_is_worth_its_price_alone(
    least: int, kinds: list[str]
) -> None:
    policy = build_policy("adaptive", {"summary_least_tokens": least})
    view, shell = talk(60, SMALL), Shell(writes=keeping)
    done = run(view, shell, policy, window=32_000, rates=SONNET).view
    assert [change.kind for change in shell.applied if change.kind != "compaction"] == kinds
    assert len(shell.wanted) == kinds.count("summary")
    # A breaker does not keep what is dropped without one in any case.
    shell = Shell(writes=keeping)
    broken = run(view, shell, policy, window=32_000, rates=SONNET, rejected=3)
    assert not shell.wanted
    assert (broken.view == done) == (least > 0)


def test_for_the_little_that_can_leave_beside_a_long_request_no_summary_is_bought() -> None:
    rounds = [m for n in range(6) for m in round_of(f"t{n}", SMALL[:1_200])]
    view = view_of(prompt("go " + PAGE * 7), *rounds)
    shell = Shell(writes=keeping)
    done = run(view, shell, build_policy("adaptive"), window=16_000, rates=SONNET).view
    assert done.tokens < 12_800
    assert shell.kinds == ["shrink applied"]
    assert shell.wanted == []


@pytest.mark.parametrize(
    ("many", "window", "kind"), [(60, 32_000, "trim applied"), (MANY, 200_000, "summary applied")]
)
def test_thrifty_summarises_a_large_reduction_and_not_a_small_one(
    many: int, window: int, kind: str
) -> None:
    shell = Shell(writes=keeping)
    run(talk(many, SMALL), shell, build_policy("thrifty", {}), window=window, rates=SONNET)
    assert {"summary applied", "trim applied"} & set(shell.kinds) == {kind}


def test_of_many_short_messages_few_are_recent() -> None:
    explanation = [m for n in range(900) for m in (answer(f"I see {n}."), prompt(f"And then {n}?"))]
    view = view_of(prompt("go"), *explanation, *round_of("a", PAGE * 4), prompt("Go on."))
    done = run(view, Shell(), PLAIN, window=1_000_000, rates=SONNET, cache_age=300).view
    assert done.tokens < 12_000
    assert done.messages[-1] == view.messages[-1]


def test_pinned_messages_stay_whole_while_everything_around_them_goes() -> None:
    view = talk(MANY, SMALL)
    done = run(view, Shell(), window=120_000, pins=frozenset({"t3", 11})).view
    kept = {message.seq: message for message in done.messages}
    for seq in (8, 9, 10, 11):
        assert kept[seq] == view.messages[seq - 1]
    assert violations(done.body) == []


def test_thirty_growing_turns_break_the_prefix_at_most_three_times() -> None:
    view, bodies, fired = view_of(prompt("a")), [""], list[int]()
    for n in range(1, 31):
        view = grown(view, *round_of(f"t{n}", PAGE * 2), answer(f"a{n}"), prompt(f"p{n}"))
        shell = Shell(writes=keeping)
        view = run(view, shell, ADAPTIVE, window=200_000, rates=SONNET).view
        fired += [n] if shell.applied else []
        bodies.append(view.body[:-1])
    broken = [n for n in range(1, 31) if not bodies[n].startswith(bodies[n - 1])]
    assert broken == fired
    assert 1 <= len(broken) <= 3


@pytest.mark.parametrize("calls", [0, 5, 500])
def test_without_prices_nothing_is_said_of_money(calls: int) -> None:
    found = weigh_reduction("share", 5_000, 9_000, (0, 0), None, calls)
    assert found.explanation == "frees about 5,000 tokens a call"
    assert not found.pays


PROMISE = build_policy("adaptive")


@pytest.mark.parametrize("pause", [0, 299, 300, 3_600, 86_400])
def test_below_the_promise_nothing_is_removed_however_long_the_pause(pause: int) -> None:
    view = talk(55)
    assert 90_000 < view.tokens < 100_000
    shell = Shell(writes=keeping)
    known = {"window": 1_000_000, "rates": SONNET, "cache_age": pause, "calls": 5_000}
    assert run(view, shell, PROMISE, **known).view is view
    assert shell.records == []
    more = talk(70)
    assert run(more, shell, PROMISE, **known).view.tokens < 10_000


def test_the_promise_is_half_of_a_small_window() -> None:
    assert PROMISE.promise(1_000_000) == PROMISE.promise(200_000) == 100_000
    assert PROMISE.promise(64_000) == 32_000
    view = talk(18)
    assert 30_000 < view.tokens < 32_000
    shell = Shell(writes=keeping)
    known = {"rates": SONNET, "cache_age": 9_999, "calls": 5_000}
    assert run(view, shell, PROMISE, window=64_000, **known).view is view
    assert run(view, shell, PROMISE, window=60_000, **known).view is not view


def test_a_long_result_is_sent_in_full_within_the_promise() -> None:
    view = view_of(prompt("go"), *round_of("a", PAGE * 20))
    shell = Shell()
    assert run(view, shell, PROMISE, window=1_000_000).view is view
    wide = view_of(prompt("go"), *round_of("a", PAGE * 80))
    run(wide, shell, PROMISE, window=1_000_000)
    assert shell.kinds == ["ingest applied"]


def test_what_does_not_pay_by_its_own_figures_is_not_done() -> None:
    view = talk(70)
    for calls, kinds in ((3, []), (500, ["summary applied", "compaction applied"])):
        shell = Shell(writes=keeping)
        run(view, shell, PROMISE, window=1_000_000, rates=SONNET, calls=calls)
        assert shell.kinds == kinds
        for change in shell.applied:
            assert change.decision is not None
            assert change.decision.pays


def test_what_no_longer_fits_goes_down_only_so_far_as_pays() -> None:
    view = talk(70)
    window = view.tokens * 100 // 95
    known = {"window": window, "rates": SONNET}
    deep, shallow = Shell(writes=keeping), Shell(writes=keeping)
    assert run(view, deep, PROMISE, calls=500, **known).view.tokens < 10_000
    room = PROMISE.room(window)
    assert room // 3 < run(view, shallow, PROMISE, calls=1, **known).view.tokens < room * 7 // 10
