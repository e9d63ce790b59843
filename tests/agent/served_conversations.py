"""Generated conversations with tools of the API, run by the real loop against the emulator.

One integer makes one conversation. Its turns search, fetch and run code, pause, wait for tools of
ours and are cut or stopped anywhere; between them a person forks, reduces and restores. They are
checked by the emulator, which shares no code with the application, and by a second opinion on the
rules.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from agentweb.emulator.server import EmulatorServer
from conversations.agent.job import Caps, Job
from conversations.agent.ports import NO_HEADERS, Ending, Head, Headers, Piece
from conversations.agent.prices import PriceList
from conversations.claude.client import Claude
from conversations.context.errors import RuleError
from conversations.context.policy.policy import PRESETS
from conversations.context.steps import open_calls
from conversations.context.steps.by_hand import (
    build_working_view,
    compact_by_hand,
    drop_turns_by_hand,
)
from conversations.context.steps.exclude import exclude_targets
from conversations.context.steps.restore import build_restore
from conversations.context.view.edits import Transformation
from conversations.context.view.envelope import Envelope, build_envelope
from conversations.context.view.server_calls import read_server_calls
from conversations.context.view.view import Message
from tests.agent.fakes import TOOLS, World
from tests.context.independent import found_in
from tests.context.samples import situation
from tests.context.strategies import policy_from_seed

MODEL = "claude-sonnet-5-5"
PRICES = PriceList(
    MODEL,
    (
        (
            0,
            {
                "input": 2_000_000,
                "output": 10_000_000,
                "cache_write_5m": 2_500_000,
                "cache_write_1h": 4_000_000,
                "cache_read": 100_000,
                "web_search": 10_000_000_000,
            },
        ),
    ),
)
SERVED: list[dict[str, Any]] = [
    {"type": "web_search_20250305", "name": "web_search", "max_uses": 30},
    {"type": "web_fetch_20250910", "name": "web_fetch"},
    {"type": "code_execution_20250825", "name": "code_execution"},
]
STEPS = (
    "search", "search", "search!", "fetch", "bash", "tool", "say", "think", "blank", "pause",
    "search+tool", "fetch+tool", "search+bash+tool", "search+fetch", "search,pause", "bash+search",
)  # fmt: skip


@dataclass
class CutModel:
    """The client, and a stop that arrives after so many events of a call."""

    claude: Claude
    #: Events until the stop; None: there is none.
    left: int | None = None
    stop: Callable[[], None] = lambda: None

    async def count(self, body: str, headers: Headers = NO_HEADERS) -> int | None:
        return await self.claude.count(body, headers)

    async def stream(
        self, body: str, headers: Headers = NO_HEADERS
    ) -> AsyncGenerator[Head | Piece, None]:
        async with aclosing(self.claude.stream(body, headers)) as stream:
            async for item in stream:
                # Event by event, however many came at once.
                for one in [item] if isinstance(item, Head) else map(_single, item.events):
                    yield one
                    if self.left is not None:
                        await self._count_down()

    async def _count_down(self) -> None:
        self.left = (self.left or 0) - 1
        if self.left <= 0:
            self.left = None
            self.stop()
            await asyncio.sleep(0)


def _single(event: dict[str, Any]) -> Piece:
    return Piece((event,))


@dataclass
class ServedConversation:
    seed: int
    claude: Claude
    emulator: EmulatorServer
    met: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.chance = random.Random(f"served {self.seed}")
        self.model = CutModel(self.claude)
        policy = policy_from_seed(self.seed)
        self.policy = policy if self.chance.random() < 0.7 else PRESETS["off"]
        self.world = World(self._job(4_000), self._words(), model=self.model)
        self.ends: list[int] = []

    def _job(self, limit: int) -> Job:
        chance = self.chance

        def summary(system: str, max_tokens: int) -> Envelope:
            return build_envelope(model=MODEL, max_tokens=max_tokens, system=system, cached=False)

        reply = build_envelope(
            model=MODEL,
            max_tokens=limit,
            system="Be brief.",
            tools=[*TOOLS, *SERVED],
            thinking={"type": "adaptive", "display": "summarized"},
        )
        caps = Caps(pauses=chance.choice([0, 1, 5]), rounds=chance.choice([1, 2, 40]))
        window = chance.choice([40_000, 200_000])
        return Job(MODEL, window, self.policy, reply, summary, caps)

    def _words(self) -> str:
        chance = self.chance
        if chance.random() < 0.15:
            return "Say hello."
        steps = ",".join(chance.choice(STEPS) for _ in range(chance.randint(1, 6)))
        length = f", {chance.choice([12, 60, 400])} words each, " if chance.random() < 0.5 else " "
        return f"emulator:rounds={steps} {length} for tea {chance.randint(1, 99)}"

    async def live(self) -> Counter[str]:
        """Run it to its end; raises AssertionError where a request is not legal."""
        await self._turn(None)
        for _ in range(self.chance.choice([1, 2, 4])):
            self._something_happens()
            await self._turn(self._words())
        self.model.left = None
        self.world.job = self._job(4_000)
        finish = await self.world.go_on("Say hello.")
        assert (finish.state, finish.reason) == ("done", "end_turn"), (self.seed, finish)
        self._check()
        return self.met

    async def _turn(self, words: str | None) -> None:
        world, chance = self.world, self.chance
        limit = chance.choice([4_000, 4_000, 4_000, 300, 120, 40])
        world.job = self._job(limit)
        self.model.left = chance.randint(1, 120) if chance.random() < 0.35 else None
        self.model.stop = world.stop
        finish = await (world.run() if words is None else world.go_on(words))
        assert finish.state in ("done", "cancelled"), (self.seed, finish)
        self.met[f"{finish.state} {finish.reason}"] += 1
        view = world.log.view()
        state = read_server_calls(view)
        self.met["turns that end while a call waits"] += bool(state.open)
        self.met["calls that are late"] += len(state.late)
        self.ends.append(len(world.log.entries))

    def _something_happens(self) -> None:
        chance, log = self.chance, self.world.log
        view = log.view()
        working = build_working_view(view, situation(view, view.tokens), self.policy)
        match chance.choice(["fork", "drop", "compact", "exclude", "restore", "restore", ""]):
            case "fork":
                end = chance.choice(self.ends)
                self.met["forks"] += end < len(log.entries)
                del log.entries[end:]
                self.ends = [one for one in self.ends if one <= end]
            case "drop":
                self._record("drop", lambda: drop_turns_by_hand(working))
            case "compact":
                self._record("compact", lambda: compact_by_hand(working))
            case "exclude":
                seqs = frozenset(chance.sample([m.seq for m in view.messages], k=1))
                self._record("exclude", lambda: exclude_targets(working, seqs))
            case "restore":
                messages = [entry for entry in log.entries if isinstance(entry, Message)]
                some = chance.sample(messages, k=min(2, len(messages)))
                some.sort(key=lambda one: one.seq)
                self._record("restore", lambda: build_restore(view, *some))

    def _record(self, name: str, make: Callable[[], Transformation | None]) -> None:
        try:
            change = make()
        except RuleError:
            # Half of a round is not brought back: the person is told.
            self.met[f"{name} not possible"] += 1
            return
        if change is not None:
            self.met[name] += 1
            self.world.log.entries.append(change)

    def _check(self) -> None:
        """Every request was legal, by two opinions, and every bill is the emulator's."""
        calls = self.world.calls
        for body in calls.bodies:
            assert found_in(json.loads(body)["messages"]) == [], self.seed
        for entry in self.world.log.entries:
            if isinstance(entry, Transformation):
                late = entry.note == open_calls.NOTE
                self.met["late calls left out" if late else f"reduced by {entry.kind}"] += 1
        for ending in calls.endings.values():
            self._check_call(ending)

    def _check_call(self, ending: Ending) -> None:
        kinds = [json.loads(block)["type"] for block in ending.blocks]
        self.met["answers"] += 1
        self.met["pauses"] += ending.stop_reason == "pause_turn"
        waits = [kind for kind in kinds if kind.endswith(("tool_use", "_tool_result"))]
        if waits[:1] and waits[0].endswith("_tool_result"):
            self.met["answers that begin with a result"] += 1
        if ending.stop_reason == "tool_use" and kinds.count("server_tool_use") > sum(
            kind.endswith("_tool_result") for kind in kinds
        ):
            self.met["calls that wait beside ours"] += 1
        self.met["cut by their limit"] += ending.stop_reason == "max_tokens"
        self.met["stopped"] += ending.status == "stopped"
        bill = self.emulator.emulator.bills.get(ending.request_id)
        if bill is not None and bill.complete and ending.status == "complete":
            assert ending.usage is not None, self.seed
            assert PRICES.cost(ending.usage) == bill.cost_micros, self.seed
            self.met["bills"] += 1
