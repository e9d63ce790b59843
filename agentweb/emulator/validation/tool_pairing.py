"""Every tool call has one result, first in the next message, and every result has a call.

Consecutive messages of one role are one turn, as they are for the model; paths still name the
messages as sent.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from agentweb.emulator import json_codec
from agentweb.emulator.canonical_blocks import as_blocks
from agentweb.emulator.errors import Invalid
from agentweb.emulator.validation.server_results import SERVER_RESULTS


@dataclass(slots=True)
class _Turn:
    role: str
    #: Index of its last message.
    last: int
    blocks: list[tuple[int, int, json_codec.Object]] = field(default_factory=list)


def check_pairs(messages: list[json_codec.Object]) -> None:
    turns = _turns(messages)
    before: _Turn | None = None
    for turn in turns:
        _check_results(turn, before)
        _check_unique(turn)
        if before is not None:
            _check_answered(before, turn)
        before = turn
    if before is not None:
        _check_answered(before, None)
    _check_server_calls(turns)


def _turns(messages: list[json_codec.Object]) -> list[_Turn]:
    turns: list[_Turn] = []
    for index, message in enumerate(messages):
        if message["role"] == "system":
            continue
        if not turns or turns[-1].role != message["role"]:
            turns.append(_Turn(message["role"], index))
        turns[-1].last = index
        turns[-1].blocks += [
            (index, at, block) for at, block in enumerate(as_blocks(message["content"]))
        ]
    return turns


def _check_unique(turn: _Turn) -> None:
    """Check that ids are unique within a turn; a later turn may reuse one."""
    seen: set[str] = set()
    for index, at, block in turn.blocks:
        if block["type"] in {"tool_use", "server_tool_use"}:
            if block["id"] in seen:
                raise Invalid(f"messages.{index}.content.{at}: `tool_use` ids must be unique")
            seen.add(block["id"])


def _check_results(turn: _Turn, before: _Turn | None) -> None:
    called = _calls(before) if before is not None else []
    answered: set[str] = set()
    for index, at, block in turn.blocks:
        if block["type"] != "tool_result":
            continue
        call_id = block["tool_use_id"]
        path = f"messages.{index}.content.{at}"
        if call_id not in called:
            raise Invalid(
                f"{path}: unexpected `tool_use_id` found in `tool_result` blocks: {call_id}. "
                f"Each `tool_result` block "
                "must have a corresponding `tool_use` block in the previous message."
            )
        if call_id in answered:
            raise Invalid(
                f"{path}: each tool_use must have a single result. Found multiple "
                f"`tool_result` blocks with id: {call_id}"
            )
        answered.add(call_id)


def _check_answered(turn: _Turn, after: _Turn | None) -> None:
    calls = _calls(turn)
    first: set[str] = set()
    for _, _, block in after.blocks if after is not None else ():
        if block["type"] != "tool_result":
            break
        first.add(block["tool_use_id"])
    missing = [call_id for call_id in calls if call_id not in first]
    if missing:
        raise Invalid(
            f"messages.{turn.last}: `tool_use` ids were found without `tool_result` "
            f"blocks immediately after: "
            f"{', '.join(missing)}. Each `tool_use` block must have a corresponding "
            f"`tool_result` block in the "
            "next message."
        )


def _check_server_calls(turns: list[_Turn]) -> None:
    """Check that each server result follows its call, once, in the same turn or a later one.

    A call stays open if the turn paused or tools of the caller have to run first; the answer to
    their results begins with the result of the call.
    """
    open_calls: dict[str, tuple[int, json_codec.Object]] = {}
    for turn in turns:
        if turn.role != "assistant":
            continue
        carried = set(open_calls)
        _match_server_results(turn, open_calls)
        # Code that waits for a tool of the caller has no result yet.
        waiting = {(block.get("caller") or {}).get("tool_id") for block in _uses(turn)}
        late = (carried if _uses(turn) else set(open_calls)) - waiting
        if turn is not turns[-1]:
            _refuse_open([open_calls[call] for call in open_calls if call in late])


def _match_server_results(
    turn: _Turn, open_calls: dict[str, tuple[int, json_codec.Object]]
) -> None:
    for index, at, block in turn.blocks:
        kind = block["type"]
        if kind in {"server_tool_use", "mcp_tool_use"}:
            open_calls[block["id"]] = (index, block)
        elif kind in SERVER_RESULTS:
            if block["tool_use_id"] not in open_calls:
                raise Invalid(
                    f"messages.{index}.content.{at}: unexpected `tool_use_id` found in "
                    f"`{kind}` blocks: {block['tool_use_id']}. Each `{kind}` block must have a "
                    f"corresponding `server_tool_use` block before it."
                )
            del open_calls[block["tool_use_id"]]


def _refuse_open(late: list[tuple[int, json_codec.Object]]) -> None:
    for index, block in late:
        if block["type"] == "server_tool_use":
            name = block["name"].removesuffix("_tool_regex").removesuffix("_tool_bm25")
            raise Invalid(
                f"messages.{index}: `{block['name']}` tool use with id `{block['id']}` was found "
                f"without a corresponding "
                f"`{name}_tool_result` block"
            )


def _uses(turn: _Turn) -> list[json_codec.Object]:
    return [block for _, _, block in turn.blocks if block["type"] == "tool_use"]


def _calls(turn: _Turn) -> list[str]:
    return [block["id"] for block in _uses(turn)]
