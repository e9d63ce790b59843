"""Faults in the stream of an answer: errors, cuts, resets, silences, malformed events."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain

from agentweb.emulator import json_codec
from agentweb.emulator.faults.fault import Fault
from agentweb.emulator.streaming.steps import PING, STOP, End, Silence, SseEvent, Step, Steps, event

FOREVER = float("inf")
_Change = Callable[[Steps, Fault], Steps]

_ERROR = event(
    "error", {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
)
_API_ERROR = event(
    "error", {"type": "error", "error": {"type": "api_error", "message": "Internal server error"}}
)


def _after(count: int, steps: Steps, tail: Callable[[], Iterator[Step]]) -> Steps:
    """Yield the steps up to the given number of deltas, then the tail."""
    deltas = 0
    for step in steps:
        if deltas >= count and isinstance(step, SseEvent) and step.name != "message_start":
            break
        yield step
        deltas += isinstance(step, SseEvent) and step.name == "content_block_delta"
    yield from tail()


def _ending(default: int, *tail: Step) -> _Change:
    return lambda steps, fault: _after(fault.number(default), steps, lambda: iter(tail))


def _within(*tail: Step) -> _Change:
    """End inside the N-th block of a kind (default `text:1`), after its first delta."""

    def apply(steps: Steps, fault: Fault) -> Steps:
        kind, _, number = (fault.arg or "text").partition(":")
        left, is_inside = int(number or 1), False
        for step in steps:
            yield step
            if not isinstance(step, SseEvent):
                continue
            if step.name == "content_block_start":
                left -= f'"content_block":{{"type":"{kind}"'.encode() in step.data
                is_inside = is_inside or not left
            if is_inside and (step.name == "content_block_delta" or kind.endswith("_result")):
                yield from tail
                return

    return apply


def _send_all_in_start(steps: Steps, fault: Fault) -> Steps:
    """Put the complete message into its start event, as after programmatic tool calls.

    `whole_start:delta` repeats the stop reason and the usage in a `message_delta`.
    """
    events = [_read(step) for step in steps if isinstance(step, SseEvent) and step.name != "ping"]
    message = events[0]["message"]
    blocks: list[json_codec.Object] = []
    for body in events:
        match body["type"]:
            case "content_block_start":
                blocks.append({**body["content_block"]})
            case "content_block_delta":
                _grow(blocks[-1], body["delta"])
            case "message_delta":
                final = body
    for block in blocks:
        if isinstance(text := block.pop("partial_json", None), str):
            block["input"] = json_codec.decode((text or "{}").encode())
    message |= final["delta"] | {"content": blocks, "usage": message["usage"] | final["usage"]}
    yield event("message_start", events[0])
    if fault.arg == "delta":
        yield event("message_delta", final)
    yield STOP


def _grow(block: json_codec.Object, delta: json_codec.Object) -> None:
    match delta["type"]:
        case "citations_delta":
            block["citations"] = [*block["citations"], delta["citation"]]
        case "compaction_delta":
            block |= {name: delta[name] for name in ("content", "encrypted_content")}
        case kind:
            field = "partial_json" if kind == "input_json_delta" else kind.removesuffix("_delta")
            block[field] = block.get(field, "") + delta[field]


def _read(step: SseEvent) -> json_codec.Object:
    body: json_codec.Object = json_codec.decode(step.data.split(b"data: ", 1)[1])
    return body


def _pings_between(steps: Steps, fault: Fault) -> Steps:
    """Add a ping after every event, even inside blocks and before the message begins."""
    yield PING
    for step in steps:
        yield step
        if isinstance(step, SseEvent) and step.name != "message_stop":
            yield PING


def _around(name: str, change: Callable[[SseEvent], tuple[Step, ...]]) -> _Change:
    """Return a change that replaces each event of one name."""

    def apply(steps: Steps, fault: Fault) -> Steps:
        for step in steps:
            yield from change(step) if isinstance(step, SseEvent) and step.name == name else (step,)

    return apply


def _pings() -> Iterator[Step]:
    while True:
        yield PING
        yield Silence(0.05)


def _unknown_event(steps: Steps, fault: Fault) -> Steps:
    odd = event("content_block_aura", {"type": "content_block_aura", "colour": "blue"})
    return _around("content_block_stop", lambda original: (odd, original))(steps, fault)


def _unknown_delta(steps: Steps, fault: Fault) -> Steps:
    def with_odd(original: SseEvent) -> tuple[Step, ...]:
        index = _read(original)["index"]
        body = {
            "type": "content_block_delta",
            "index": index,
            "delta": {"type": "scent_delta", "scent": "rose"},
        }
        return (event("content_block_delta", body), original)

    return _around("content_block_stop", with_odd)(steps, fault)


def _index_skip(steps: Steps, fault: Fault) -> Steps:
    for step in steps:
        if isinstance(step, SseEvent) and step.name.startswith("content_block_"):
            yield SseEvent(step.name, step.data.replace(b'"index":', b'"index":1', 1), step.paced)
        else:
            yield step


def _cut_bytes(steps: Steps, fault: Fault) -> Steps:
    """Cut the connection at one byte offset of the body."""
    left = fault.number(0)
    for step in steps:
        if isinstance(step, SseEvent):
            if len(step.data) >= left:
                yield SseEvent(step.name, step.data[:left])
                break
            left -= len(step.data)
        yield step
    yield End("cut")


def _dribble(steps: Steps, fault: Fault) -> Steps:
    """Send one byte at a time."""
    gap = fault.seconds(1) / 1000
    for step in steps:
        if isinstance(step, SseEvent):
            for at in range(len(step.data)):
                yield SseEvent(step.name, step.data[at : at + 1])
                yield Silence(gap)
        else:
            yield step


_CHANGES: dict[str, _Change] = {
    "error_first": lambda steps, _: iter((_ERROR, End("clean"))),
    "error_after": _ending(3, _ERROR, End("clean")),
    "api_error_after": _ending(3, _API_ERROR, End("clean")),
    "end_after": _ending(3, End("clean")),
    "cut_after": _ending(3, End("cut")),
    "reset_after": _ending(3, End("reset")),
    "hang_after": _ending(3, Silence(FOREVER)),
    "error_in": _within(_ERROR, End("clean")),
    "end_in": _within(End("clean")),
    "cut_in": _within(End("cut")),
    "reset_in": _within(End("reset")),
    "pings": lambda steps, fault: _after(fault.number(0), steps, _pings),
    "pings_between": _pings_between,
    "whole_start": _send_all_in_start,
    "after_stop": lambda steps, _: chain(steps, (PING, Silence(FOREVER))),
    "unknown_event": _unknown_event,
    "unknown_delta": _unknown_delta,
    "duplicate_start": _around("message_start", lambda original: (original, original)),
    "duplicate_stop": _around("message_stop", lambda original: (original, original)),
    "duplicate_block_stop": _around("content_block_stop", lambda original: (original, original)),
    "no_start": _around("message_start", lambda _: ()),
    "no_delta": _around("message_delta", lambda _: ()),
    "end_before_stop": _around("message_stop", lambda _: (End("clean"),)),
    "index_skip": _index_skip,
    "bad_sse": _around(
        "message_delta",
        lambda _: (SseEvent("message_delta", b"event: message_delta\ndata: {oops\n\n"), STOP),
    ),
    "cut_bytes": _cut_bytes,
    "dribble": _dribble,
}
NAMES = frozenset(_CHANGES)


def change_steps(steps: Steps, fault: Fault) -> Steps:
    change = _CHANGES.get(fault.name)
    return change(steps, fault) if change else steps
