"""One tool call as a card: made of the block in the answer, the row of the call, and the result."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from conversations.context.steps.pinned import Pin
from conversations.context.view.blocks import list_result_images, read_result_text
from conversations.context.view.stored_blocks import read_content
from conversations.files.workspace.attached import FOLDER
from conversations.models import ToolCall
from conversations.toolbox.call_labels import find_subject
from conversations.transcript.shapes import Round, ToolCard, Turn

SHOWN = 4_000
BRIEF = 120
FILE_TOOLS = frozenset({"read_file", "write_file", "edit_file", "move_file"})


def build_tool_card(
    held: frozenset[Pin],
    use: dict[str, Any],
    call: ToolCall | None,
    result: dict[str, Any] | None,
) -> ToolCard:
    """Build the card of a call; imported calls have no row, running ones no result yet."""
    content: Any = result.get("content", "") if result else ""
    if not result and call is not None and call.output is not None:
        content = read_content(call.output.text) or ""
    output = read_result_text(content)
    is_error = bool(result and result.get("is_error"))
    state = "error" if is_error else "ok" if result else "planned"
    return ToolCard(
        id=use["id"],
        name=use["name"],
        brief=shorten_input(use["input"]),
        input=json.dumps(use["input"], ensure_ascii=False, indent=2),
        state=call.state if call is not None else state,
        output=output[:SHOWN],
        is_cut=len(output) > SHOWN or bool(list_result_images(content)),
        is_error=is_error or (call is not None and call.state in ("error", "denied", "unknown")),
        milliseconds=_milliseconds(call),
        is_pinned=use["id"] in held,
        running_since=call.started_at if call is not None and call.state == "started" else None,
        file=_find_file(use["name"], call),
        subject=find_subject(use["name"], use["input"]),
    )


def _find_file(name: str, call: ToolCall | None) -> str:
    """Return the path of the workspace file that a call read or wrote; "" when there is none."""
    details = call.details if call is not None and name in FILE_TOOLS else None
    path = details.get("path") if isinstance(details, dict) else None
    if not isinstance(path, str):
        return ""
    # What is attached to the chat is on no page of the workspace.
    return "" if path.removeprefix("./").startswith(f"{FOLDER}/") else path


def mark_excluded(turn: Turn, out: frozenset[str]) -> Turn:
    """Mark the tool cards of a turn whose results a person excluded."""
    if not any(card.id in out for row in turn.rounds for card in row.tools):
        return turn
    return replace(turn, rounds=tuple(mark_round_excluded(row, out) for row in turn.rounds))


def mark_round_excluded(row: Round, out: frozenset[str]) -> Round:
    tools = (replace(card, is_left_out=card.id in out) for card in row.tools)
    return replace(row, tools=tuple(tools))


def shorten_input(value: dict[str, Any]) -> str:
    """Return the main input on one line."""
    words = [str(item) for item in value.values() if isinstance(item, str | int | float)]
    line = " ".join(words[0].split()) if words else ""
    return line if len(line) <= BRIEF else line[: BRIEF - 1] + "…"


def _milliseconds(call: ToolCall | None) -> int | None:
    if call is None or call.started_at is None or call.ended_at is None:
        return None
    return round((call.ended_at - call.started_at).total_seconds() * 1000)
