"""What a simulation reports: money, facts, rules, turns that end, and nothing invented."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from agentweb.emulator import summarize_text
from conversations.agent.usage import Usage
from conversations.context.pipeline import SummaryWanted
from conversations.context.policy.policy import PRESETS
from conversations.context.view import wire
from conversations.context.view.view import Message
from conversations.lab import accuracy, fact_search, report, report_table
from conversations.lab.legality import LegalityCheck
from conversations.lab.records import Record
from conversations.lab.replayer import Replayer
from conversations.lab.report import Report, simulate_record
from conversations.lab.simulated_tokenizer import scale_estimate
from conversations.lab.summarizer import extract_summary, fail_summary, use_stand_in
from tests.lab.samples import PAGE, PRICES, answer, call, reading, record, result, user, world

AROUND = (("CODE-77-XY ", ""), ("", " CODE-77-XY"))
#: `off` may only refuse.
REDUCING = [name for name in PRESETS if name != "off"]


def facts(used_at: int) -> list[dict[str, Any]]:
    """One fact of the first page, needed late, and one of the first prompt."""
    return [
        {
            "fact": "CODE-77-XY",
            "first_seen_message": 2,
            "used_at_message": used_at,
            "sole_source": True,
        },
        {"fact": "pages of part", "first_seen_message": 0, "used_at_message": used_at},
    ]


def record_with_fact(rounds: int, page: str = f"CODE-77-XY stands here. {PAGE}") -> Record:
    messages = reading(rounds)
    messages[2] = user(result("toolu_0_0", page))
    return record(messages, facts=facts(len(messages) - 1))


@pytest.mark.parametrize("name", PRESETS)
def test_within_budget_every_policy_sends_the_same_and_costs_the_same(name: str) -> None:
    one = record(reading(3, page="A short page.", prompts=4))
    sent = [
        [(step.envelope.text, step.messages) for step in Replayer(one, world(policy)).steps()]
        for policy in ("off", name)
    ]
    assert sent[0] == sent[1]
    stored = wire.join(message.text for message in one.messages[: len(one.messages) - 1])
    assert sent[1][-1][1] == stored
    off, other = (simulate_record(one, world(policy)) for policy in ("off", name))
    assert (off.total_cost, off.cost_uncached) == (other.total_cost, other.cost_uncached)
    assert not other.applied


def test_an_estimate_near_the_room_is_counted_by_the_lab_s_own_tokenizer() -> None:
    one = record([user("Read it.", PAGE * 8), answer("Done.")])
    window = one.messages[0].tokens * 5 // 4
    (step,) = Replayer(one, world("off", window=window, tokenizer=scale_estimate(95))).steps()
    assert step.prepared is not None
    assert step.usage is not None
    assert step.prepared.gauge.source == "counted"
    assert step.prepared.gauge.tokens == step.usage.context
    assert step.envelope.max_tokens <= window - step.usage.context


@pytest.mark.parametrize("name", REDUCING)
@pytest.mark.parametrize("window", [32_000, 200_000])
@pytest.mark.parametrize("percent", [70, 100, 130])
def test_no_policy_breaks_a_rule_or_the_window(name: str, window: int, percent: int) -> None:
    one = record_with_fact(40)
    found = simulate_record(one, world(name, window=window, tokenizer=scale_estimate(percent)))
    assert found.violations == []
    assert found.calls == 41
    # What is billed above the estimate is known only after the first bill.
    assert found.overruns == 0 or percent > 100
    assert found.peak <= window


@pytest.mark.parametrize("name", REDUCING)
def test_every_fact_can_be_recalled(name: str) -> None:
    found = simulate_record(record_with_fact(40), world(name))
    assert found.facts.needed == 2
    assert found.sole.needed == 1
    assert found.facts.recoverable == 2


def test_rejected_working_memories_count_towards_the_breaker() -> None:
    policy = replace(PRESETS["structured"], round_summary_every=1, max_conversation_tokens=0)
    made = world(replace(policy, input_token_budget=0), summarizer=fail_summary)
    found = simulate_record(record(reading(40)), made)
    assert found.others == {"rejected": policy.summary_breaker}


def test_a_fact_is_in_view_or_only_named() -> None:
    head, tail = (record_with_fact(30, f"{before}{PAGE}{behind}") for before, behind in AROUND)
    kept, cut = (simulate_record(one, world("tool-budget")).sole for one in (head, tail))
    assert (kept.in_view, kept.named, kept.recoverable) == (1, 1, 1)
    # Compaction keeps the head of a result and names it.
    assert (cut.in_view, cut.named, cut.recoverable) == (0, 1, 1)
    assert simulate_record(tail, world("off")).sole.in_view == 1


def test_without_a_reduction_nothing_is_lost_without_recall() -> None:
    found = simulate_record(record_with_fact(10), world("off"))
    assert found.facts.in_view == found.facts.recoverable == found.facts.needed


@pytest.mark.parametrize("name", PRESETS)
def test_the_costs_are_those_of_the_price_list(name: str) -> None:
    calls: list[Usage] = []
    summaries: list[Usage] = []

    def watch(step: Any) -> None:
        calls.append(step.usage)
        summaries.extend(step.summaries)

    found = simulate_record(record_with_fact(40), world(name), watch)
    assert found.cost == sum(map(PRICES.cost, calls))
    assert found.summary_cost == sum(map(PRICES.cost, summaries))
    plain = [Usage(usage.context, usage.output, 0, 0, 0) for usage in (*calls, *summaries)]
    assert found.cost_uncached == sum(map(PRICES.cost, plain))
    assert found.tokens.input == sum(usage.context for usage in calls)
    assert isinstance(found.total_cost, int)


def test_a_turn_without_room_ends_and_the_next_one_is_tried() -> None:
    one = record(reading(30, prompts=3))
    found = simulate_record(one, world("off", window=60_000))
    assert found.ended == 3
    assert found.calls < 60
    assert found.is_clean


def test_the_first_turns_prefix_is_kept_until_something_is_reduced() -> None:
    found = simulate_record(record(reading(30)), world("tool-budget"))
    assert 0 < found.prefix_breaks <= sum(found.applied.values())
    assert simulate_record(record(reading(30)), world("off")).prefix_breaks == 0


def test_a_summary_that_never_comes_is_recorded_and_the_rest_goes_on() -> None:
    found = simulate_record(record_with_fact(60), world("rebuild", summarizer=fail_summary))
    assert found.others["rejected"] >= 1
    assert found.applied["summary"] == 0
    assert found.is_clean


@pytest.mark.parametrize("summarizer", [extract_summary, use_stand_in(summarize_text)])
def test_a_summary_is_accepted_and_billed(summarizer: Any) -> None:
    long = replace(
        PRESETS["rebuild"], compaction_threshold_tokens=30_000, max_conversation_messages=0
    )
    found = simulate_record(record_with_fact(60), world(policy=long, summarizer=summarizer))
    assert found.applied["summary"] >= 1
    assert found.summary_cost > 0
    assert found.summary_calls >= found.applied["summary"]
    assert found.is_clean


def test_the_extract_keeps_the_names_it_is_asked_for() -> None:
    asked = (
        "<transcript>\n[user]\nWe decided to use https://a.example/x.\n</transcript>\n\n"
        "Later messages still refer to these; write each of them exactly:\n- AB-1234\n- x/y.py\n\n"
        "Write the summary now, in at most 2,000 words."
    ) + " padding" * 200
    said = extract_summary(SummaryWanted("s", asked, 4_096)).text
    assert all(name in said for name in ("AB-1234", "x/y.py", "We decided", "https://a.example/x"))
    assert extract_summary(SummaryWanted("s", asked, 4_096)).text == said


def test_the_legality_check_sees_what_the_api_would_refuse() -> None:
    check = LegalityCheck()
    good = record(reading(2)).messages[:-1]
    assert check.find_violations(good) == []
    bad = {
        "orphan": good[2:],
        "unanswered": good[:2],
        "double": (*good, *good[1:]),
        "end": (*good[:2], record([user("x"), answer("y")]).messages[1]),
        "mixed": (*good[:2], _mixed()),
        "role": (_foreign(),),
    }
    for name, messages in bad.items():
        assert check.find_violations(messages), name


def _mixed() -> Message:
    blocks = [{"type": "text", "text": "before"}, result("toolu_0_0", "x")]
    return Message.parse(9, "results", wire.encode(blocks))


def _foreign() -> Message:
    return Message.parse(1, "prompt", wire.encode([call("toolu_1", "x"), result("toolu_1", "")]))


def test_reports_of_conversations_add_up() -> None:
    parts = [simulate_record(record_with_fact(rounds), world("tool-budget")) for rounds in (5, 30)]
    whole = Report("tool-budget")
    for part in parts:
        whole.merge(part)
    assert whole.calls == sum(part.calls for part in parts)
    assert whole.total_cost == sum(part.total_cost for part in parts)
    assert whole.applied == parts[0].applied + parts[1].applied
    assert report.dump_report(whole)["facts"]["needed"] == 4
    shown = report_table.render_totals([whole, parts[0]])
    assert "rule violations" in shown
    assert len({len(line) for line in shown.splitlines()[:3]}) <= 2


def test_the_gauge_is_measured_against_recorded_counts() -> None:
    messages = reading(12)
    plain = record(messages)
    counted = [
        {"message": step.at, "input": 5, "cache_read": 25_000 + 2 * step.usage.context}
        for step in Replayer(plain, world("off")).steps()
        if step.usage
    ]
    found = accuracy.summarise_errors(
        accuracy.measure_errors(record(messages, recorded_usage=counted))
    )
    assert found is not None
    assert found.calls == 12
    assert found.reported_median < found.unreported_median
    assert accuracy.summarise_errors(accuracy.measure_errors(plain)) is None


def test_a_line_names_every_original_it_lists() -> None:
    line = 'recall "msg_3", "msg_12", "toolu_x-1": read_file a.txt; recall "call_9" for the rest'
    assert list(fact_search.find_recall_ids(line)) == ["msg_3", "msg_12", "toolu_x-1", "call_9"]


def test_the_markdown_table_has_a_row_for_each_window_and_policy() -> None:
    ended = simulate_record(record_with_fact(30), world("off", window=60_000))
    cut = simulate_record(record_with_fact(30), world("tool-budget", window=60_000))
    lines = report_table.render_markdown([ended, cut]).splitlines()
    assert len({line.count("|") for line in lines}) == 1
    assert lines[2].startswith("| 60,000 | `off` | - | - | - | - | 0 | 1 |")
    assert f"| {report_table.format_dollars(cut.total_cost)} |" in lines[3]
    assert lines[3].endswith(" | 0 |")
    assert report_table.format_ratio(5, 4) == "1.25"
    assert report_table.format_ratio(5, 0) == "-"


def test_a_long_conversation_shows_its_pace_by_tenths() -> None:
    assert report.compute_tenths([1_000_000] * 95 + [3_000_000] * 5) == [1.0] * 9 + [2.0]
    assert report.compute_tenths([]) == [0.0] * 10
    long = Report("off", 9_000, decide=[2_000_000] * 1_000)
    shown = report_table.render_pace([("talk", long), ("short", Report("off"))])
    assert shown.splitlines()[1].split() == ["talk", "off", "9,000", *["2.00"] * 10]
    assert report_table.render_pace([("short", Report("off"))]) == ""


@pytest.mark.parametrize(
    ("micros", "shown"), [(0, "$0.000"), (1_499, "$0.001"), (1_234_567_890, "$1,234.568")]
)
def test_money_is_shown_to_a_tenth_of_a_cent(micros: int, shown: str) -> None:
    assert report_table.format_dollars(micros) == shown
