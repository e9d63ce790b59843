"""Sends one answer, whole or as a stream, and bills what was announced.

An aborted stream is billed on the last figures that were put on the wire (`message_start`, then
`message_delta`): the client can know no others, so its ledger and this bill can agree to the
micro-dollar.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from agentweb.emulator import wire
from agentweb.emulator.asgi import respond, start
from agentweb.emulator.cache import Plan
from agentweb.emulator.call import Call
from agentweb.emulator.exchange import Exchange
from agentweb.emulator.faults.choose import choose_pace
from agentweb.emulator.faults.fault import Fault
from agentweb.emulator.faults.streams import FOREVER, change_steps
from agentweb.emulator.ids import make_id
from agentweb.emulator.outcome import Outcome
from agentweb.emulator.prepare import Prepared
from agentweb.emulator.streaming import frames
from agentweb.emulator.streaming.steps import PING, Steps
from agentweb.emulator.streaming.writer import pause, watched, write_steps
from agentweb.emulator.usage import Usage

_PORTAL = (
    b"<!doctype html><html><body><h1>Welcome to the Wi-Fi</h1><p>Please log in.</p></body></html>"
)
_ELSEWHERE = "http://127.0.0.1:9/v1/messages"


@dataclass(frozen=True, slots=True)
class Delivery:
    exchange: Exchange
    call: Call
    prepared: Prepared
    plan: Plan
    outcome: Outcome
    fault: Fault | None
    nonce: bytes

    async def deliver(self) -> None:
        if self.call.streaming:
            await self._stream()
        else:
            await self._whole()

    def _message(self, usage: Usage) -> wire.Object:
        message: wire.Object = {
            "id": make_id("msg", self.nonce),
            "type": "message",
            "role": "assistant",
            "model": self.call.model.id,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "stop_details": None,
            "usage": usage.start(),
        }
        if self.prepared.dropped:
            message["input_transformations"] = [drop.as_json() for drop in self.prepared.dropped]
        return message

    def _extra(self) -> wire.Object:
        if self.prepared.edits is None:
            return {}
        return {"context_management": {"applied_edits": self.prepared.edits}}

    def _bill(self, usage: Usage, *, complete: bool) -> int:
        bill = self.exchange.emulator.bill(
            self.exchange.request_id,
            self.call.model.id,
            self.outcome.billed(usage),
            us_only=self.call.us_only,
            complete=complete,
        )
        return bill.cost_micros

    async def _whole(self) -> None:
        answer, final = self.outcome.answer, self.outcome.final
        self.exchange.emulator.cache.begin(self.plan)
        cost = self._bill(final, complete=True)
        message = self._message(final) | {
            "content": [piece.block for piece in answer.pieces],
            "stop_reason": answer.stop_reason,
            "stop_sequence": answer.stop_sequence,
            "stop_details": answer.stop_details,
            "usage": final.start() | self.outcome.iterations(),
        }
        limits = self._limit_headers()
        await self.exchange.answer_json(
            message | self._extra(), *limits, ("agentweb-emulator-cost-micros", str(cost))
        )

    async def _stream(self) -> None:
        exchange = self.exchange
        headers = [
            *exchange.response_headers("text/event-stream; charset=utf-8"),
            *self._limit_headers(),
        ]
        exchange.note(200)
        steps = self._steps()
        if self.fault is not None:
            steps = change_steps(steps, self.fault)
        pace = choose_pace(exchange, self.prepared.view)
        async with watched(exchange.receive) as gone:
            await start(exchange.send, 200, [*headers, ("cache-control", "no-cache")])
            await write_steps(steps, exchange.send, gone, pace)

    def _steps(self) -> Steps:
        outcome = self.outcome
        first, final = outcome.first, outcome.final
        self.exchange.emulator.cache.begin(self.plan)
        self._bill(first, complete=False)
        yield frames.open_message(self._message(first))
        yield PING
        dice = Random(self.nonce)  # noqa: S311 - chunk sizes, nothing secret
        for index, piece in enumerate(outcome.answer.pieces):
            yield from frames.piece_frames(index, piece, dice)
        self._bill(final, complete=True)
        usage = final.delta() | outcome.iterations()
        yield from frames.close_message(outcome.answer, usage, self._extra())

    def _limit_headers(self) -> list[tuple[str, str]]:
        emulator = self.exchange.emulator
        now = emulator.clock.now()
        buckets = emulator.buckets(self.call.account.organization)
        buckets.take("input-tokens", self.plan.usage.prompt - self.plan.usage.read, now)
        buckets.take("output-tokens", self.outcome.answer.output_tokens, now)
        return buckets.headers(now)


async def deliver_odd(exchange: Exchange, fault: Fault) -> bool:
    """Answer in a way that is not the API's at all; False if the fault is none of these."""
    match fault.name:
        case "hang":
            async with watched(exchange.receive) as gone:
                await pause(gone, fault.seconds(FOREVER))
        case "slow":
            async with watched(exchange.receive) as gone:
                await pause(gone, fault.seconds(2))
            return False
        case "close":
            exchange.note(0)
        case "html200":
            exchange.note(200)
            await respond(exchange.send, 200, _PORTAL, [("content-type", "text/html")])
        case "redirect":
            exchange.note(307)
            await respond(exchange.send, 307, b"", [("location", fault.arg or _ELSEWHERE)])
        case _:
            return False
    return True
