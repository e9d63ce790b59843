"""Generated conversations, policies and situations: all block kinds, odd but valid.

One integer makes one conversation, so 100,000 of them cost little and any can be made again.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from conversations.context import wire
from conversations.context.decision import Rates
from conversations.context.gauge import Report
from conversations.context.pipeline import Situation, SummaryReply, SummaryWanted
from conversations.context.policy import PRESETS, Policy
from conversations.context.view import Kind, Message, View

from .talk import IMAGE, keeping, result, text, use

WORDS = [
    "the price of 1,250.50 EUR", "https://example.com/jobs/4711?x=1", "notes/todays-jobs.md",
    "漢字かな混じり文", "👩‍👩‍👧‍👦 family", "e\u0301a\u0308", "🇩🇪🇫🇷", "नमस्ते",
    "[CONTEXT SUMMARY]", "line\nline\n", "\u0000\u001b[31m", 'quo"te\\', "ERROR: it failed",
    "PROJ-1234", "</transcript>", " ", "\r\n", "한글",
]  # fmt: skip
RATES = Rates(2_000_000, 10_000_000, 2_500_000, 100_000)
TOOLS = ["fetch_url", "read_file", "list_files", "recall", "write_file"]
seeds = st.integers(0, 2**48)


class Maker:
    """Makes the messages of one conversation, numbered with gaps as a log does."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.seq = 0
        self.calls = 0
        self.scale = self.chance.choice([20, 200, 2_000, 12_000])

    def words(self, most: int) -> str:
        chance = self.chance
        size = chance.randint(1, most)
        piece = "".join(chance.choices(WORDS, k=min(12, 1 + size // 12)))
        return "x" + (piece * (1 + size // len(piece)))[:size]

    def message(self, kind: Kind, parts: list[dict[str, Any]]) -> Message:
        self.seq += self.chance.choice([1, 1, 1, 2, 5])
        return Message.parse(self.seq, kind, wire.encode(parts))

    def prompt(self) -> Message:
        chance = self.chance
        parts: list[dict[str, Any]] = [
            text(self.words(self.scale if chance.random() < 0.1 else 80))
        ]
        if chance.random() < 0.15:
            parts.insert(0, IMAGE)
        if chance.random() < 0.05:
            source = {"type": "text", "media_type": "text/plain", "data": self.words(200)}
            parts.append({"type": "document", "source": source})
        return self.message("prompt", parts)

    def thoughts(self) -> list[dict[str, Any]]:
        chance = self.chance.random()
        if chance < 0.3:
            return [{"type": "thinking", "thinking": self.words(60), "signature": "c2ln"}]
        return [{"type": "redacted_thinking", "data": "ZGF0YQ=="}] if chance < 0.35 else []

    def answer(self) -> Message:
        chance = self.chance.random()
        parts = self.thoughts()
        if chance < 0.05:
            self.calls += 1
            call = f"srvtoolu_{self.calls}"
            parts += [
                {"type": "server_tool_use", "id": call, "name": "web_search", "input": {}},
                {"type": "web_search_tool_result", "tool_use_id": call, "content": []},
            ]
        if chance > 0.03 or not parts:
            parts.append(text(self.words(120)))
        return self.message("answer", parts)

    def round(self) -> list[Message]:
        chance = self.chance
        parts = self.thoughts() + ([text(self.words(60))] if chance.random() < 0.4 else [])
        ids = [f"toolu_{self.calls + n}" for n in range(chance.choice([1, 1, 1, 2, 4]))]
        self.calls += len(ids)
        for call in ids:
            given = {"path": self.words(30), "n": 1, "deep": [{"a": None}]}
            parts.append(use(call, chance.choice(TOOLS), **given))
        chance.shuffle(ids)
        answers = list(map(self.result, ids))
        if chance.random() < 0.1:
            answers.append(text(self.words(50)))
        return [self.message("answer", parts), self.message("results", answers)]

    def result(self, id: str) -> dict[str, Any]:
        chance = self.chance
        kind = chance.random()
        if kind < 0.05:
            return {"type": "tool_result", "tool_use_id": id}
        if kind < 0.1:
            return result(id, "")
        if kind < 0.2:
            return result(id, self.words(self.scale), is_error=True)
        if kind < 0.35:
            nested = [text(self.words(self.scale)), IMAGE, text(self.words(40))]
            return result(id, chance.sample(nested, k=chance.randint(1, 3)))
        if kind < 0.5:
            rows = [{"id": n, "name": self.words(20)} for n in range(self.scale // 60)]
            return result(id, wire.encode({"rows": rows, "next": None}))
        return result(id, self.words(self.scale))

    def conversation(self) -> list[Message]:
        made = [self.prompt()]
        for _ in range(self.chance.choice([0, 1, 3, 8, 20])):
            kind = self.chance.random()
            if kind < 0.55:
                made += self.round()
            elif kind < 0.8:
                made += [self.answer(), self.prompt()]
            else:
                made.append(self.answer() if kind < 0.87 else self.prompt())
        if made[-1].kind == "answer":
            made.append(self.prompt())
        return made


def view_from(messages: list[Message]) -> View:
    view = View()
    for message in messages:
        view = view.append(message)
    return view


def policy_from_seed(seed: int) -> Policy:
    chance = random.Random(seed)
    policy = PRESETS[chance.choice(list(PRESETS))]
    if policy.name == "off" or chance.random() < 0.2:
        return policy
    pick = chance.choice
    return replace(
        policy,
        input_token_budget=pick([0, 50, 500, 5_000]),
        tool_result_retention_chars=pick([64, 100, 500]),
        max_tool_result_chars=pick([0, 600, 5_000, 40_000]),
        compaction_enabled=pick([True, True, False]),
        compaction_threshold_tokens=pick([1_000, 3_000, 10_000]),
        protected_tail_messages=pick([1, 2, 6, 9]),
        summary_input_chars=pick([2_000, 100_000]),
        summary_max_tokens=pick([256, 1_024, 4_096]),
        trim_threshold_percent=pick([0, 5, 60]),
        max_conversation_bytes=pick([0, 3_000, 30_000, 720_000]),
        max_conversation_messages=pick([0, 3, 10, 50]),
        verbatim_tools=pick([(), (), ("read_file",), ("list_files", "fetch_url")]),
        verbatim_max_chars=pick([500, 8_000, 100_000]),
        tool_policies=pick(
            [(), (), ("fetch_url=keep", "read_file=head_tail"), ("list_files=cap 300",)]
        ),
        structure_kept=pick([True, False]),
        recall_list_chars=pick([500, 4_000, 12_000]),
        round_summary_every=pick([0, 0, 1, 2, 5]),
        max_conversation_tokens=pick([0, 0, 800, 5_000]),
        compact_above_percent=pick([0, 0, 29, 65]),
        low_water_percent=pick([5, 28]),
        low_water_tokens=pick([300, 2_000, 30_000]),
        minimum_gain_tokens=pick([500, 8_000]),
    )


def situation_from_seed(seed: int, view: View) -> Situation:
    chance = random.Random(seed)
    report = None
    if chance.random() < 0.6:
        share = chance.choice([50, 100, 130, 400])
        report = Report(view.tokens * share // 100, view.tokens, 100, view.edits)
    bound = chance.choice(["", "same", "recall", "other"])
    binding: Callable[[bool], str] = lambda recall: "recall" if recall else "same"  # noqa: E731
    window = chance.choice([16_000, 20_000, 32_000, 200_000, 1_000_000])
    return Situation(
        "model", window, 100, report, bound, binding, chance.choice([0, 0, 2, 3]),
        rates=chance.choice([None, RATES, RATES, replace(RATES, cliff=3_000)]),
        cache_age=chance.choice([None, 10, 400]),
        pins=chance.choice([frozenset(), frozenset({"toolu_1", "toolu_3", 4})]),
    )  # fmt: skip


def writer_from_seed(seed: int) -> Callable[[SummaryWanted], SummaryReply | None]:
    """Make a writer that is good, or fails in one of the ways a call can fail."""
    chance = random.Random(seed)

    def write(wanted: SummaryWanted) -> SummaryReply | None:
        good = keeping(wanted)
        return chance.choice(
            [
                good, good, good, None,
                SummaryReply("", "end_turn"), SummaryReply("x", "max_tokens"),
                SummaryReply("Error: 529", "end_turn"), SummaryReply(wanted.text * 3, "end_turn"),
                SummaryReply("[END CONTEXT SUMMARY] " + good.text, "end_turn"),
            ]
        )  # fmt: skip

    return write
