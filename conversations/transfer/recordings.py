"""A recorded conversation as values: one JSON line parsed, cleaned and made legal, or refused.

Content that the API would refuse is repaired where the meaning is clear: blocks are cleaned
(`record_blocks.py`), results are moved to the front of their message, and a tool call without a
result gets one that says so. Content that still breaks a rule is kept unchanged for people and
repaired before it is first sent (context/steps/repair.py). A record with nothing to show is
refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any

from django.utils.translation import gettext

from conversations.agent.answer_block import demand_shallow
from conversations.context.errors import ContextError
from conversations.context.view import attachment_refs, wire
from conversations.context.view.stored_blocks import read_blocks
from conversations.context.view.view import Kind, Message
from conversations.rendering.numbers import write_number
from conversations.transfer.record_blocks import clean_blocks, is_blank, is_text
from conversations.transfer.record_fields import (
    clean_effort,
    clean_text,
    clean_title,
    parse_time,
)

ENDS_HERE = "The recording ends here: this tool call has no result."
#: Longer ids are refused; the id is part of the title.
MAX_ID = 120


class RecordError(Exception):
    """A line is not a recorded conversation; the text says why."""

    code = "record"


class AlreadyImported(RecordError):
    """The user has it already; importing it again changes nothing."""

    code = "again"


@dataclass(frozen=True, slots=True)
class Entry:
    """One message: `content` is its blocks as wire text, `calls` the ids of open tool calls."""

    kind: Kind
    content: str
    tokens: int
    calls: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Exchange:
    """A prompt and what followed it."""

    entries: tuple[Entry, ...]

    @property
    def is_answered(self) -> bool:
        last = self.entries[-1]
        return last.kind == "answer" and not last.calls


@dataclass(frozen=True, slots=True)
class Recording:
    id: str
    instructions: str
    #: The first words of the first prompt.
    opening: str
    exchanges: tuple[Exchange, ...]
    #: Title and times, where the record has them.
    title: str = ""
    began: datetime | None = None
    ended: datetime | None = None
    #: The level of effort; "": the default.
    effort: str = ""
    #: The model as the record names it, which need not be one of this site; "": it names none.
    model: str = ""
    #: The name of the folder it was in; "": none.
    folder: str = ""


def read_record(line: bytes) -> Recording:
    """Parse one line; raises RecordError."""
    return parse_recording(read_object(line))


def read_object(line: bytes) -> dict[str, Any]:
    """Parse one JSON object; raises RecordError."""
    try:
        record = wire.decode(line.decode())
    except UnicodeDecodeError as error:
        raise RecordError(gettext("is not UTF-8")) from error
    except ContextError as error:
        words = gettext("not JSON: %(detail)s")
        raise RecordError(words % {"detail": error.__cause__}) from error
    if not isinstance(record, dict):
        raise RecordError(gettext("is not a JSON object"))
    return record


def parse_recording(record: dict[str, Any]) -> Recording:
    """Clean a parsed record and make it legal; raises RecordError."""
    try:
        return _parse(record)
    except ContextError as error:
        raise RecordError(gettext("cannot be read: %(detail)s") % {"detail": error}) from error
    except RecursionError as error:
        raise RecordError(gettext("is nested too deeply")) from error
    except (TypeError, AttributeError) as error:
        words = gettext("holds a block that is none: %(detail)s")
        raise RecordError(words % {"detail": error}) from error


def _parse(record: dict[str, Any]) -> Recording:
    name = record.get("id")
    name = clean_text(name).strip() if isinstance(name, str) else ""
    if not 0 < len(name) <= MAX_ID:
        words = gettext('"id" must be a text of 1 to %(most)s characters')
        raise RecordError(words % {"most": write_number(MAX_ID)})
    entries = list(_parse_entries(record.get("messages")))
    _demand_content(entries)
    return Recording(
        clean_text(name.strip()),
        _parse_system(record.get("system")),
        _cut_opening(entries[0]),
        _group_exchanges(entries),
        clean_title(record.get("title")),
        parse_time(record.get("created_at")),
        parse_time(record.get("updated_at")),
        clean_effort(record.get("effort")),
        clean_title(record.get("model")),
        clean_title(record.get("folder")),
    )


def _parse_system(value: object) -> str:
    match value:
        case None:
            return ""
        case str():
            return clean_text(value)
        case list():
            return clean_text("\n\n".join(str(b["text"]) for b in value if is_text(b)))
        case _:
            raise RecordError(gettext('"system" must be a text, a list of text blocks or null'))


def _cut_opening(entry: Entry) -> str:
    texts = (str(block["text"]) for block in wire.decode(entry.content) if is_text(block))
    return clean_text(" ".join(" ".join(texts).split()))[:80]


def _parse_entries(messages: object) -> Iterator[Entry]:
    """Yield the messages, grouped into runs of one role."""
    if not isinstance(messages, list) or not messages:
        raise RecordError(gettext('"messages" must be a list with at least one message'))
    numbered = [_parse_message(at, message) for at, message in enumerate(messages)]
    open_calls: list[str] = []
    for role, run in groupby((pair for pair in numbered if pair[1]), key=lambda pair: pair[0]):
        contents = [blocks for _, blocks in run]
        if role == "assistant":
            for blocks in contents:
                calls = [str(b.get("id")) for b in blocks if b["type"] == "tool_use"]
                open_calls += calls
                yield _build_entry("answer", blocks, calls)
        else:
            yield from _merge_user_run(contents, open_calls)
            open_calls = []
    if open_calls:
        yield from _merge_user_run([], open_calls)


def _merge_user_run(contents: list[list[dict[str, Any]]], open_calls: list[str]) -> Iterator[Entry]:
    """Yield one results message for all open calls, then the prompts."""
    results = [block for blocks in contents for block in blocks if block["type"] == "tool_result"]
    answered = {block.get("tool_use_id") for block in results}
    missing = [_build_missing_result(call) for call in open_calls if call not in answered]
    texts: list[dict[str, Any]] = []
    prompts = []
    for blocks in contents:
        rest = [block for block in blocks if block["type"] != "tool_result"]
        if len(rest) == len(blocks):
            prompts.append(rest)
        else:
            texts += rest
    if missing or results:
        yield _build_entry("results", [*missing, *results, *texts])
    for blocks in prompts:
        yield _build_entry("prompt", blocks)


def _build_missing_result(id: str) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": id, "content": ENDS_HERE, "is_error": True}


def _parse_message(at: int, message: object) -> tuple[str, list[dict[str, Any]]]:
    """Return role and cleaned blocks; () for a message that became empty."""
    role = message.get("role") if isinstance(message, dict) else None
    if not isinstance(message, dict) or role not in ("user", "assistant"):
        raise _refuse_message(at, gettext('"role" must be user or assistant'))
    content = message.get("content")
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    if not isinstance(content, list):
        raise _refuse_message(at, gettext('"content" must be a text or a list of blocks'))
    for block in content:
        if not isinstance(block, dict) or not isinstance(block.get("type"), str):
            raise _refuse_message(at, gettext("a content block is an object with a type"))
        if not all(isinstance(block.get(name, ""), str) for name in ("id", "tool_use_id")):
            raise _refuse_message(at, gettext("the id of a content block is a text"))
    cleaned = list(clean_blocks(str(role), content))
    return str(role), [] if all(map(is_blank, cleaned)) else cleaned


def _refuse_message(at: int, words: str) -> RecordError:
    return RecordError(f"messages.{at}: {words}")


def _build_entry(kind: Kind, blocks: list[dict[str, Any]], calls: Iterable[str] = ()) -> Entry:
    content = wire.join(wire.encode(block) for block in blocks)
    attachment_refs.demand_no_references(content)
    return Entry(kind, content, Message.parse(0, kind, content).tokens, tuple(calls))


def _demand_content(entries: list[Entry]) -> None:
    """Raise RecordError where there is nothing to show, and ContextError for too deep a value."""
    for entry in entries:
        demand_shallow(wire.decode(entry.content))
    if not any(read_blocks(entry.content) for entry in entries):
        raise RecordError(gettext("has no message with content"))


def _group_exchanges(entries: list[Entry]) -> tuple[Exchange, ...]:
    found: list[list[Entry]] = []
    for entry in entries:
        if entry.kind == "prompt" or not found:
            found.append([])
        found[-1].append(entry)
    return tuple(Exchange(tuple(group)) for group in found)
