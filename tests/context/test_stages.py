"""Summaries in stages: parts that know each other, merged; what was paid for is used."""

from __future__ import annotations

from typing import Any

import pytest

from agentweb.emulator import summarize_text
from conversations.context.policy.policy import build_policy
from conversations.context.steps.by_hand import (
    build_working_view,
    list_summary_requests,
    replace_by_hand,
    summarise_by_hand,
)
from conversations.context.steps.protocol import SummaryReply, SummaryWanted
from conversations.context.steps.summary import END, START
from conversations.context.steps.summary_versions import read_written
from conversations.context.tokens.estimate import estimate_text
from conversations.context.view.view import View
from tests.context.independent import found_in
from tests.context.samples import (
    Shell,
    answer,
    blocks,
    prompt,
    round_of,
    situation,
    view_of,
)

ALL_READ = ("rebuild", {"max_conversation_messages": 0, "summary_max_tokens": 2_000})
STAGED = ("staged", {"summary_max_tokens": 2_000})


def summarised(view: View, shell: Shell, preset: Any = STAGED) -> View:
    policy = build_policy(*preset)
    return shell.prepare(view, situation(view, view.tokens, window=32_000), policy).view


def long_talk(size: int = 4_000, last: str = "now") -> View:
    said = [m for n in range(60) for m in (prompt(f"p{n} " + "w " * size), answer(f"a{n}"))]
    few = [m for n in range(3) for m in round_of(f"t{n}", "x", url=f"https://e.org/{n}")]
    return view_of(prompt("go"), *said[:40], *few, prompt(last))


def numbered(shell: Shell) -> Any:
    return lambda wanted: SummaryReply(f"<part>made {len(shell.wanted)}", "end_turn")


def failing(*numbers: int, reply: Any = None) -> Any:
    """Write the parts, but for those of these numbers."""

    def write(wanted: SummaryWanted) -> Any:
        named = (f"This is part {number} of " in wanted.text for number in numbers)
        is_named = any(named) or (0 in numbers and "Merge the summaries" in wanted.text)
        words = "; ".join(["what this part says", *wanted.keep])
        return reply if is_named else SummaryReply(words, "end_turn")

    return write


@pytest.mark.parametrize("preset", [ALL_READ, STAGED])
def test_a_zone_that_does_not_fit_the_model_is_summarised_in_stages(preset: Any) -> None:
    shell = Shell()
    shell.writes = numbered(shell)
    done = summarised(long_talk(), shell, preset)
    *parts, merged = shell.wanted
    assert len(parts) > 2
    assert all(f"This is part {n} of {len(parts)} " in one.text for n, one in enumerate(parts, 1))
    assert "preserving decisions, TODOs, open questions and constraints" in merged.text
    assert merged.text.count("<part>\n") == len(parts)
    assert "<first_request>\ngo\n</first_request>" in merged.text
    assert shell.kinds[0] == "summary applied"
    assert f"made {len(shell.wanted)}" in blocks(done, 0)[1]["text"]


def test_a_part_knows_the_request_the_names_to_keep_and_the_parts_before() -> None:
    said = [m for n in range(20) for m in (prompt(f"p{n} " + "w " * 4_000), answer("ok"))]
    said[3], said[23] = answer("see file_1.md"), answer("see file_7.md")
    view = view_of(prompt("go"), *said, answer("file_1.md and file_7.md fit"), prompt("now"))
    shell = Shell(writes=failing())
    done = summarised(view, shell)
    *parts, merged = shell.wanted
    assert len(parts) > 2
    assert all("<first_request>\ngo\n</first_request>" in one.text for one in parts)
    named = [one.keep for one in parts if one.keep]
    assert named == [("file_1.md",), ("file_7.md",)]
    assert set(merged.keep) == {"file_1.md", "file_7.md"}
    before = [one.text.partition("<transcript>")[0].count("<part>\n") for one in parts]
    assert before == list(range(len(parts)))
    assert shell.kinds == ["summary applied"]
    assert "file_7.md" in blocks(done, 0)[1]["text"]


def test_nothing_is_thrown_from_the_middle_while_stages_can_read_it() -> None:
    view = long_talk()
    shell = Shell(writes=failing())
    summarised(view, shell, ("staged", {"summary_max_tokens": 2_000, "summary_input_chars": 2_000}))
    read = "".join(one.text for one in shell.wanted)
    assert all(f"p{n} w" in read for n in range(19))
    assert "of the middle left out" not in read


def test_a_zone_that_fits_one_request_is_read_whole() -> None:
    said = [m for n in range(20) for m in (prompt(f"p{n} " + "w " * 500), answer(f"a{n}"))]
    view = view_of(prompt("go"), *said, prompt("now"))
    shell = Shell(writes=failing())
    policy = build_policy("staged", {"summary_input_chars": 2_000})
    shell.prepare(view, situation(view, 90_000), policy)
    [one] = shell.wanted
    assert "p9 w" in one.text
    assert "of the middle left out" not in one.text
    assert shell.kinds == ["summary applied"]


@pytest.mark.parametrize(
    ("name", "chars", "is_read"),
    [
        ("rebuild", 95_000, False),
        ("rebuild", 40_000, True),
        ("staged", 95_000, False),
        ("staged", 40_000, True),
        ("adaptive", 95_000, False),
    ],
)
def test_only_a_message_that_does_not_fit_the_request_is_left_out_of_it(
    name: str, chars: int, *, is_read: bool
) -> None:
    pasted = " ".join(f"w{n:x}" for n in range(chars // 6))
    first = [prompt("help"), answer("paste it"), prompt(pasted), answer("read")]
    said = [m for n in range(4) for m in (prompt(f"and part {n}?"), answer("It is fine. " * 9))]
    view = view_of(*first, *said, prompt("and now?"))
    given = {} if name == "adaptive" else {"compaction_threshold_tokens": 8_000}
    policy = build_policy(name, given)
    shell = Shell(writes=failing())
    done = shell.prepare(view, situation(window=32_000), policy).view
    [one] = shell.wanted
    size = estimate_text(one.system) + estimate_text(one.text)
    assert size * 120 // 100 + one.max_tokens <= policy.room(32_000)
    assert (pasted[-99:] in one.text) == is_read
    assert ("[a message of about " in one.text) != is_read
    assert shell.kinds == ["summary applied"]
    assert '"msg_3"' in str(blocks(done, 0)[1]["text"])


@pytest.mark.parametrize(
    ("reply", "reason", "tries"),
    [
        (None, "the call gave no answer", 1),
        (SummaryReply("x", "max_tokens"), "it ended with max_t", 2),
    ],
)
def test_a_first_part_that_fails_rejects_the_summary(reply: Any, reason: str, tries: int) -> None:
    shell = Shell(writes=lambda wanted: reply)
    summarised(long_talk(), shell)
    assert len(shell.wanted) == tries
    assert shell.records[0].outcome == "rejected"
    assert f"Summary failed: part 1 of 5: {reason}" in shell.records[0].reason
    # Then the deterministic steps make the room.
    assert shell.kinds[1:] == ["trim applied"]


def test_parts_that_were_paid_for_survive_one_that_failed() -> None:
    view = long_talk()
    shell = Shell(writes=failing(4))
    done = summarised(view, shell)
    first = shell.records[0]
    assert (first.kind, first.outcome) == ("summary", "applied")
    assert first.note.endswith("; part 4 of 5: the call gave no answer")
    assert "what this part says" in blocks(done, 0)[1]["text"]
    # What the failed part held stays as it is.
    after = [message.seq for message in first.view_after.messages]
    gone = {message.seq for message in view.messages} - set(after)
    assert gone == set(range(2, 2 + len(gone)))
    assert after[-1] == view.messages[-1].seq
    assert found_in([json_of(message) for message in first.view_after.messages]) == []


def test_by_hand_a_failed_part_rejects_the_summary_and_a_failed_merge_does_not() -> None:
    view = long_talk()
    working = build_working_view(view, situation(window=32_000), build_policy(*STAGED))

    def summed(write: Any) -> Any:
        steps, reply = summarise_by_hand(working), None
        try:
            while True:
                reply = write(steps.send(reply))
        except StopIteration as stop:
            return stop.value

    rejected = summed(failing(4))
    assert (rejected.outcome, rejected.view_after) == ("rejected", view)
    assert rejected.reason == "Summary failed: part 4 of 5: the call gave no answer"
    for reply in (None, SummaryReply("", "end_turn")):
        joined = summed(failing(0, reply=reply))
        words = read_written(joined)
        assert words.split("\n\n") == ["what this part says"] * 5
        # The words alone make the same change when a person has accepted them.
        again = replace_by_hand(working, words)
        assert again.view_after.body == joined.view_after.body  # type: ignore[union-attr]


def json_of(message: Any) -> dict[str, Any]:
    return {"role": message.role, "content": [block.value for block in message.blocks]}


@pytest.mark.parametrize("reply", [None, SummaryReply("", "end_turn")])
def test_a_merge_that_failed_leaves_the_parts_own_texts(reply: Any) -> None:
    shell = Shell(writes=failing(0, reply=reply))
    done = summarised(long_talk(), shell)
    assert shell.kinds[0] == "summary applied"
    words = str(blocks(done, 0)[1]["text"])
    assert words.count("what this part says") == 5
    assert (words.startswith(START), words.endswith(END)) == (True, True)


@pytest.mark.parametrize("failed", [(2,), (0, 3), (0, 4)])
def test_paid_parts_need_no_names_that_only_messages_left_in_view_have(
    failed: tuple[int, ...],
) -> None:
    said = [m for n in range(20) for m in (prompt(f"p{n} " + "w " * 4_000), answer("ok"))]
    said[1], said[33] = answer("see people/group.csv"), answer("as in people/group.csv")
    view = view_of(prompt("go"), *said, answer("so"), prompt("now"))
    shell = Shell(writes=failing(*failed))
    done = summarised(view, shell)
    assert all(not one.keep for one in shell.wanted if "Merge the summaries" not in one.text)
    first = shell.records[0]
    assert (first.kind, first.outcome) == ("summary", "applied")
    assert first.note.endswith(f"; part {failed[-1]} of 5: the call gave no answer")
    words = str(blocks(done, 0)[1]["text"])
    assert words.count("what this part says") == failed[-1] - 1


def test_the_first_part_keeps_the_names_that_no_part_has() -> None:
    # Only the ends of a result are read for a summary.
    found = round_of("t", f"{'x ' * 900} plan.md {'y ' * 900}")
    said = [m for n in range(20) for m in (prompt(f"p{n} " + "w " * 4_000), answer("ok"))]
    view = view_of(prompt("go"), *said, *found, prompt("b"), *said[:6], prompt("read plan.md"))
    shell = Shell(writes=failing(0))
    done = summarised(view, shell)
    assert [one.keep for one in shell.wanted if one.keep] == [("plan.md",)] * 2
    assert shell.wanted[0].keep == ("plan.md",)
    assert shell.kinds[0] == "summary applied"
    assert "what this part says; plan.md" in blocks(done, 0)[1]["text"]


def test_parts_too_long_to_be_merged_or_put_in_view_reject_the_summary() -> None:
    long = SummaryReply("z " * 30_000, "end_turn")
    shell = Shell(writes=lambda wanted: long)
    summarised(long_talk(), shell)
    assert shell.records[0].reason == "Summary failed: the parts do not fit one request"
    assert "<part>" not in shell.wanted[-1].text.partition("<transcript>")[0]


def test_one_part_alone_needs_no_merge() -> None:
    shell = Shell(writes=failing(2))
    summarised(long_talk(), shell)
    assert not any("Merge the summaries" in one.text for one in shell.wanted)
    assert shell.records[0].outcome == "applied"


def test_a_working_memory_is_made_of_all_parts_or_not_at_all() -> None:
    rounds = [m for n in range(5) for m in round_of(f"t{n}", "x", url="w " * 12_000 + str(n))]
    view = view_of(prompt("go"), *rounds)
    policy = build_policy("staged", {"round_summary_every": 5, "summary_max_tokens": 2_000,
                                     "compaction_threshold_tokens": 1_000_000})  # fmt: skip
    shell = Shell(writes=lambda wanted: None)
    shell.prepare(view, situation(window=32_000), policy)
    assert shell.records[0].outcome == "rejected"


def test_the_estimate_of_a_summary_by_hand_counts_every_part() -> None:
    view = long_talk(last="see https://e.org/x")
    policy = build_policy(*STAGED)
    working = build_working_view(view, situation(view, view.tokens, window=32_000), policy)
    asked = list_summary_requests(summarise_by_hand(working))
    assert len(asked) == 6
    assert "Merge the summaries" in asked[-1].text


def test_the_emulator_writes_parts_and_fails_one() -> None:
    def write(wanted: SummaryWanted) -> SummaryReply | None:
        said = summarize_text(wanted.system, wanted.text, wanted.max_tokens)
        return None if said is None else SummaryReply(*said)

    shell = Shell(writes=write)
    summarised(long_talk(), shell)
    assert shell.kinds[0] == "summary applied"
    said = [m for n in range(20) for m in (prompt(f"p{n} " + "w " * 4_000), answer(f"a{n}"))]
    said[24] = prompt("emulator:summary=error " + "w " * 4_000)
    shell = Shell(writes=write)
    summarised(view_of(prompt("go"), *said, answer("so"), prompt("now")), shell)
    assert shell.records[0].outcome == "applied"
    assert "the call gave no answer" in shell.records[0].note


def test_a_second_attempt_at_a_summary_is_not_counted_as_another_part() -> None:
    def attempt() -> Any:
        first = SummaryWanted("s", "the text", 100)
        yield first
        yield SummaryWanted("s", "the text\n\nIt was rejected.", 100)

    assert [one.text for one in list_summary_requests(attempt())] == ["the text"]
