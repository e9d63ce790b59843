"""Assemble an answer from the events of its stream, validating each event.

Blocks are kept as wire text. A stream that breaks the protocol (two starts, an unknown index)
raises StreamError; unknown events and deltas are ignored, as the API requires of clients. A tool
call whose id was used before, or whose id or name the API would not accept back, gets another one
here, before anything is stored: rows, results and requests then agree on it. The call's row keeps
the id from the stream. An answer is complete once `message_stop` was received and a stop reason is
set.
"""

from __future__ import annotations

import re
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Any

from conversations.agent.answer_block import (
    AddedText,
    BlockInProgress,
    StreamError,
    demand_shallow,
    start_block,
)
from conversations.agent.tokenizer import find_family
from conversations.agent.usage import Usage, keep_start, merge_usage, read_usage
from conversations.context.errors import ContextError
from conversations.context.tokens.estimate import FRAME, estimate_block
from conversations.context.translation import gettext_noop, mark_recorded
from conversations.context.view import blocks, wire
from conversations.context.view.call_ids import find_free_id

__all__ = ["Answer", "StreamError", "ToolUse"]

_EVENTS = frozenset(
    {
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    }
)
#: Longest stop reason kept; the API's are single words.
_MOST_REASON = 40
_MOST_WORDS = 500
_REASON = mark_recorded(gettext_noop("Its reason: %(category)s."))
#: Longest id of a tool call, with room for a suffix, and longest name of a tool.
_MOST_ID, _MOST_NAME = 190, 128
#: Characters that the API does not accept in an id or a name.
_ODD = re.compile(r"[^a-zA-Z0-9_-]")


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A tool call requested by the model; `input` is its wire text.

    A call with a `flaw` must not run: its input was not a JSON object. `given_id` is the id in the
    stream if it differs from `id`.
    """

    id: str
    name: str
    input: str
    flaw: str = ""
    given_id: str = ""


@dataclass(slots=True)
class Answer:
    """An answer in progress: feed it events, read what has arrived at any time.

    `taken` are the ids of earlier tool calls: ids are unique over a whole request. `waiting` are
    ids of calls of the API's own tools without a result; this answer may begin with the results.
    """

    taken: AbstractSet[str] = frozenset()
    waiting: AbstractSet[str] = frozenset()
    stop_reason: str = ""
    #: Why the model declined, in the API's own words; "" when it gives no explanation.
    refusal: str = ""
    is_complete: bool = False
    usage: Usage | None = None
    _usage: dict[str, Any] = field(default_factory=dict)
    #: Usage as reported at the start of the answer.
    _began: dict[str, Any] = field(default_factory=dict)
    _blocks: list[BlockInProgress] = field(default_factory=list)
    _ids: set[str] = field(default_factory=set)
    #: Ids of calls in the stream by the ids they are stored under, and the reverse.
    _api_ids: dict[str, str] = field(default_factory=dict)
    _renamed: dict[str, str] = field(default_factory=dict)
    _is_started: bool = False

    def feed(self, event: dict[str, Any]) -> AddedText:
        """Take one event; raises StreamError when it breaks the protocol."""
        try:
            return self._feed(event)
        except StreamError:
            raise
        except (LookupError, TypeError, AttributeError, ValueError, ContextError) as error:
            raise StreamError(f"{str(event.get('type'))[:40]}: {str(error)[:200]}") from error

    def _feed(self, event: dict[str, Any]) -> AddedText:
        match event.get("type"):
            case _ if self.is_complete:
                pass
            case "message_start":
                if self._is_started:
                    raise StreamError("the message started twice")
                self._is_started = True
                return self._start(event["message"])
            case str(name) if name in _EVENTS:
                if not self._is_started:
                    raise StreamError(f"{name} came before the message started")
                return self._go_on(name, event)
        return AddedText()

    def _start(self, message: dict[str, Any]) -> AddedText:
        """Take the start of the message, which may hold blocks and the stop reason already."""
        self._end(message)
        self._report(message.get("usage"))
        shown = [
            self._start_block(at, block) for at, block in enumerate(message.get("content") or [])
        ]
        for block in self._blocks:
            block.is_closed = True
        return AddedText("".join(a.text for a in shown), "".join(a.thinking for a in shown))

    def _end(self, facts: dict[str, Any]) -> None:
        reason = facts.get("stop_reason") or self.stop_reason
        self.stop_reason = str(reason)[:_MOST_REASON]
        self.refusal = _read_refusal(facts.get("stop_details")) or self.refusal

    def _go_on(self, name: str, event: dict[str, Any]) -> AddedText:
        match name:
            case "content_block_start":
                return self._start_block(event["index"], event["content_block"])
            case "content_block_delta":
                return self._open(event["index"]).grow(event["delta"])
            case "content_block_stop":
                self._open(event["index"]).is_closed = True
            case "message_delta":
                self._end(event["delta"])
                self._report(event.get("usage"), event.get("context_management"))
            case _:
                self._stop()
        return AddedText()

    def _start_block(self, index: int, start: Any) -> AddedText:
        if index != len(self._blocks):
            raise StreamError(f"block {str(index)[:40]} started out of order")
        block = start_block(self._name_call(start))
        if block.is_call:
            self._ids.add(block.start["id"])
        self._blocks.append(block)
        shown = block.grown.replace("\0", "\ufffd")
        return AddedText(thinking=shown) if block.type == "thinking" else AddedText(text=shown)

    def _name_call(self, start: Any) -> Any:
        """Return the start of a block with an id and a name that the API accepts back."""
        kind = start.get("type") if isinstance(start, dict) else None
        if isinstance(kind, str) and blocks.is_server_result(kind):
            api_id = start.get("tool_use_id")
            return (
                start | {"tool_use_id": self._renamed[api_id]} if api_id in self._renamed else start
            )
        if kind != "tool_use" and kind not in blocks.SERVER_CALLS:
            return start
        api_id = str(start.get("id") or "")
        usable = _replace_odd(api_id)[:_MOST_ID] or "call"
        found = find_free_id(usable, self._ids | self.taken)
        if found != api_id:
            self._api_ids[found], self._renamed[api_id] = api_id, found
        name = _replace_odd(str(start.get("name") or ""))[:_MOST_NAME] or "unnamed"
        return start | {"id": found, "name": name}

    def _open(self, index: int) -> BlockInProgress:
        if not 0 <= index < len(self._blocks) or self._blocks[index].is_closed:
            raise StreamError(f"block {str(index)[:40]} is not open")
        return self._blocks[index]

    def _stop(self) -> None:
        if not self.stop_reason or not all(block.is_closed for block in self._blocks):
            raise StreamError("the message stopped before it was whole")
        self.is_complete = True

    def _report(self, usage: Any, edited: Any = None) -> None:
        if isinstance(usage, dict):
            self._usage = merge_usage(self._usage, usage)
            if edited is not None:
                self._usage["context_management"] = edited
            self._began = self._began or self._usage.copy()
            is_last = isinstance(usage.get("output_tokens"), int) and bool(self.stop_reason)
            is_final = is_last or (self.usage is not None and self.usage.is_final)
            figures = demand_shallow(self._usage)
            if any(block.is_served for block in self._blocks):
                figures = keep_start(self._began, figures)
            self.usage = replace(read_usage(figures), is_final=is_final)

    @property
    def text(self) -> str:
        return "".join(block.grown for block in self._blocks if block.type == "text")

    @property
    def thinking(self) -> str:
        return "".join(block.grown for block in self._blocks if block.type == "thinking")

    def tokens(self, model: str) -> int:
        """Count what has arrived so far with the model's tokenizer, thinking and calls included."""
        family = find_family(model)
        return sum(block.tokens(family) for block in self._blocks)

    def list_rounds(self, model: str) -> tuple[int, ...]:
        """Return for each further round of the API's own tools what was added to the request.

        In tokens: what the answer wrote, counted, and the results, estimated. A round follows each
        group of results and reads the whole request again.
        """
        family, added, found = find_family(model), 0, list[int]()
        for block, following in zip_longest(self._blocks, self._blocks[1:]):
            if not blocks.is_server_result(block.type):
                added += block.tokens(family) + FRAME
                continue
            added += estimate_block(block.start)
            if following is None or not blocks.is_server_result(following.type):
                found.append(added)
        return tuple(found)

    @property
    def has_thought(self) -> bool:
        """Whether the answer has thinking, of which only a summary is shown, or no block yet."""
        thoughts = ("thinking", "redacted_thinking")
        return not self._blocks or any(block.type in thoughts for block in self._blocks)

    @property
    def searches(self) -> int:
        """Count the web searches that have returned results so far."""
        return sum(
            block.type == "web_search_tool_result" and isinstance(block.start.get("content"), list)
            for block in self._blocks
        )

    @property
    def compaction(self) -> str:
        """The wire text of the compaction block if it is the only block; "" otherwise."""
        return self._blocks[0].compaction if len(self._blocks) == 1 else ""

    @property
    def wants_tools(self) -> bool:
        return self.is_complete and self.stop_reason == "tool_use"

    @property
    def is_cut_call(self) -> bool:
        """Return whether the output limit was reached while a tool call was being written."""
        return self.stop_reason == "max_tokens" and any(block.is_call for block in self._blocks)

    @property
    def blocks(self) -> tuple[str, ...]:
        """Wire texts of the blocks that may be sent back: complete blocks, and text even if cut.

        Tool calls are included only if the answer is complete and stopped to use tools. Calls of
        the API's own tools are included only with their results, or where the API pauses before it
        runs them; results only if their calls were waiting. Thinking is signed over what precedes
        it and must not be the last block. Whitespace alone is no answer.
        """
        texts: list[str] = []
        thoughts, is_whole, is_blank = 0, True, True
        for block, text in zip(self._blocks, self._write_blocks(), strict=True):
            is_thought = block.type in ("thinking", "redacted_thinking")
            written = text if is_whole or not is_thought else ""
            is_whole = is_whole and bool(written) and not _is_flawed(block)
            if written:
                texts.append(written)
                thoughts = thoughts + 1 if is_thought else 0
                is_blank = is_blank and (is_thought or block.is_blank)
        return () if is_blank else tuple(texts[: len(texts) - thoughts])

    def _write_blocks(self) -> list[str]:
        """Return the wire text of each block; "" for a block that must not be sent back."""
        keeps_tools = self.wants_tools
        texts = [block.text(keeps_tools=keeps_tools) for block in self._blocks]
        waiting, open_calls = set(self.waiting), dict[str, int]()
        for at, block in enumerate(self._blocks):
            if texts[at] and block.type in blocks.SERVER_CALLS:
                open_calls[block.start["id"]] = at
            elif texts[at] and blocks.is_server_result(block.type):
                call = block.start.get("tool_use_id")
                if call in open_calls:
                    del open_calls[call]
                elif call in waiting:
                    waiting.remove(call)
                else:
                    texts[at] = ""
        if not self._waits:
            for at in open_calls.values():
                texts[at] = ""
        return texts

    @property
    def _waits(self) -> bool:
        """Whether the API continues its own calls when the answer is sent back."""
        is_paused = self.is_complete and self.stop_reason == "pause_turn"
        return is_paused or bool(self.tool_uses)

    @property
    def has_results(self) -> bool:
        """Whether results of the API's own tools are among the blocks that may be sent back."""
        pairs = zip(self._blocks, self._write_blocks(), strict=True)
        return any(text and blocks.is_server_result(block.type) for block, text in pairs)

    @property
    def tool_uses(self) -> tuple[ToolUse, ...]:
        """The tool calls to answer; empty unless the answer stopped to use tools."""
        if not self.wants_tools:
            return ()
        return tuple(
            ToolUse(
                block.start["id"],
                block.start["name"],
                *block.input(),
                given_id=self._api_ids.get(block.start["id"], ""),
            )
            for block in self._blocks
            if block.type == "tool_use"
        )


def _replace_odd(name: str) -> str:
    return _ODD.sub("_", name)


def _read_refusal(details: Any) -> str:
    """Read why the model declined; each part of the details may be missing or null."""
    if not isinstance(details, dict):
        return ""
    words, category = details.get("explanation"), details.get("category")
    if not (isinstance(words, str) and words.strip()):
        words = _REASON % {"category": category} if isinstance(category, str) and category else ""
    return wire.clean(words).replace("\0", "\ufffd").strip()[:_MOST_WORDS]


def _is_flawed(block: BlockInProgress) -> bool:
    return block.is_call and bool(block.input()[1])
