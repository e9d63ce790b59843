"""Working memory within a turn, summaries in parts, and restored originals."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from conversations.context.errors import RuleError
from conversations.context.policy.policy import build_policy
from conversations.context.steps.restore import build_restore
from conversations.context.steps.summary_parts import RenderedMessage, split_messages
from conversations.context.view import edits, wire
from conversations.context.view.cost_decision import Rates
from conversations.context.view.view import Message, View
from tests.context import replay
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
    text,
    use,
    view_of,
    writing,
)
from tests.context.test_defects import grown
from tests.context.test_pipeline import PAGE, rounds

ROUNDS = build_policy("structured", {"input_token_budget": 0, "max_conversation_tokens": 0})
START = [prompt("first"), answer("hello"), prompt("do it")]


def run(view: View, shell: Shell, policy: Any = ROUNDS, **more: Any) -> View:
    return shell.prepare(view, situation(view, view.tokens, **more), policy).view


def test_every_so_many_rounds_the_finished_ones_become_one_working_memory() -> None:
    view, acted = view_of(*START), []
    for n in range(1, 14):
        view = grown(view, *round_of(f"t{n}", PAGE, url=f"https://e.org/{n}"))
        shell = Shell(writes=keeping)
        view = run(view, shell)
        assert violations(view.body) == []
        acted += [(n, record.note) for record in shell.records]
    assert [n for n, _ in acted] == [5, 9, 13]
    assert acted[0][1].startswith("Summarised 8 messages into about ")
    own, memory = blocks(view, 2)
    assert own == text("do it")
    assert memory["text"].startswith("[WORKING MEMORY]\n")
    assert memory["text"].endswith("\n[END WORKING MEMORY]")
    assert all(f"https://e.org/{n}" in memory["text"] for n in range(1, 13))
    assert blocks(view, view.length - 1) == [result("t13", PAGE)]
    assert view.body.count("[WORKING MEMORY]") == 1


def test_a_failed_working_memory_is_tried_again_only_after_as_many_rounds() -> None:
    view, asked = view_of(*START), []
    for n in range(1, 12):
        view = grown(view, *round_of(f"t{n}", PAGE))
        shell = Shell(writes=writing(None))
        assert run(view, shell) == view
        asked += [n for _ in shell.wanted]
    assert asked == [5, 10]
    assert shell.kinds == []
    off = build_policy("structured", {"compaction_enabled": False})
    shell = Shell(writes=keeping)
    run(view_of(*START, *rounds(5)), shell, off)
    assert shell.wanted == []


def test_nothing_is_replaced_where_no_two_messages_may_go() -> None:
    shell = Shell(writes=keeping)
    often = build_policy("structured", {"round_summary_every": 1})
    view = view_of(*START, *rounds(1, "small"))
    assert run(view, shell, often) is view
    assert shell.wanted == []


def test_a_working_memory_goes_into_the_summary_and_its_names_into_a_notice() -> None:
    view = run(view_of(prompt("first"), *rounds(5)), Shell(writes=keeping))
    assert [block.by for block in view.messages[0].blocks] == ["", "rounds"]
    more = [prompt("next"), *[m for n in range(9) for m in round_of(f"u{n}", PAGE)], prompt("so")]
    shell = Shell(writes=keeping)
    rebuild = build_policy("rebuild", {"max_conversation_messages": 0})
    done = shell.prepare(grown(view, *more), situation(view, 90_000), rebuild).view
    assert "<previous_summary>\n(WORKING MEMORY)\nThey worked on:" in shell.wanted[0].text
    assert [block.by for block in done.messages[0].blocks] == ["", "summary"]
    assert "https://e.org/0" in blocks(done, 0)[1]["text"]

    view = run(view_of(*START, *rounds(5)), Shell(writes=keeping))
    more = [prompt("next"), *[m for n in range(9) for m in round_of(f"u{n}", PAGE)], prompt("so")]
    limits = build_policy("gated-trim", {"max_conversation_bytes": 30_000})
    done = Shell().prepare(grown(view, *more), situation(), limits).view
    assert "https://e.org/0" in blocks(done, 0)[1]["text"]


def test_a_budget_of_tokens_is_kept_by_trimming() -> None:
    view = view_of(prompt("go"), *[prompt("word " * 2_000), answer("ok")] * 30, prompt("now"))
    shell = Shell()
    policy = build_policy("structured", {"round_summary_every": 0})
    done = run(view, shell, policy)
    assert shell.kinds == ["trim applied"]
    assert shell.records[0].trigger.setting == "max_conversation_tokens"
    assert done.tokens <= 32_000


def test_parts_are_equal_and_never_part_a_call_from_its_result() -> None:
    told = [RenderedMessage("user", "word " * 500, follows=bool(n % 2)) for n in range(40)]
    found = split_messages(told, 10_000)
    sizes = [len(part.text) for part in found]
    assert len(found) > 2
    assert max(sizes[:-1]) - min(sizes[:-1]) <= 2 * 2_502
    assert all(part.text.count("word") % 1_000 == 0 for part in found)
    large = [RenderedMessage("user", "word " * 2_500, follows=False) for _ in range(6)]
    assert len(split_messages(large, 10_000)) == 6
    huge = [
        RenderedMessage("user", "word " * 9_000, follows=False),
        RenderedMessage("assistant", "ok", follows=False),
    ]
    [note] = split_messages(huge, 10_000)
    assert note.text.startswith("[user]\n[a message of about ")
    assert split_messages([], 10_000) == []


def test_an_original_is_brought_back_and_stays() -> None:
    view = view_of(prompt("go"), *rounds(9))
    small = Shell().prepare(view, situation(view, 50_000), build_policy("tool-budget")).view
    change = build_restore(small, view.messages[2], view.messages[1])
    assert change is not None
    assert (change.kind, change.note) == ("restore", "Brought back 1 original message")
    done = edits.apply(small, change.kind, change.edits)
    assert done.messages[2].content == view.messages[2].content
    again = Shell()
    assert again.prepare(done, situation(done, 50_000), build_policy("tool-budget")).view == done
    assert build_restore(done, view.messages[2]) is None
    stored: list[replay.Entry] = [
        *small.messages,
        (change.kind, edits.load_edits(edits.dump_edits(change.edits))),
    ]
    assert replay.replay_entries(stored).messages == done.messages


def test_what_was_dropped_comes_back_with_its_pair_and_without_thinking() -> None:
    view = view_of(prompt("go"), answer(THOUGHT, use("a")), results(result("a", PAGE)), *rounds(9))
    summary = wire.encode(text("[CONTEXT SUMMARY]"))
    gone = edits.apply(
        view, "summary", [edits.SpliceBlocks(1, 1, 0, (summary,)), edits.SpliceMessages(2, 3)]
    )
    change = build_restore(gone, *view.messages[:3])
    assert change is not None
    assert change.note == "Brought back 2 original messages"
    done = edits.apply(gone, "restore", change.edits)
    assert blocks(done, 1) == [use("a")]
    assert blocks(done, 2) == [result("a", PAGE)]
    assert blocks(done, 0) == [text("go"), text("[CONTEXT SUMMARY]")]
    with pytest.raises(RuleError):
        build_restore(gone, view.messages[2])


def test_what_was_folded_is_carried_over_an_edit_that_keeps_the_structure() -> None:
    view = view_of(prompt("go"), *rounds(9))
    Shell().prepare(view, situation(view, 10), build_policy("tool-budget"))
    small = Shell().prepare(view, situation(view, 50_000), build_policy("tool-budget")).view
    assert {"rules", "calls"} >= set(small.trail.folds) & {"rules", "calls"}
    assert small.trail.folds["rules"][0] == small.length
    fewer = edits.apply(small, "trim", [edits.SpliceMessages(2, 3)])
    assert "rules" not in fewer.trail.folds
    renamed = wire.encode(use("t0", "other"))
    other = edits.apply(small, "shrink", [edits.SpliceBlocks(2, 0, 1, (renamed,))])
    assert "rules" not in other.trail.folds
    other = edits.apply(small, "trim", [edits.SpliceMessages(19, 19, ((19, "prompt", "[]"),))])
    assert isinstance(other.messages[-1], Message)


def test_the_results_beside_a_call_that_waits_are_not_taken_from_it() -> None:
    view = view_of(*START)
    for n in range(1, 5):
        view = grown(view, *round_of(f"t{n}", PAGE, url=f"https://e.org/{n}"))
    search = {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {}}
    view = grown(view, answer(search, use("t5")), results(result("t5", PAGE)))
    shell = Shell(writes=keeping)
    done = run(view, shell)
    assert [record.outcome for record in shell.records] == ["applied"]
    assert violations(done.body) == []
    assert blocks(done, done.length - 2) == [search, use("t5")]
    assert blocks(done, done.length - 1) == [result("t5", PAGE)]


def test_a_rejected_working_memory_is_requested_again_only_once_the_view_has_grown() -> None:
    view = view_of(*START, *rounds(5))
    for rejected_at, requests in ((view.tokens, 0), (view.tokens * 100 // 126, 1)):
        shell = Shell(writes=keeping)
        run(view, shell, rejected=1, rejected_at=rejected_at)
        assert len(shell.wanted) == requests


SONNET = Rates(2_000_000, 10_000_000, 2_500_000, 100_000)
OPUS = Rates(5_000_000, 25_000_000, 6_250_000, 500_000)
HAIKU = Rates(100_000, 500_000, 125_000, 10_000)
REBUILD = build_policy("rebuild", {"compaction_threshold_tokens": 5_000, "summary_max_tokens": 256})


@pytest.mark.parametrize("preset", [ROUNDS, REBUILD, replace(REBUILD, summary_staged=True)])
def test_a_summary_that_costs_more_than_it_saves_is_not_requested(preset: Any) -> None:
    view = view_of(*START, *rounds(10))
    counts = {}
    for calls in (10, 10_000):
        shell = Shell(writes=keeping)
        done = run(view, shell, preset, rates=SONNET, calls=calls)
        assert (done is view) == (not shell.wanted)
        counts[calls] = len(shell.wanted)
    assert counts[10] == 0 < counts[10_000]
    # What another model writes for little pays back sooner.
    shell = Shell(writes=keeping)
    run(view, shell, preset, rates=OPUS, summary_rates=HAIKU, calls=20)
    assert shell.wanted
    # Where the room or a price cliff demands it, it is requested whatever it costs.
    cliff = replace(SONNET, cliff=view.tokens - 1)
    for known in ({"rates": cliff}, {"rates": SONNET, "window": 16_000}):
        shell = Shell(writes=keeping)
        run(grown(view, *rounds(5, "p" * 8_000)), shell, preset, calls=10, **known)
        assert shell.wanted
