"""Golden cases of the deterministic steps: ingest, compaction, trim, shrink, rebind."""

from __future__ import annotations

import json
from typing import Any

import pytest

from conversations.context.policy.gauge import Gauge, measure_context
from conversations.context.policy.policy import Policy, build_policy
from conversations.context.steps.compaction import compact_results
from conversations.context.steps.ingest import shape_new_results
from conversations.context.steps.rebind import drop_unbound_thinking
from conversations.context.steps.shorten_results import keep_head, shorten_texts
from conversations.context.steps.shrink import shrink_blocks
from conversations.context.steps.trim import drop_exchanges, drop_rounds
from conversations.context.view import edits
from conversations.context.view.edits import Transformation
from conversations.context.view.view import View
from tests.context.samples import (
    IMAGE,
    THOUGHT,
    Shell,
    answer,
    blocks,
    prompt,
    reported,
    result,
    results,
    round_of,
    situation,
    text,
    use,
    view_of,
)

CLASSIC = build_policy("classic")
LONG = "lorem ipsum " * 300


def gauge_of(view: View, tokens: int, *, window: int = 200_000, room: int = 0) -> Gauge:
    return measure_context(view, 0, reported(view, tokens), window, room)


def after(view: View, change: Transformation | None) -> View:
    assert change is not None
    assert change.bytes_after < change.bytes_before
    assert change.tokens_after < change.tokens_before
    return edits.apply(view, change.kind, change.edits)


def policy(**numbers: Any) -> Policy:
    return build_policy("classic", numbers)


def test_ingest_shortens_only_what_was_never_sent_and_keeps_the_pairing() -> None:
    long = "line of a page\n" * 4_000
    rows = json.dumps([{"n": n} for n in range(9_000)])
    view = view_of(
        prompt("a"), *round_of("t0", long), answer(use("t1"), use("t2"), use("t3")),
        results(result("t1", long, is_error=True), result("t2", rows), result("t3", "short")),
    )  # fmt: skip
    change = shape_new_results(view, gauge_of(view, 10), CLASSIC)
    done = after(view, change)
    assert change is not None
    assert (
        change.note == "Shortened 2 tool results before sending: 115,890 characters exceeded 40,000"
    )
    assert blocks(done, 2) == blocks(view, 2)
    first, second, third = blocks(done, 4)
    assert first["is_error"] is True
    assert first["content"].endswith('of 60,000 characters shown; recall "t1" for the rest]')
    assert len(first["content"]) <= 40_000
    assert json.loads(second["content"])[0] == {"n": 0}
    assert third == blocks(view, 4)[2]
    assert shape_new_results(done, gauge_of(done, 10), CLASSIC) is None


def test_ingest_shares_the_limit_among_the_texts_of_a_list() -> None:
    content = [text("x" * 50_000), IMAGE, text("short")]
    view = view_of(prompt("a"), *round_of("t1", content))
    change = shape_new_results(view, gauge_of(view, 10), CLASSIC)
    found = blocks(after(view, change), 2)[0]["content"]
    assert [len(block.get("text", "")) for block in found] == [39_995, 0, 5]
    assert change is not None
    assert change.note.startswith("Shortened 1 tool result before")
    many = shorten_texts([text("y" * 100)] * 300 + [IMAGE], "t1", 1_000)
    assert isinstance(many, list)
    assert [block["type"] for block in many] == ["text", "image"]
    assert len(many[0]["text"]) <= 1_000
    assert shorten_texts([text("a"), text("b")], "t1", 1_000) == [text("a"), text("b")]


def test_ingest_leaves_verbatim_tools_and_can_be_off() -> None:
    view = view_of(prompt("a"), *round_of("t1", "x" * 50_000, name="read_file"))
    assert (
        shape_new_results(
            view, gauge_of(view, 1), policy(verbatim_tools=["read_file"], verbatim_max_chars=60_000)
        )
        is None
    )
    assert shape_new_results(view, gauge_of(view, 1), policy(max_tool_result_chars=0)) is None
    assert shape_new_results(view_of(prompt("a")), gauge_of(view, 1), CLASSIC) is None
    # A result that could not become smaller is left alone.
    tight = policy(max_tool_result_chars=65, tool_result_retention_chars=64)
    odd = view_of(prompt("a"), *round_of("t2", '"' + "漢" * 90))
    assert shape_new_results(odd, gauge_of(odd, 1), tight) is not None
    plain = view_of(prompt("a"), *round_of("t2", "x" * 66))
    assert shape_new_results(plain, gauge_of(plain, 1), tight) is None


CLUSTERS = {
    "family": "\U0001f468\u200d\U0001f469\u200d\U0001f467",
    "flag": "\U0001f1e9\U0001f1ea",
    "accent": "e\u0301",
    "hangul": "\u1112\u1161\u11ab",
}


@pytest.mark.parametrize("cluster", CLUSTERS.values(), ids=CLUSTERS)
@pytest.mark.parametrize("before", range(493, 502))
def test_compaction_keeps_exactly_its_characters_but_no_part_of_one(
    cluster: str, before: int
) -> None:
    long = "x" * before + cluster + "y" * 5_000
    view = view_of(prompt("a"), *round_of("t1", long), prompt("b"), *round_of("t2", "ok"))
    done = after(view, compact_results(view, gauge_of(view, 45_000), CLASSIC))
    kept = str(blocks(done, 2)[0]["content"]).rpartition("\n[truncated")[0]
    is_inside = before < 500 < before + len(cluster)
    assert kept == long[: before if is_inside else 500]


@pytest.mark.parametrize(("chars", "is_cut"), [(720, False), (1_200, True)])
def test_compaction_cuts_nothing_for_less_than_its_notice_costs(chars: int, is_cut: bool) -> None:
    view = view_of(prompt("a"), *round_of("t1", "y" * chars), prompt("b"), *round_of("t2", "ok"))
    change = compact_results(view, gauge_of(view, 45_000), CLASSIC)
    assert (change is not None) is is_cut


def test_compaction_keeps_the_head_and_says_where_the_rest_is() -> None:
    long = "word " * 1_000
    view = view_of(
        prompt("a"), answer(use("t1"), use("t2")), results(result("t1", long), result("t2", "ok")),
        *round_of("t3", long), prompt("b"), *round_of("t4", long),
    )  # fmt: skip
    gauge = gauge_of(view, 45_231)
    change = compact_results(view, gauge, CLASSIC)
    done = after(view, change)
    assert change is not None
    assert change.note == (
        "Compacted 2 old tool results: input tokens 45,231 exceeded the budget of 40,000"
    )
    assert (change.trigger.setting, change.trigger.source) == ("input_token_budget", "reported")
    assert blocks(done, 2)[0] == result(
        "t1",
        ("word " * 100)
        + '\n[truncated for context management: 500 of 5,000 characters shown; recall "t1" for the'
        " rest]",
    )
    assert blocks(done, 2)[1] == result("t2", "ok")
    assert blocks(done, 7) == blocks(view, 7)
    assert compact_results(done, gauge, CLASSIC) is None
    assert compact_results(view, gauge_of(view, 40_000), CLASSIC) is None
    everything = compact_results(done, gauge_of(done, 99, room=50), CLASSIC, everything=True)
    assert everything is not None
    assert everything.note.startswith("Compacted 1 tool result: ")
    assert compact_results(done, gauge_of(done, 9, room=50), CLASSIC, everything=True) is None


def test_compaction_never_touches_errors_verbatim_tools_and_what_was_restored() -> None:
    view = view_of(
        prompt("a"), answer(use("t1"), use("t2", "read_file"), use("t3")),
        results(result("t1", LONG, is_error=True), result("t2", LONG), result("t3", "x")),
        *round_of("t4", "latest"),
    )  # fmt: skip
    restored = json.dumps(result("t3", LONG))
    view = edits.apply(view, "restore", [edits.SpliceBlocks(3, 2, 1, (restored,))])
    assert (
        compact_results(
            view,
            gauge_of(view, 50_000),
            policy(verbatim_tools=["read_file"], verbatim_max_chars=60_000),
        )
        is None
    )


def test_compaction_counts_on_from_what_ingest_left() -> None:
    view = view_of(prompt("a"), *round_of("t1", "x" * 50_000))
    view = after(view, shape_new_results(view, gauge_of(view, 1), CLASSIC))
    view = view_of_more(view, *round_of("t2", "ok"))
    done = after(view, compact_results(view, gauge_of(view, 50_000), CLASSIC))
    assert "[truncated for context management: 500 of more than " in blocks(done, 2)[0]["content"]


def view_of_more(view: View, *said: Any) -> View:
    for message in view_of(*[prompt("pad")] * view.length, *said).messages[view.length :]:
        view = view.append(message)
    return view


def test_a_list_keeps_its_first_texts_and_stubs_for_what_is_no_text() -> None:
    content = [IMAGE, text("x" * 400), text(" "), text("y" * 400), text("z" * 400)]
    kept = keep_head(content, "t1", 500, is_whole=True)
    assert kept == [
        text("[image left out]"), text("x" * 400), text("y" * 100),
        text('[truncated for context management: 500 of 1,201 characters shown; recall "t1" for'
             " the rest]"),
    ]  # fmt: skip
    assert keep_head([IMAGE, text("a")], "t1", 500, is_whole=True) == [
        text("[image left out]"),
        text("a"),
    ]


def exchanges(count: int, size: int) -> list[Any]:
    said: list[Any] = []
    for n in range(count):
        said += [prompt(f"request {n}"), *round_of(f"t{n}", "x" * size, url=f"https://e.org/{n}")]
        said.append(answer(f"done {n}"))
    return said


def test_trim_drops_the_oldest_exchanges_whole_and_names_what_can_be_recalled() -> None:
    view = view_of(*exchanges(10, 1_000), prompt("now"))
    limits = policy(max_conversation_bytes=10_000, input_token_budget=0)
    change = drop_exchanges(view, gauge_of(view, 150_000), limits)
    done = after(view, change)
    assert change is not None
    assert change.note == f"Dropped the 19 oldest messages: {view.size:,} bytes exceeded 10,000"
    assert (change.trigger.setting, change.trigger.source) == ("max_conversation_bytes", "counted")
    own, words = blocks(done, 0)
    assert own == text("request 0")
    assert words["text"].startswith("[earlier messages were dropped to make room]\nOriginals")
    assert '"msg_3": fetch_url https://e.org/0\n' in words["text"] + "\n"
    assert blocks(done, 1) == [text("request 5")]
    assert done.size <= 8_000
    assert drop_exchanges(done, gauge_of(done, 150_000), limits) is None
    # The list is carried over when more is dropped.
    again = drop_exchanges(done, gauge_of(done, 150_000), policy(max_conversation_bytes=6_000))
    words = blocks(after(done, again), 0)[1]
    assert '"msg_31"' in words["text"]
    assert "(and 5 older ones; recall with a query finds them)" in words["text"]


def test_trim_has_a_gate_and_no_report_opens_it() -> None:
    view = view_of(*exchanges(10, 1_000), prompt("now"))
    limits = policy(max_conversation_bytes=10_000)
    assert drop_exchanges(view, gauge_of(view, 119_999), limits) is None
    assert drop_exchanges(view, measure_context(view, 0, None, 200_000), limits) is not None
    assert drop_rounds(view, gauge_of(view, 1), limits) is None
    assert shrink_blocks(view, gauge_of(view, 1), limits) is None


def test_a_number_of_messages_is_a_backstop() -> None:
    view = view_of(*exchanges(10, 10), prompt("now"))
    change = drop_exchanges(view, gauge_of(view, 10), policy(max_conversation_messages=30))
    done = after(view, change)
    assert done.length <= 24
    assert change is not None
    assert change.note.endswith("41 messages exceeded 30")


def test_few_dropped_words_are_not_replaced_by_more() -> None:
    view = view_of(prompt("a"), answer("b"), prompt("c"), answer("d"), prompt("e"))
    change = drop_exchanges(view, gauge_of(view, 10), policy(max_conversation_messages=4))
    done = after(view, change)
    assert [message.seq for message in done.messages] == [1, 4, 5]
    assert blocks(done, 0) == [text("a")]
    hopeless = policy(max_conversation_messages=1)
    assert drop_exchanges(done, gauge_of(done, 10), hopeless) is None
    assert drop_rounds(done, gauge_of(done, 10), hopeless) is None


def test_rounds_of_one_long_exchange_are_dropped_when_nothing_else_can() -> None:
    said = [part for n in range(30) for part in round_of(f"t{n}", "x" * 900)]
    view = view_of(prompt("one request"), *said)
    gauge = gauge_of(view, view.tokens, room=view.tokens // 2)
    assert drop_exchanges(view, gauge, CLASSIC) is None
    assert shrink_blocks(view, gauge, CLASSIC) is None
    done = after(view, drop_rounds(view, gauge, CLASSIC))
    assert blocks(done, 0)[0] == text("one request")
    assert done.messages[-1] == view.messages[-1]
    nothing = gauge_of(view, view.tokens, room=10)
    assert [m.seq for m in after(view, drop_rounds(view, nothing, CLASSIC)).messages] == [1, 60, 61]


def test_trim_keeps_the_results_of_verbatim_tools() -> None:
    said = [*round_of("r", "the rubric", name="read_file"), *exchanges(10, 1_000)]
    view = view_of(prompt("first"), *said, prompt("now"))
    limits = policy(max_conversation_bytes=8_000, verbatim_tools=["read_file"])
    done = after(view, drop_exchanges(view, gauge_of(view, 150_000), limits))
    assert [message.seq for message in done.messages[:3]] == [1, 2, 3]
    assert done.length < 20


def test_the_largest_blocks_are_shortened_as_far_as_needed() -> None:
    rows = json.dumps([{"n": n} for n in range(30_000)])
    view = view_of(
        prompt("old"), answer("older"), prompt("now", "y" * 20_000),
        answer(use("t1"), use("t2", content="z" * 30_000), use("t3")),
        results(result("t1", rows), result("t2", "small"), result("t3", [IMAGE, text(LONG * 9)])),
    )  # fmt: skip
    limits = policy(max_conversation_bytes=40_000)
    change = shrink_blocks(view, gauge_of(view, 150_000), limits)
    done = after(view, change)
    assert change is not None
    assert change.note.startswith("Shortened the ")
    assert "largest parts: " in change.note
    assert done.size <= 34_000
    assert json.loads(blocks(done, 4)[0]["content"])[0] == {"n": 0}
    assert blocks(done, 4)[1] == result("t2", "small")
    assert blocks(done, 4)[2]["content"][0] == text("[image left out]")
    assert '"msg_3"' in blocks(done, 2)[1]["text"]
    assert len(blocks(done, 3)[1]["input"]["content"]) < 30_000
    assert shrink_blocks(done, gauge_of(done, 150_000), limits) is None


@pytest.mark.parametrize("window", [32_000, 200_000])
@pytest.mark.parametrize("last", [[], [use("t3", "send_mail")]])
def test_thinking_between_large_calls_does_not_move_what_is_shortened(
    window: int, last: list[Any]
) -> None:
    chapters = [use(f"t{n}", "write_file", n=n, content=f"{n} " * window) for n in (1, 2)]
    calls = [chapters[0], THOUGHT, chapters[1], *last]
    given = [result(one["id"]) for one in (*chapters, *last)]
    view = view_of(prompt("a"), answer(THOUGHT, *calls), results(*given))
    shell = Shell()
    done = shell.prepare(view, situation(window=window), CLASSIC).view
    assert shell.kinds == ["shrink applied"]
    assert after(view, shell.records[0]) == done
    thought, first, second, *rest = blocks(done, 1)
    assert [thought, first["input"]["n"], second["input"]["n"], *rest] == [THOUGHT, 1, 2, *last]


def test_what_cannot_be_reached_is_not_begun_unless_the_window_demands_it() -> None:
    huge = "q" * 60_000
    view = view_of(prompt("a"), *round_of("t1", huge, name="read_file"), *round_of("t2", LONG * 9))
    limits = policy(
        max_conversation_bytes=40_000, verbatim_tools=["read_file"], verbatim_max_chars=60_000
    )
    assert shrink_blocks(view, gauge_of(view, 150_000), limits) is None
    gauge = gauge_of(view, view.tokens, room=1_000)
    change = shrink_blocks(view, gauge, limits)
    done = after(view, change)
    assert change is not None
    assert change.note.startswith("Shortened the largest part: ")
    assert blocks(done, 2) == blocks(view, 2)


def test_the_first_messages_text_is_taken_last() -> None:
    view = view_of(prompt(IMAGE, "p" * 50_000), *round_of("t1", "r" * 50_000))
    kind = gauge_of(view, 150_000)
    done = after(view, shrink_blocks(view, kind, policy(max_conversation_bytes=70_000)))
    assert blocks(done, 0) == blocks(view, 0)
    done = after(view, shrink_blocks(view, kind, policy(max_conversation_bytes=40_000)))
    assert blocks(done, 0)[0] == IMAGE
    assert len(blocks(done, 0)[1]["text"]) < 40_000


def test_prompts_without_an_answer_are_dropped_before_the_latest_is_shortened() -> None:
    view = view_of(prompt("a"), prompt("b" * 40_000), prompt("c" * 40_000))
    change = shrink_blocks(view, gauge_of(view, 150_000), policy(max_conversation_bytes=30_000))
    done = after(view, change)
    assert blocks(done, 1) == blocks(view, 1)
    assert len(blocks(done, 2)[0]["text"]) > 20_000


def test_a_call_whose_input_is_no_object_when_shortened_is_left_alone() -> None:
    deep: dict[str, Any] = {}
    for _ in range(150):
        deep = {"deep and deeper still": deep}
    view = view_of(prompt("a"), answer(use("t1", a=deep, b="x" * 20_000)), results(result("t1")))
    assert (
        shrink_blocks(view, gauge_of(view, 150_000), policy(max_conversation_bytes=9_000)) is None
    )


def test_rebind_drops_thinking_that_another_envelope_signed() -> None:
    view = view_of(
        prompt("a"), answer(THOUGHT, use("t1")), results(result("t1")), answer(THOUGHT, "x"),
        prompt("b"),
    )  # fmt: skip
    change = drop_unbound_thinking(view, situation(bound_to="old"))
    done = after(view, change)
    assert change is not None
    assert change.trigger.number == 2
    assert change.note == (
        "Left out the model's earlier thinking, which the API would no longer accept"
    )
    assert not any(message.has_thinking for message in done.messages)
    assert drop_unbound_thinking(done, situation(bound_to="old")) is None


@pytest.mark.parametrize("bound", ["", "e"])
def test_thinking_that_is_still_bound_stays(bound: str) -> None:
    view = view_of(prompt("a"), answer(THOUGHT, "x"), prompt("b"))
    assert drop_unbound_thinking(view, situation(bound_to=bound)) is None
