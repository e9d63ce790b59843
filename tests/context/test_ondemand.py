"""The API's compaction: what is requested, where its block is, and which model can read it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from conversations.context.errors import RuleError
from conversations.context.pipeline import CompactionReply, CompactionWanted
from conversations.context.policy.policy import PRESETS
from conversations.context.steps import api_compaction
from conversations.context.view import edits, rules, wire
from conversations.context.view.view import Message, View
from tests.context.replay import replay_entries
from tests.context.samples import (
    THOUGHT,
    Shell,
    answer,
    blocks,
    prompt,
    round_of,
    situation,
    text,
    view_of,
    writing,
)
from tests.context.test_pipeline import PAGE, rounds

NATIVE = replace(
    PRESETS["native"], input_token_budget=0, compaction_threshold_tokens=2_000,
    minimum_gain_tokens=500, protected_tail_messages=2, max_conversation_bytes=0,
)  # fmt: skip
SIGNED = {"type": "compaction", "content": "They read pages.", "signature": "c2ln"}
Compacts = Callable[[CompactionWanted], CompactionReply | None]


def giving(value: dict[str, Any] | None, stop: str = "compaction") -> Compacts:
    reply = CompactionReply(wire.encode(value) if value else "", stop)
    return lambda wanted: reply


def prepare_compacted(
    view: View, policy: Any = NATIVE, **more: Any
) -> tuple[Shell, list[CompactionWanted], View]:
    """Prepare with a compaction that works; give the shell, the wishes, and the view."""
    found: list[CompactionWanted] = []
    give = more.pop("gives", giving(SIGNED))

    def compacts(wanted: CompactionWanted) -> CompactionReply | None:
        found.append(wanted)
        return give(wanted)

    shell = Shell(compacts=compacts, writes=more.pop("writes", writing(None)))
    known = situation(**({"compacts": True} | more))
    return shell, found, shell.prepare(view, known, policy).view


def rounds_of(prefix: str, count: int) -> list[Any]:
    return [part for n in range(count) for part in round_of(f"{prefix}{n}", PAGE)]


TALK = view_of(prompt("a"), *rounds(3), answer("done"), prompt("b"), *rounds_of("u", 1))


def test_the_first_messages_become_one_block_and_the_rest_stays() -> None:
    view = view_of(prompt("a"), *rounds(3), answer(THOUGHT, "done"), prompt("b"),
                   answer(THOUGHT, "more"), prompt("c"))  # fmt: skip
    shell, (wanted,), after = prepare_compacted(view)
    # Whole exchanges, and never into the tail.
    assert wanted.view.length == 8
    assert wanted.view.body == view.head(8).body
    assert wanted.tokens <= view.tokens
    assert [message.seq for message in after.messages] == [0, 9, 10, 11][: after.length]
    assert shell.kinds == ["summary applied"]
    first = blocks(after, 0)
    assert first[0] == SIGNED
    assert '"msg_3"' in first[1]["text"]
    assert not any(message.has_thinking for message in after.messages)
    change = shell.applied[0]
    stored = edits.load_edits(edits.dump_edits(change.edits))
    assert replay_entries([*view.messages, ("summary", stored)]) == after
    assert api_compaction.inserts_block(stored)
    assert "The API compacted 8 messages into about" in change.note
    rules.check_rules(after)


def test_thinking_of_another_envelope_is_not_sent_to_be_compacted_for_a_veto() -> None:
    view = view_of(
        prompt("a"), *rounds(3), answer(THOUGHT, "done"), prompt("b"), *rounds_of("u", 1)
    )
    shell = Shell(vetoes=("rebind",), compacts=giving(SIGNED))
    with pytest.raises(RuleError) as caught:
        shell.prepare(view, situation(compacts=True, bound_to="other"), NATIVE)
    assert caught.value.rule == "thinking"
    assert set(shell.kinds) == {"rebind vetoed"}


def test_where_nothing_can_be_recalled_no_list_stands_beside_the_block() -> None:
    said = [part for _ in range(6) for part in (answer("so it is. " * 150), prompt("b"))]
    _, _, after = prepare_compacted(view_of(prompt("a"), *said))
    assert blocks(after, 0) == [SIGNED]


def test_a_long_turn_is_compacted_behind_its_prompt() -> None:
    view = view_of(prompt("a"), *rounds(6))
    _, (wanted,), after = prepare_compacted(view)
    assert wanted.view.messages[-1].kind == "results"
    assert after.messages[0].kind == "answer"
    assert after.messages[1].kind == "answer"
    rules.check_rules(after)


def test_a_later_compaction_takes_the_block_in() -> None:
    _, _, once = prepare_compacted(view_of(prompt("a"), *rounds(6)))
    grown = once
    for number, (kind, parts) in enumerate(rounds_of("n", 6)):
        grown = grown.append(Message.parse(50 + number, kind, wire.encode(parts)))
    second = SIGNED | {"content": "They read more pages.", "signature": "bmV3"}
    shell, (wanted,), twice = prepare_compacted(grown, gives=giving(second))
    assert wanted.view.messages[0].shape.first == "compaction"
    assert [message.shape.signed for message in twice.messages].count((0,)) == 1
    assert blocks(twice, 0)[0] == second
    # What was named stays named.
    assert '"msg_3"' in blocks(twice, 0)[1]["text"]
    assert shell.kinds == ["summary applied"]


def test_what_is_pinned_or_verbatim_is_compacted_and_stays_all_the_same() -> None:
    view = view_of(prompt("a"), *rounds(6))
    _, (wanted,), after = prepare_compacted(view, pins=frozenset({"t1"}))
    assert wanted.view.body == view.head(wanted.view.length).body
    assert [message.seq for message in after.messages][:3] == [0, 4, 5]
    assert after.messages[2] is view.messages[4]


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (None, "the call gave no answer"),
        (CompactionReply("", "max_tokens"), "it ended with max_tokens"),
        (CompactionReply("", ""), "it ended with no stop reason"),
        (CompactionReply("", "compaction"), "empty or not signed"),
        (CompactionReply(wire.encode(SIGNED | {"content": None}), "compaction"), "empty or not"),
        (CompactionReply(wire.encode(SIGNED | {"signature": ""}), "compaction"), "empty or not"),
        (
            CompactionReply(wire.encode(SIGNED | {"content": PAGE * 20}), "compaction"),
            "not shorter",
        ),
    ],
)
def test_no_compaction_is_recorded_and_nothing_is_changed(reply: Any, words: str) -> None:
    view = view_of(prompt("a"), *rounds(6))
    shell, _, after = prepare_compacted(view, gives=lambda wanted: reply)
    assert shell.kinds == ["summary rejected"]
    assert words in shell.records[0].reason
    assert after == view


def test_after_too_many_failures_nothing_is_asked() -> None:
    shell, wanted, _ = prepare_compacted(view_of(prompt("a"), *rounds(6)), rejected=3)
    assert (wanted, shell.records) == ([], [])


@pytest.mark.parametrize(
    "policy",
    [
        replace(NATIVE, compaction_enabled=False),
        replace(NATIVE, minimum_gain_tokens=50_000),
        replace(NATIVE, compaction_threshold_tokens=1_000_000),
    ],
)
def test_what_is_not_wanted_or_not_worth_it_is_not_asked_for(policy: Any) -> None:
    _, wanted, _ = prepare_compacted(view_of(prompt("a"), *rounds(6)), policy)
    assert wanted == []


def test_where_the_api_cannot_compact_we_summarise() -> None:
    view = view_of(prompt("a"), *rounds(6))
    shell, wanted, after = prepare_compacted(
        view, compacts=False, writes=writing("They read. " * 9)
    )
    assert (wanted, shell.wanted != []) == ([], True)
    assert "[CONTEXT SUMMARY]" in str(blocks(after, 0))
    # So we do when a pinned block of an earlier compaction is in the way.
    old = view_of(answer(SIGNED), prompt("a"), *rounds(6))
    shell, wanted, _ = prepare_compacted(
        old, pins=frozenset({1}), writes=writing("They read. " * 9)
    )
    assert (wanted, shell.wanted != []) == ([], True)


def test_a_prefix_larger_than_the_window_is_not_sent() -> None:
    view = view_of(prompt("a"), *rounds(60))
    _, wanted, after = prepare_compacted(view, window=32_000)
    assert all(one.tokens <= NATIVE.room(32_000) for one in wanted)
    assert after.tokens <= NATIVE.room(32_000)


def test_the_first_kept_has_another_role_than_the_last_compacted() -> None:
    view = view_of(prompt("a"), *rounds(4), prompt("b"), prompt("c"), prompt("d"), answer("x"),
                   prompt("e"))  # fmt: skip
    _, (wanted,), after = prepare_compacted(view)
    roles = [message.role for message in view.messages]
    assert roles[wanted.view.length - 1] != roles[wanted.view.length]
    rules.check_rules(after)


def test_thinking_of_another_envelope_goes_before_the_api_is_asked() -> None:
    view = view_of(
        prompt("a"), *rounds(3), answer(THOUGHT, "done"), prompt("b"), *rounds_of("u", 2)
    )
    shell, (wanted,), _ = prepare_compacted(view, bound_to="old")
    assert shell.kinds == ["rebind applied", "summary applied"]
    assert not any(message.has_thinking for message in wanted.view.messages)


@pytest.mark.parametrize(
    "known", [{"compacted_by": "older"}, {"compacts": False}, {"bound_to": "refused"}]
)
def test_a_model_that_does_not_take_the_block_is_given_its_words(known: dict[str, Any]) -> None:
    _, _, compacted = prepare_compacted(view_of(prompt("a"), *rounds(6)))
    shell = Shell()
    known = {"compacts": True} | known
    after = shell.prepare(compacted, situation(**known), PRESETS["off"]).view
    assert shell.kinds == ["summary applied"]
    said = blocks(after, 0)[0]["text"]
    assert said.startswith("[CONTEXT SUMMARY]\nThey read pages.\n")
    assert '"msg_3"' in said
    assert (after.messages[0].seq, after.messages[0].kind) == (0, "prompt")
    assert after.messages[0].by == ("summary",)
    assert after.size < compacted.size
    rules.check_rules(after)


def test_a_block_from_elsewhere_gives_its_words_and_leaves_the_rest() -> None:
    view = view_of(answer(SIGNED | {"signature": "x" * 99}, text("And?")), prompt("b"))
    shell = Shell()
    after = shell.prepare(view, situation(), NATIVE).view
    assert [(m.seq, m.kind) for m in after.messages] == [
        (0, "prompt"),
        (1, "answer"),
        (2, "prompt"),
    ]
    empty = view_of(answer({"type": "compaction", "content": None}, text("And?")), prompt("b"))
    found = Shell().prepare(empty, situation(), PRESETS["off"]).view
    assert "(nothing)" in blocks(found, 0)[0]["text"]
    late = view_of(prompt("a"), answer({"type": "compaction", "content": "x"}), prompt("b"))
    assert Shell().prepare(late, situation(), PRESETS["off"]).view == late


def test_a_veto_cannot_keep_a_block_that_would_be_refused() -> None:
    view = view_of(answer(SIGNED | {"signature": "x" * 99}), prompt("b"))
    with pytest.raises(RuleError, match="does not take the block"):
        Shell(vetoes=("summary",)).prepare(view, situation(), NATIVE)


def test_the_same_model_keeps_its_block_under_any_policy() -> None:
    _, _, compacted = prepare_compacted(view_of(prompt("a"), *rounds(6)))
    for name in ("off", "native"):
        shell = Shell()
        known = situation(compacts=True, compacted_by="model")
        assert shell.prepare(compacted, known, PRESETS[name]).view == compacted


@pytest.mark.parametrize(
    "said",
    [
        [prompt("a"), answer(SIGNED), prompt("b")],
        [answer("x", SIGNED), prompt("b")],
        [answer(SIGNED, SIGNED), prompt("b")],
        [answer(SIGNED), prompt("b"), answer(SIGNED), prompt("c")],
        [answer(SIGNED | {"content": ""}), prompt("b")],
        [answer(SIGNED | {"content": 5}), prompt("b")],
        [prompt(SIGNED)],
    ],
)
def test_a_block_anywhere_but_first_is_a_broken_rule(said: list[Any]) -> None:
    with pytest.raises(RuleError):
        rules.check_rules(view_of(*said))


def test_an_unsigned_block_may_stand_later() -> None:
    rules.check_rules(
        view_of(prompt("a"), answer({"type": "compaction", "content": "x"}), prompt("b"))
    )
