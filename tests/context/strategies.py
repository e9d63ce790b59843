"""Generated conversations, policies and situations: all block kinds, unusual but valid.

One integer makes one conversation, so 100,000 of them cost little and any can be generated again.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

from hypothesis import strategies as st

from conversations.context.pipeline import Situation, SummaryReply, SummaryWanted
from conversations.context.policy.gauge import Report
from conversations.context.policy.policy import PRESETS, Policy
from conversations.context.view import wire
from conversations.context.view.cost_decision import Rates
from conversations.context.view.view import THINKING, Kind, Message, View
from tests.context.parts import SERVED, Made, Parts
from tests.context.samples import keeping

RATES = Rates(2_000_000, 10_000_000, 2_500_000, 100_000)
seeds = st.integers(0, 2**48)


class Maker(Parts):
    """Makes the messages of one conversation, numbered with gaps as a log does."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.seq = 0

    def next_number(self) -> int:
        self.seq += self.chance.choice([1, 1, 1, 2, 5])
        return self.seq

    def message(self, kind: Kind, parts: list[Made]) -> Message:
        return Message.parse(self.next_number(), kind, wire.encode(parts))

    def prompt(self) -> Message:
        return self.message("prompt", self.said_by_user())

    def answer(self) -> Message:
        """Make an answer that calls nothing of ours; it may have run tools of the API."""
        chance = self.chance.random()
        parts = self.thoughts()
        while chance < 0.08:
            parts += self.served()
            parts += self.thoughts()
            chance += 0.05
        if chance > 0.03 or not parts:
            parts.append(self.text_block())
        return self.message("answer", parts)

    def paused(self) -> Message:
        """Make an answer that the API paused in a tool of its own, before or after its result."""
        call, found = self.served()
        parts = [*self.thoughts(), self.text_block()][self.chance.randint(0, 1) :]
        is_open = self.chance.random() < 0.5
        return self.message("answer", [*parts, call] if is_open else [*parts, call, found])

    def resumed(self, paused: Message) -> Message:
        """Make the rest of an answer that was paused."""
        last = paused.blocks[-1].value
        is_open = last["type"] in ("server_tool_use", "mcp_tool_use")
        rest = [self.found_by(last)] if is_open else []
        return self.message("answer", [*rest, *self.thoughts(), self.text_block()])

    def found_by(self, call: Made) -> Made:
        """Make the result of a call of the API's own tools."""
        name = "mcp" if call["type"] == "mcp_tool_use" else call["name"]
        content = self.chance.choice(SERVED[name])
        return {"type": f"{name}_tool_result", "tool_use_id": call["id"], "content": content}

    def waited(self) -> list[Message]:
        """Make a call of the API's that waits beside ours, and the answer it begins.

        It may have made the calls itself; then it may wait for those of several answers.
        """
        call = self.served()[0]
        uses, is_caller = [self.use()], self.chance.random() < 0.3
        if is_caller:
            uses[0] |= {"caller": {"type": "code_execution_20250825", "tool_id": call["id"]}}
        made = [self.message("answer", [*self.thoughts(), call, *uses])]
        made.append(self.message("results", [self.result(str(uses[0]["id"]))]))
        while is_caller and self.chance.random() < 0.5:
            more = self.use() | {"caller": uses[0]["caller"]}
            made.append(self.message("answer", [more]))
            made.append(self.message("results", [self.result(str(more["id"]))]))
        rest = [*self.thoughts(), self.text_block()]
        return [*made, self.message("answer", [self.found_by(call), *rest])]

    def unfinished(self) -> list[Message]:
        """Make a turn that ended while a call of the API's waited."""
        if self.chance.random() < 0.5:
            return self.waited()[:2]
        call = self.served()[0]
        return [self.message("answer", [*self.thoughts(), call])]

    def round(self) -> list[Message]:
        """Make an answer with calls, and their results: in one message or two, text behind."""
        chance = self.chance
        parts = self.thoughts() + ([self.text_block()] if chance.random() < 0.4 else [])
        if chance.random() < 0.04:
            parts += self.served()
        uses = [self.use() for _ in range(chance.choice([1, 1, 1, 2, 4]))]
        between = self.thoughts() if len(uses) > 1 else []
        said = [self.message("answer", [*parts, uses[0], *between, *uses[1:]])]
        if chance.random() < 0.04:
            uses.append(self.use())
            said.append(self.message("answer", uses[-1:]))
        answers = [self.result(str(call["id"])) for call in uses]
        chance.shuffle(answers)
        if len(answers) > 1 and chance.random() < 0.15:
            said.append(self.message("results", [answers.pop(0)]))
        if chance.random() < 0.1:
            answers += self.said_by_user()
        return [*said, self.message("results", answers)]

    def conversation(self, *, has_unfinished: bool = False) -> list[Message]:
        made: list[Message] = []
        if self.chance.random() < 0.04:
            name = {"signature": "c2ln"} if self.chance.random() < 0.5 else {}
            block = {"type": "compaction", "content": self.words(300), **name}
            made.append(self.message("answer", [block]))
        made.append(self.prompt())
        for _ in range(self.chance.choice([0, 1, 3, 8, 20])):
            kind = self.chance.random()
            if kind < 0.55:
                made += self.round()
            elif kind < 0.75:
                made += [self.answer(), self.prompt()]
            elif kind < 0.77:
                ends_early = has_unfinished and self.chance.random() < 0.5
                made += self.unfinished() if ends_early else self.waited()
                made.append(self.prompt())
            elif kind < 0.8:
                paused = self.paused()
                made += [paused, self.resumed(paused), self.prompt()]
            else:
                made.append(self.answer() if kind < 0.87 else self.prompt())
        if made[-1].kind == "answer":
            made.append(self.paused() if self.chance.random() < 0.05 else self.prompt())
        if self.chance.random() < 0.03:
            at = self.chance.randrange(len(made))
            made[at] = _marked(made[at])
        return made


def _marked(message: Message) -> Message:
    """Put a cache mark on the last block that may have one, as an imported message can have it."""
    blocks = [block.value for block in message.blocks]
    for at in reversed(range(len(blocks))):
        if blocks[at]["type"] not in THINKING:
            blocks[at] = blocks[at] | {"cache_control": {"type": "ephemeral"}}
            break
    return Message.parse(message.seq, message.kind, wire.encode(blocks))


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
        action_list_chars=pick([300, 800, 2_400]),
        name_list_chars=pick([0, 100, 1_000, 10_000]),
        summary_least_tokens=pick([0, 0, 400, 50_000]),
        window_reserve_tokens=pick([1_000, 16_000]),
        round_summary_every=pick([0, 0, 1, 2, 5]),
        max_conversation_tokens=pick([0, 0, 800, 5_000]),
        compact_above_percent=pick([0, 0, 29, 65]),
        low_water_percent=pick([5, 28]),
        low_water_tokens=pick([300, 2_000, 30_000]),
        minimum_gain_tokens=pick([100, 500, 8_000]),
        server_side=pick([policy.server_side, policy.server_side, True]),
        clear_keep_results=pick([0, 1, 3]),
    )


def situation_from_seed(seed: int, view: View) -> Situation:
    chance = random.Random(seed)
    report = None
    if chance.random() < 0.6:
        share = chance.choice([50, 100, 130, 400])
        report = Report(view.tokens * share // 100, view.tokens, 100, view.edits)
    bound = chance.choice(["", "same", "recall", "other"])
    window = chance.choice([16_000, 20_000, 32_000, 200_000, 1_000_000])
    return Situation(
        "model", window, 100, report, bound, "same", chance.choice([0, 0, 2, 3]),
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
