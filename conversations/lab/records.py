"""Read recorded conversations: JSON lines of Messages API format, plain or gzipped.

A line is parsed strictly and its messages keep their positions, because facts and usage refer to
them by index. Only what does not change the meaning is normalised: a plain text becomes a block,
blank texts and cache breakpoints are left out. A record that the API would refuse is refused here,
with its line, so that a violation found later is the engine's own.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from conversations.context.errors import ContextError
from conversations.context.view import rules, wire
from conversations.context.view.block_fields import keep_fields
from conversations.context.view.view import Kind, Message, View

_GZIP = b"\x1f\x8b"


class RecordError(Exception):
    """A file or a line of it cannot be used; `where` is its location, the text says why."""

    code = "record"

    def __init__(self, where: str, problem: str) -> None:
        super().__init__(f"{where}: {problem}")
        self.where, self.problem = where, problem


class _BadLineError(Exception):
    pass


@dataclass(frozen=True, slots=True)
class Fact:
    """A text seen in message `first_seen` and needed for the answer at index `used_at`.

    `is_sole`: no message between the two repeats it.
    """

    text: str
    first_seen: int
    used_at: int
    is_sole: bool


@dataclass(frozen=True, slots=True)
class Reading:
    """Tokens of the request that produced the answer at index `at`, as the API counted them.

    `cached` of them were read from the prompt cache.
    """

    at: int
    context: int
    cached: int = 0


@dataclass(frozen=True, slots=True)
class Record:
    """A conversation to replay; `times` are seconds since 1970 for each message, or empty."""

    id: str
    system: str
    tools: tuple[dict[str, Any], ...]
    messages: tuple[Message, ...]
    facts: tuple[Fact, ...] = ()
    readings: tuple[Reading, ...] = ()
    times: tuple[float, ...] = ()


def list_calls(messages: tuple[Message, ...]) -> tuple[int, ...]:
    """Return the indexes of answers that a call produced; an answer after another continues it."""
    return tuple(
        at
        for at, message in enumerate(messages)
        if message.kind == "answer" and (at == 0 or messages[at - 1].kind != "answer")
    )


def read_records(path: Path) -> Iterator[Record | RecordError]:
    """Yield the record of each line, or its error; blank lines are skipped."""
    number = 0
    try:
        for number, line in enumerate(_lines(path), 1):
            if line.strip():
                yield _read_line(f"{path}:{number}", line)
    except (OSError, EOFError, zlib.error) as error:
        yield RecordError(f"{path}:{number + 1}", f"cannot be read: {error}")


def _lines(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        is_packed = file.peek(2)[:2] == _GZIP
        yield from gzip.GzipFile(fileobj=file) if is_packed else file


def _read_line(where: str, line: bytes) -> Record | RecordError:
    try:
        return read_record(wire.decode(line.decode()))
    except UnicodeDecodeError:
        return RecordError(where, "is not UTF-8")
    except (_BadLineError, ContextError) as error:
        return RecordError(where, str(error))


def read_record(value: object) -> Record:
    """Build a record from decoded JSON; raises _BadLineError, or ContextError."""
    if not isinstance(value, dict):
        raise _BadLineError("is not a JSON object")
    name = value.get("id")
    if not isinstance(name, str) or not name.strip():
        raise _BadLineError('"id" must be a text')
    rows = _read_list(value, "messages")
    messages = tuple(_read_message(at, item) for at, item in enumerate(rows))
    _demand_legal(messages)
    tools = _read_list(value, "tools", optional=True)
    if not all(isinstance(tool, dict) for tool in tools):
        raise _BadLineError('"tools" must be a list of objects')
    return Record(
        wire.clean(name.strip()),
        _read_system(value.get("system")),
        tuple(tools),
        messages,
        tuple(_read_facts(_read_list(value, "facts", optional=True), messages)),
        tuple(_read_readings(_read_list(value, "recorded_usage", optional=True))),
        _read_times(rows),
    )


def _read_list(value: dict[str, Any], name: str, *, optional: bool = False) -> list[Any]:
    found = value.get(name)
    if found is None and optional:
        return []
    if not isinstance(found, list) or not (found or optional):
        raise _BadLineError(f'"{name}" must be a list' + ("" if optional else " with messages"))
    return found


def _read_system(value: object) -> str:
    match value:
        case None:
            return ""
        case str():
            return wire.clean(value)
        case list() if all(isinstance(block, dict) for block in value):
            return wire.clean("\n\n".join(str(block.get("text", "")) for block in value))
        case _:
            raise _BadLineError('"system" must be a text, a list of text blocks or null')


def _read_message(at: int, value: object) -> Message:
    role = value.get("role") if isinstance(value, dict) else None
    if not isinstance(value, dict) or role not in ("user", "assistant"):
        raise _BadLineError(f'messages.{at}: "role" must be user or assistant')
    content = value.get("content")
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    if not isinstance(content, list) or not all(map(_is_block, content)):
        raise _BadLineError(f'messages.{at}: "content" must be a text or a list of blocks')
    blocks = list(_normalise_blocks(role, content))
    has_results = any(block["type"] == "tool_result" for block in blocks)
    kind: Kind = "answer" if role == "assistant" else "results" if has_results else "prompt"
    try:
        return Message.parse(at + 1, kind, wire.encode(blocks))
    except (TypeError, AttributeError) as error:
        raise _BadLineError(f"messages.{at}: holds a block that is none: {error}") from error


def _is_block(value: object) -> bool:
    return isinstance(value, dict) and isinstance(value.get("type"), str)


def _normalise_blocks(role: str, blocks: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for block in blocks:
        kept = {k: v for k, v in keep_fields(role, block).items() if k != "cache_control"}
        nested = kept.get("content")
        if isinstance(nested, list) and all(map(_is_block, nested)):
            kept["content"] = list(_normalise_blocks("user", nested))
        if kept["type"] != "text" or str(kept.get("text", "")).strip():
            yield kept


def _demand_legal(messages: tuple[Message, ...]) -> None:
    """Refuse messages that break a rule of the API before the last call."""
    called = list_calls(messages)
    if not called:
        raise _BadLineError("has no answer to replay")
    view = View()
    for message in messages[: called[-1]]:
        view = view.append(message)
    rules.check_rules(view)


def _read_facts(values: list[Any], messages: tuple[Message, ...]) -> Iterator[Fact]:
    for at, value in enumerate(values):
        match value:
            case {"fact": str(text), "first_seen_message": int(first), "used_at_message": int(at_)}:
                yield _check_fact(
                    at, Fact(text, first, at_, bool(value.get("sole_source"))), messages
                )
            case _:
                raise _BadLineError(f"facts.{at}: needs fact, first_seen_message, used_at_message")


def _check_fact(number: int, fact: Fact, messages: tuple[Message, ...]) -> Fact:
    is_placed = 0 <= fact.first_seen < fact.used_at < len(messages)
    if not is_placed or messages[fact.used_at].kind != "answer":
        raise _BadLineError(f"facts.{number}: must be used by an answer after it was first seen")
    return fact


def _read_readings(values: list[Any]) -> Iterator[Reading]:
    for at, value in enumerate(values):
        if not isinstance(value, dict) or not isinstance(value.get("message"), int):
            raise _BadLineError(f"recorded_usage.{at}: needs the index of its message")
        counts = [value.get(name) or 0 for name in ("input", "cache_read", "cache_write")]
        if not all(isinstance(count, int) for count in counts):
            raise _BadLineError(f"recorded_usage.{at}: counts must be whole numbers")
        yield Reading(value["message"], sum(counts), counts[1])


def _read_times(values: list[dict[str, Any]]) -> tuple[float, ...]:
    """Read the messages' timestamps; () unless every message has one, in ascending order."""
    found = []
    for value in values:
        stamp = value.get("timestamp")
        if not isinstance(stamp, str):
            return ()
        try:
            found.append(datetime.fromisoformat(stamp).timestamp())
        except ValueError:
            raise _BadLineError(f"{stamp!r} is no timestamp") from None
    return tuple(found) if found == sorted(found) else ()
