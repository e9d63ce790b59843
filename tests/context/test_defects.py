"""The defects of the designs that this engine unites, each as a law that it keeps.

Which law answers which defect is listed in tests/test_defects.py.
"""

from __future__ import annotations

import base64
import json
import struct
from typing import Any

import pytest

from conversations.context.policy.gauge import Report, measure_context
from conversations.context.policy.policy import PRESETS, build_policy
from conversations.context.steps.compaction import compact_results
from conversations.context.steps.summary_zone import find_zone
from conversations.context.steps.trim import drop_exchanges
from conversations.context.text.shorten import shorten
from conversations.context.view import edits
from conversations.context.view.view import Message, View
from tests.context.independent import violations
from tests.context.samples import (
    IMAGE,
    Shell,
    answer,
    blocks,
    content,
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
from tests.context.test_pipeline import CLASSIC, PAGE, rounds
from tests.context.test_steps import gauge_of

BUDGET = build_policy("tool-budget")
REBUILD = build_policy("rebuild", {"max_conversation_messages": 0})


def grown(view: View, *said: Any) -> View:
    seq = view.messages[-1].seq
    for at, (kind, parts) in enumerate(said, start=1):
        view = view.append(Message.parse(seq + at, kind, content(parts)))
    return view


def test_compaction_inside_a_turn_changes_the_very_list_that_is_sent() -> None:
    view = view_of(prompt("a"))
    for n in range(12):
        view = grown(view, *round_of(f"t{n}", PAGE))
        view = Shell().prepare(view, situation(view, 41_000), BUDGET).view
        assert json.loads(view.body)[-1]["content"][0]["content"] == PAGE
    assert view.body.count("truncated for context management") == 11


def test_every_result_that_was_appended_is_sent() -> None:
    view = view_of(prompt("a"), *rounds(9))
    done = Shell(writes=keeping).prepare(view, situation(view, 41_000), CLASSIC).view
    assert [f'"tool_use_id":"t{n}"' in done.body for n in range(9)] == [True] * 9


def test_the_trigger_counts_cached_tokens_and_one_call_only() -> None:
    # The report is the whole context of the last call; the figure does not grow by asking again.
    view = view_of(prompt("a"), *rounds(9))
    report = Report(41_000, view.tokens, 0, 0)
    assert [measure_context(view, 0, report, 200_000).tokens for _ in range(3)] == [41_000] * 3


def test_a_stale_figure_does_not_fire_twice() -> None:
    view = view_of(prompt("a"), *rounds(30))
    first = Shell(writes=keeping)
    known = situation(view, 90_000)
    done = first.prepare(view, known, CLASSIC).view
    again = Shell(writes=keeping)
    assert first.applied
    assert again.prepare(done, known, CLASSIC).view == done
    assert again.records == []


@pytest.mark.parametrize("tail", range(1, 9))
@pytest.mark.parametrize("count", range(1, 6))
def test_a_zone_of_any_size_leaves_no_orphan_in_either_direction(tail: int, count: int) -> None:
    said = [*rounds(count), answer("so"), prompt("b"), *round_of("z", PAGE)]
    policy = build_policy(
        "rebuild", {"protected_tail_messages": tail, "max_conversation_messages": 0}
    )
    view = view_of(prompt("a"), *said)
    done = Shell(writes=keeping).prepare(view, situation(view, 90_000), policy).view
    assert violations(done.body) == []


def test_a_zone_of_one_message_is_left_alone_however_large() -> None:
    policy = build_policy("rebuild", {"protected_tail_messages": 2, "max_conversation_messages": 0})
    view = view_of(prompt("a"), answer(PAGE * 9), prompt("b"), answer("c"), prompt("d"))
    assert view.messages[1].tokens > policy.summary_max_tokens
    shell = Shell(writes=keeping)
    assert shell.prepare(view, situation(view, 90_000), policy).view.length == 3
    short = view_of(prompt("a"), answer(PAGE * 9), prompt("b"), answer("c"))
    assert find_zone(short, policy) is None


def test_a_trim_keeps_the_first_request_and_every_pair() -> None:
    said: list[Any] = []
    for n in range(12):
        said += [prompt(f"p{n}"), *round_of(f"t{n}", PAGE), answer(f"a{n}")]
    view = view_of(*said, prompt("now"))
    for limit in range(5_000, 80_000, 5_000):
        policy = build_policy("gated-trim", {"max_conversation_bytes": limit})
        done = Shell().prepare(view, situation(), policy).view
        assert blocks(done, 0)[0] == text("p0")
        assert violations(done.body) == []
        assert done.size <= limit


def test_a_view_never_starts_with_a_tool_result() -> None:
    view = view_of(prompt("a"), *rounds(60))
    policy = build_policy("rebuild", {"compaction_enabled": False})
    done = Shell().prepare(view, situation(view, 10), policy).view
    assert done.length <= 50
    assert [message.kind for message in done.messages[:2]] == ["prompt", "answer"]


def test_summaries_do_not_stack_up_and_the_first_message_does_not_grow() -> None:
    view = view_of(prompt(IMAGE, "a"))
    sizes = []
    for turn in range(8):
        view = grown(view, *[m for n in range(8) for m in round_of(f"u{turn}-{n}", PAGE)])
        shell = Shell(writes=keeping)
        view = shell.prepare(view, situation(view, 90_000), REBUILD).view
        assert shell.kinds == ["summary applied"]
        assert view.body.count("[CONTEXT SUMMARY]") == 1
        assert blocks(view, 0)[:2] == [IMAGE, text("a")]
        sizes.append(view.messages[0].size)
    assert max(sizes) < 6_000


@pytest.mark.parametrize(
    ("text", "stop"),
    [("", "end_turn"), ("half a", "max_tokens"), ("no", "refusal"), ("Error: 500", "end_turn")],
)
def test_an_empty_cut_refused_or_error_text_is_no_summary(text: str, stop: str) -> None:
    view = view_of(prompt("a"), *rounds(9))
    shell = Shell(writes=writing(text, stop=stop))
    assert shell.prepare(view, situation(view, 90_000), REBUILD).view == view
    assert shell.kinds == ["summary rejected"]


def test_a_summary_longer_than_its_zone_is_rejected() -> None:
    view = view_of(prompt("a"), *rounds(5))
    shell = Shell(writes=writing("very long " * 9_000))
    assert shell.prepare(view, situation(view, 90_000), REBUILD).view == view
    assert "not shorter" in shell.records[0].reason


def test_a_failed_summary_does_not_lock_the_conversation() -> None:
    view = view_of(prompt("a"), *rounds(9))
    for rejected in range(5):
        shell = Shell(writes=writing(None))
        known = situation(view, 90_000, rejected=rejected)
        assert shell.prepare(view, known, REBUILD).view.body
        assert len(shell.wanted) == (1 if rejected < 3 else 0)


def test_the_first_messages_images_are_not_lost() -> None:
    view = view_of(prompt(IMAGE, "a", IMAGE), *rounds(9))
    done = Shell(writes=keeping).prepare(view, situation(view, 90_000), REBUILD).view
    assert blocks(done, 0)[:3] == [IMAGE, text("a"), IMAGE]
    first, now = view.messages[0].blocks, done.messages[0].blocks
    assert [block.text for block in now[:3]] == [block.text for block in first]


def test_list_shaped_results_are_not_skipped() -> None:
    view = view_of(prompt("a"), *round_of("t1", [text(PAGE), IMAGE]), *round_of("t2", "ok"))
    change = compact_results(view, gauge_of(view, 50_000), BUDGET)
    assert change is not None
    [words, stub, notice] = blocks(edits.apply(view, "compaction", change.edits), 2)[0]["content"]
    assert len(words["text"]) <= 500
    assert stub == text("[image left out]")
    assert 'recall "t1"' in notice["text"]


def test_a_result_that_is_only_a_picture_becomes_a_stub() -> None:
    head = b"\x89PNG\r\n\x1a\n" + bytes(8) + struct.pack(">II", 900, 900)
    data = {"data": base64.b64encode(head).decode()}
    picture = {"type": "image", "source": IMAGE["source"] | data}  # type: ignore[operator]
    view = view_of(prompt("a"), *round_of("t1", [picture]), *round_of("t2", "ok"))
    change = compact_results(view, gauge_of(view, 50_000), BUDGET)
    assert change is not None
    assert blocks(change.view_after, 2)[0]["content"] == [text("[image left out]")]


def test_a_later_upload_does_not_make_the_newest_results_old() -> None:
    upload = prompt("look at this tool_result", IMAGE)
    view = view_of(prompt("a"), *round_of("t1", PAGE), *round_of("t2", PAGE), answer("b"), upload)
    change = compact_results(view, gauge_of(view, 50_000), BUDGET)
    assert change is not None
    done = edits.apply(view, "compaction", change.edits)
    assert blocks(done, 4) == [result("t2", PAGE)]
    mixed = view_of(
        prompt("a"), *round_of("t1", PAGE), answer(use("t2")), results(result("t2", PAGE), "also"),
    )  # fmt: skip
    change = compact_results(mixed, gauge_of(mixed, 50_000), BUDGET)
    assert change is not None
    assert {edit.seq for edit in change.edits if isinstance(edit, edits.SpliceBlocks)} == {3}


@pytest.mark.parametrize("length", [*range(495, 700, 7), 510, 536])
def test_510_characters_do_not_grow_to_536(length: int) -> None:
    for char in "xX漢🎉 ":
        view = view_of(prompt("a"), *round_of("t1", "s" + char * length), *round_of("t2", "ok"))
        change = compact_results(view, gauge_of(view, 50_000), BUDGET)
        if change is not None:
            assert change.bytes_after < change.bytes_before
            assert change.tokens_after < change.tokens_before
            assert len(change.view_after.body) < len(view.body)


def test_a_printed_marker_does_not_stop_compaction_and_adds_none() -> None:
    printed = "[truncated for context management: 1 of 2 characters shown]" + PAGE
    view = view_of(prompt("a"), *round_of("t1", printed), *round_of("t2", "ok"))
    change = compact_results(view, gauge_of(view, 50_000), BUDGET)
    assert change is not None
    done = edits.apply(view, "compaction", change.edits)
    assert compact_results(done, gauge_of(done, 50_000), BUDGET) is None


def test_json_is_not_cut_in_the_middle_of_an_object() -> None:
    rows = json.dumps([{"id": n, "title": f"job {n}", "tags": ["a", "b"]} for n in range(400)])
    found = json.loads(shorten(rows, 500))
    assert found[0] == {"id": 0, "title": "job 0", "tags": ["a", "b"]}
    assert found[-1]["id"] == 399
    assert [item for item in found if isinstance(item, str)] == [
        f"… {401 - len(found)} items omitted …"
    ]


def test_criteria_read_from_a_file_stay_in_view_or_can_be_recalled() -> None:
    rubric = "stack 30 %, remote 20 %, pay 25 %, growth 25 %"
    said = [*round_of("r", rubric, name="read_file", path="search-prompt.txt"), *rounds(9)]
    view = view_of(prompt("go"), *said)
    known = situation(view, 90_000)
    done = Shell(writes=writing("They searched.")).prepare(view, known, REBUILD).view
    assert '\\"msg_3\\": read_file search-prompt.txt' in done.body
    kept = build_policy(
        "rebuild", {"verbatim_tools": ["read_file"], "max_conversation_messages": 0}
    )
    done = Shell(writes=writing("They searched.")).prepare(view, known, kept).view
    assert rubric in done.body


def test_the_cached_prefix_is_not_broken_on_every_turn() -> None:
    view, bodies = view_of(prompt("a")), [""]
    policy = build_policy("gated-trim", {"max_conversation_bytes": 60_000})
    for n in range(60):
        view = grown(view, answer(f"a{n}"), prompt(f"p{n}"), *round_of(f"t{n}", PAGE[:3_000]))
        view = Shell().prepare(view, situation(), policy).view
        bodies.append(view.body[:-1])
    broken = [n for n in range(1, 61) if not bodies[n].startswith(bodies[n - 1])]
    assert 0 < len(broken) <= 16


def test_a_switch_to_a_smaller_window_is_checked_again() -> None:
    view = view_of(prompt("a"), *rounds(40))
    for name, policy in PRESETS.items():
        wide = Shell().prepare(view, situation(window=1_000_000), build_policy("off"))
        assert wide.view is view
        if name != "off":
            narrow = Shell(writes=keeping).prepare(view, situation(window=32_000), policy)
            assert narrow.gauge.tokens <= 25_600
            assert violations(narrow.view.body) == []


def test_a_window_of_a_million_is_not_cut_down_to_less() -> None:
    view = view_of(prompt("a"), *rounds(200, PAGE * 4))
    known = situation(view, 600_000, window=1_000_000)
    for name in ("gated-trim", "adaptive", "off"):
        policy = (
            build_policy(name)
            if name == "off"
            else build_policy(name, {"max_conversation_bytes": 0})
        )
        assert Shell().prepare(view, known, policy).view is view
    over = situation(view, 990_000, window=1_000_000)
    wide = Shell().prepare(view, over, build_policy("adaptive", {"compaction_enabled": False}))
    assert 8_000 < wide.gauge.tokens <= 984_000


def test_short_conversations_are_sent_byte_for_byte() -> None:
    view = view_of(prompt(IMAGE, "a"), *rounds(3), answer("b"), prompt("c"))
    for policy in PRESETS.values():
        shell = Shell(writes=keeping)
        prepared = shell.prepare(view, situation(), policy)
        assert prepared.view is view
        assert (shell.records, shell.wanted) == ([], [])


def test_three_fresh_results_of_a_megabyte_are_caught_before_sending() -> None:
    fresh = results(*[result(f"t{n}", PAGE * 170) for n in range(3)])
    view = view_of(prompt("a"), answer("b"), prompt("c"), answer(*[use(f"t{n}") for n in range(3)]))
    report = Report(20_000, view.tokens, 0, 0)
    view = grown(view, fresh)
    gauge = measure_context(view, 0, report, 200_000)
    assert gauge.tokens > 120_000
    for name in ("gated-trim", "classic", "tool-budget"):
        known = situation()
        prepared = Shell(writes=keeping).prepare(view, known, PRESETS[name])
        assert prepared.gauge.tokens <= 184_000
        assert blocks(prepared.view, 0) == [text("a")]
    assert drop_exchanges(view, gauge, PRESETS["gated-trim"]) is None
