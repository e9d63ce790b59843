"""Random calls through the API client and the services, and the faults of each."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field
from random import Random

from agentweb.emulator.clock import VirtualClock
from conversations.agent.answer import Answer
from conversations.agent.call import attempt_call
from conversations.agent.ports import NO_HEADERS, Head, Headers, ModelFailed, Piece, Ports, Sending
from conversations.agent.stop import Stopped, Switch
from conversations.claude.client import Claude, Deadlines
from conversations.context.tokens.estimate import estimate_text
from conversations.context.view import wire
from conversations.context.view.envelope import Envelope, build_envelope
from conversations.log.leases import Lease
from conversations.runtime.adapters import TurnCalls
from tests.agent.fakes import FakeDisplay, FakeLog, FakeTools
from tests.faults.talks import WORDS, Talk

#: Of both families of tokenizers, one with a more expensive tier.
MODELS = ("claude-sonnet-5-5", "claude-haiku-5-5", "claude-opus-5-5",
          "claude-sonnet-4-6", "claude-haiku-4-5")  # fmt: skip
#: No answer: the request was refused, nothing was sent, or not a valid answer.
NOTHING = ("overloaded", "api_error", "bad_request", "rate_limited", "close", "html200",
           "error_first", "no_start", "hang")  # fmt: skip
#: Of these: refused, so not billed.
REFUSED = ("overloaded", "api_error", "bad_request", "rate_limited", "error_first")
#: Unusual answers with their final usage.
WHOLE = ("refusal", "refusal_partial", "refusal_null", "max_tokens", "window", "empty", "nul",
         "end_before_stop", "duplicate_stop", "unknown_event", "unknown_block", "max_tokens_tool",
         "many_tools", "bad_json_tool", "redacted")  # fmt: skip
#: Answers that the server cut, or broke so that no client can read on.
CUT = ("error_after", "api_error_after", "cut_after", "reset_after", "end_after", "cut_bytes",
       "bad_sse", "no_delta")  # fmt: skip
#: Given up by the client in a silence of the server: both know what was sent.
GIVEN_UP = ("hang_after", "pings")
#: The client disconnected while the server was writing: more may be written than was read.
IN_FLIGHT = ("went", "duplicate_start", "index_skip", "duplicate_block_stop", "same_tool_ids")
SUMMARISE = "Summarize this conversation."


def fault(dice: Random, *, compacts: bool) -> str:
    """Choose a fault, or none."""
    chance = dice.random()
    if compacts and chance > 0.6:
        # The answer has no deltas to count.
        return dice.choice(("cut_after:0", "error_after:0", "end_after:0", "no_delta", "bad_sse"))
    if chance < 0.10:
        name = dice.choice(NOTHING)
    elif chance < 0.20:
        name = dice.choice(WHOLE)
    elif chance < 0.34:
        name = dice.choice((*CUT, *CUT, *GIVEN_UP))
    elif chance < 0.37:
        name = dice.choice(IN_FLIGHT)
    else:
        name = ""
    if name.endswith("_after") or name in ("pings", "went"):
        return f"{name}:{dice.choice((0, 0, 1, 3, 12, 40, 90))}"
    size = {"cut_bytes": dice.randrange(9_000), "rate_limited": 0, "many_tools": 3}.get(name)
    return name if size is None else f"{name}:{size}"


@dataclass
class ApiClient:
    """Makes calls as a turn does; `faults` has the fault of each."""

    lease: Lease
    url: str
    clock: VirtualClock
    dice: Random
    key: str = "sk-test"
    talks: list[Talk] = field(default_factory=list)
    faults: dict[int, str] = field(default_factory=dict)
    #: Calls that asked the API to compact.
    compactions: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.patient = self.claude(Deadlines(60, 60, 60))
        self.hasty = self.claude(Deadlines(0.1, 60, 60))
        self.impatient = self.claude(Deadlines(60, 0.7, 60))

    def claude(self, deadlines: Deadlines) -> Claude:
        now = self.clock.now
        return Claude(api_key=self.key, base_url=self.url, deadlines=deadlines, now=now)

    async def close(self) -> None:
        for claude in (self.patient, self.hasty, self.impatient):
            await claude.close()

    def talk(self) -> Talk:
        dice = self.dice
        if not self.talks:
            # One in the more expensive tier, one in the longer cache.
            self.talks.append(Talk("claude-haiku-5-5", "5m", WORDS * 5_400))
            self.talks.append(Talk("claude-sonnet-5-5", "1h", WORDS * 90))
        elif dice.random() < 0.08:
            large = 1 if dice.random() > 0.15 else dice.choice((60, 120))
            system = f"Number {dice.random()}. " + WORDS * dice.choice((1, 60, 90)) * large
            model = dice.choice(MODELS)
            if "haiku-4-5" in model:
                system = system[:300_000]
            self.talks.append(Talk(model, dice.choice(("5m", "5m", "1h")), system))
        return dice.choice(self.talks[-6:])

    async def summarise(self, talk: Talk) -> None:
        """Request a summary as the context engine does."""
        made = build_envelope(model=talk.model, max_tokens=1_000, system=SUMMARISE)
        said = "\n".join(str(message["content"]) for message in talk.messages[-6:])
        messages = wire.encode([{"role": "user", "content": said}])
        size = made.overhead + estimate_text(messages)
        ports = self.ports("", 1)
        sent = await ports.calls.open(Sending("summary", made, messages, size, None, 1))
        await attempt_call(ports, sent)

    async def compact(self, talk: Talk, chosen: str) -> None:
        """Have the API compact the conversation, and continue from its block."""
        found = await self.ask(talk.compacting(), talk, chosen, compacts=True)
        if found is not None and found.compaction:
            talk.compacted(wire.decode(found.compaction))

    async def call(self, talk: Talk, chosen: str) -> None:
        await self.ask(talk.envelope(self.dice.choice((40, 400, 4_000))), talk, chosen)

    async def ask(
        self, made: Envelope, talk: Talk, chosen: str, *, compacts: bool = False
    ) -> Answer | None:
        """Make a call; retry a few times where the agent loop would."""
        messages = wire.encode(talk.messages)
        size = made.overhead + estimate_text(messages)
        for number in range(1, 4):
            ports = self.ports(chosen, number)
            sending = Sending("summary", made, messages, size, None, number)
            sent = await ports.calls.open(sending)
            self.faults[sent.call] = chosen if number == 1 else ""
            if compacts:
                self.compactions.add(sent.call)
            try:
                return (await attempt_call(ports, sent))[0]
            except Stopped:
                return None
            except ModelFailed as failure:
                if not failure.may_retry:
                    return None
        return None

    def ports(self, chosen: str, number: int) -> Ports:
        name, _, count = chosen.partition(":") if number == 1 else ("", "", "")
        claude = {"hang": self.hasty, "pings": self.impatient}.get(name, self.patient)
        calls, switch = TurnCalls(self.lease, claude), Switch()
        stops = name in ("hang_after", "went")
        return Ports(
            log=FakeLog(),
            calls=calls,
            model=Stopping(calls, switch, int(count)) if stops else calls,
            tools=FakeTools(),
            display=FakeDisplay(),
            switch=switch,
            pause=asyncio.sleep,
            chance=self.dice.random,
            now=self.clock.now,
            turn=1,
        )


@dataclass
class Stopping:
    """A Model port whose person stops an answer after a number of deltas."""

    calls: TurnCalls
    switch: Switch
    left: int

    async def stream(
        self, body: str, headers: Headers = NO_HEADERS
    ) -> AsyncGenerator[Head | Piece, None]:
        async with aclosing(self.calls.stream(body, headers)) as stream:
            async for item in stream:
                yield item
                if isinstance(item, Piece):
                    kinds = [event["type"] for event in item.events]
                    self.left -= kinds.count("content_block_delta")
                    if self.left <= 0:
                        asyncio.get_running_loop().call_soon(self.switch.request, "user")
