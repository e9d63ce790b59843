"""Send one answer, complete or as a stream, and bill what was generated.

A stream that ends before its final figures costs its input and the output sent so far, whichever
side ended it. A client that disconnects pays for what was written before the disconnect was
noticed, which can be more than it has read. A client that the server cut off has read all of it, so
its ledger and this bill agree to the micro-dollar. Thinking of which less is shown than was thought
is billed as it is generated, at THINKING_SPEED. A stream that never began is free, whether it was
refused or abandoned: nothing was generated.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from agentweb.emulator import json_codec, message_metadata
from agentweb.emulator.asgi import Message, respond, start
from agentweb.emulator.billed_answer import BilledAnswer
from agentweb.emulator.cache import Plan
from agentweb.emulator.call import Call
from agentweb.emulator.faults.fault import Fault
from agentweb.emulator.faults.selection import choose_pace
from agentweb.emulator.faults.stream_faults import FOREVER, change_steps
from agentweb.emulator.http_exchange import HttpExchange
from agentweb.emulator.message_writer import MessageWriter
from agentweb.emulator.prepare_prompt import Prepared
from agentweb.emulator.stream_meter import StreamMeter
from agentweb.emulator.streaming import sse_events
from agentweb.emulator.streaming.open_loop import by_words, write_open_loop
from agentweb.emulator.streaming.steps import PING, Steps
from agentweb.emulator.streaming.writer import pause, watched, write_steps
from agentweb.emulator.tokens import count_text
from agentweb.emulator.usage import Usage

_PORTAL = (
    b"<!doctype html><html><body><h1>Welcome to the Wi-Fi</h1><p>Please log in.</p></body></html>"
)
#: Deltas that are sent as one frame when neither a pace nor a fault needs single ones.
_TOGETHER = 24
#: Tokens of thinking a second, shown or not.
THINKING_SPEED = 80
_ELSEWHERE = "http://127.0.0.1:9/v1/messages"


@dataclass(frozen=True, slots=True)
class Delivery:
    exchange: HttpExchange
    call: Call
    prepared: Prepared
    plan: Plan
    outcome: BilledAnswer
    fault: Fault | None
    nonce: bytes
    #: `diagnostics`, if they were requested.
    diagnostics: json_codec.Object

    async def deliver(self) -> None:
        if self.call.streaming:
            await self._stream()
        else:
            await self._answer_at_once()

    @property
    def _writer(self) -> MessageWriter:
        now = self.exchange.emulator.clock.now()
        return MessageWriter(
            self.call, self.prepared, self.outcome, self.nonce, self.diagnostics, now
        )

    def _bill(self, spent: tuple[Usage, ...], *, complete: bool, searches: int = 0) -> int:
        bill = self.exchange.emulator.bill(
            self.exchange.request_id,
            self._writer.model,
            spent,
            tariff=self.call.tariff,
            complete=complete,
            searches=searches,
        )
        return bill.cost_micros

    def _bill_full(self) -> int:
        outcome = self.outcome
        searches = message_metadata.searches(outcome.answer)
        return self._bill(outcome.billed(outcome.final), complete=True, searches=searches)

    async def _answer_at_once(self) -> None:
        self.exchange.emulator.cache.begin(self.plan)
        cost = self._bill_full()
        limits = self._limit_headers()
        await self.exchange.answer_json(
            self._writer.build_message(), *limits, ("agentweb-emulator-cost-micros", str(cost))
        )

    async def _stream(self) -> None:
        exchange = self.exchange
        headers = [
            *exchange.response_headers("text/event-stream; charset=utf-8"),
            *self._limit_headers(),
        ]
        exchange.note(200)
        pace = choose_pace(exchange, self.prepared.view)
        rate = exchange.emulator.rate
        steps = self._steps(together=1 if pace or rate or self.fault is not None else _TOGETHER)
        if self.fault is not None:
            steps = change_steps(steps, self.fault)
        meter, began = StreamMeter(), exchange.emulator.clock.now()

        async def send(message: Message) -> None:
            meter.take(message)
            if meter.is_closed:
                # The client can see the end as soon as it is sent, so the bill is made before.
                self._settle(meter, began)
            await exchange.send(message)

        exchange.emulator.open_streams += 1
        try:
            async with watched(exchange.receive) as disconnected:
                await start(exchange.send, 200, [*headers, ("cache-control", "no-cache")])
                if rate:
                    await write_open_loop(steps, send, disconnected, rate, Random(self.nonce))  # noqa: S311
                else:
                    await write_steps(steps, send, disconnected, pace)
        finally:
            self._settle(meter, began)
            exchange.emulator.open_streams -= 1

    def _settle(self, meter: StreamMeter, began: float) -> None:
        """Bill what was sent, unless the stream was complete or the bills were cleared."""
        books, request_id = self.exchange.emulator.bills, self.exchange.request_id
        if (self.fault is None and meter.is_closed) or request_id not in books:
            return
        carried = meter.read(self.call.model.tokenizer)
        if not carried.began:
            del books[request_id]
        elif carried.ended:
            self._bill_full()
        else:
            hidden = self._count_hidden(carried.blocks, self.exchange.emulator.clock.now() - began)
            output = min(carried.output + hidden, self.call.body["max_tokens"])
            spent = self.outcome.billed_until(carried.blocks, output)
            self._bill(spent, complete=False, searches=carried.searches)

    def _count_hidden(self, blocks: int, seconds: float) -> int:
        """Count the tokens of thinking that were generated in the begun blocks and never sent."""
        tokenizer = self.call.model.tokenizer
        begun = self.outcome.answer.pieces[:blocks]
        hidden = sum(
            piece.tokens - count_text(piece.text or "", tokenizer)
            for piece in begun
            if piece.block["type"] == "thinking"
        )
        return min(hidden, int(seconds * THINKING_SPEED))

    def _steps(self, *, together: int) -> Steps:
        outcome = self.outcome
        first, final = outcome.first, outcome.final
        self.exchange.emulator.cache.begin(self.plan)
        self._bill(outcome.billed(first), complete=False)
        yield sse_events.open_message(self._writer.begin(first))
        yield PING
        dice = Random(self.nonce)  # noqa: S311 - chunk sizes, not security
        cut = by_words if self.exchange.emulator.rate else sse_events.chunks
        for index, piece in enumerate(outcome.answer.pieces):
            yield from sse_events.piece_events(index, piece, dice, together, cut)
        self._bill_full()
        usage = final.delta() | message_metadata.server_uses(outcome.answer) | outcome.iterations()
        container, extra = self._writer.container(), self._writer.extra()
        yield from sse_events.close_message(outcome.answer, usage, container, extra)

    def _limit_headers(self) -> list[tuple[str, str]]:
        emulator = self.exchange.emulator
        now = emulator.clock.now()
        buckets = emulator.buckets(self.call.account.organization)
        buckets.take("input-tokens", self.plan.usage.prompt - self.plan.usage.read, now)
        buckets.take("output-tokens", self.outcome.answer.output_tokens, now)
        return buckets.headers(now)


async def deliver_odd(exchange: HttpExchange, fault: Fault) -> bool:
    """Answer in a way that the API never does; return False if the fault is not of this kind."""
    match fault.name:
        case "hang":
            async with watched(exchange.receive) as disconnected:
                await pause(disconnected, fault.seconds(FOREVER))
        case "slow":
            async with watched(exchange.receive) as disconnected:
                await pause(disconnected, fault.seconds(2))
            return disconnected.is_set()
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
