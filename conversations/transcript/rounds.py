"""The rounds of a turn as people read them: each answer with its tools, and the running one.

Where another model continues because the first one declined is read from the recorded calls.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from django.db.models import QuerySet

from conversations import models
from conversations.context.steps.pinned import Pin
from conversations.context.view.stored_blocks import read_blocks
from conversations.models import ApiCall, ApiResult, Message, ToolCall
from conversations.rendering import render_markdown
from conversations.rendering.model_names import name_model
from conversations.transcript.server_tools import (
    build_server_cards,
    has_open_call,
    join_cited_text,
    map_results,
)
from conversations.transcript.shapes import Fallback, Live, Marker, Round, ToolCard
from conversations.transcript.tool_cards import build_tool_card
from conversations.transcript.turn_rows import has_declined, list_turn_results

#: Answers after a server tool call that are searched for its result.
_NEAR = 5
#: States of a turn in which a model call is running or about to start.
_ANSWERING = ("running", "backoff")


@dataclass(frozen=True, slots=True)
class Served:
    """Results of server tools by the ids of their calls; while `is_live` more may come."""

    results: dict[str, dict[str, Any]]
    is_live: bool = False


NOTHING_LATER = Served({})


def find_later(answer: Message, following: QuerySet[Message]) -> Served:
    """Return the results of an answer's server tool calls that came with later answers.

    Later answers are read only where a call has no result in its own.
    """
    if not has_open_call(read_blocks(answer.content)):
        return NOTHING_LATER
    after = following.filter(kind="answer", seq__gt=answer.seq).order_by("seq")
    found = (read_blocks(text) for text in after.values_list("content", flat=True)[:_NEAR])
    is_live = answer.turn is not None and answer.turn.is_live
    return Served(map_results(block for blocks in found for block in blocks), is_live)


def build_rounds(
    held: frozenset[Pin],
    messages: list[Message],
    markers: list[Marker],
    tools: dict[str, ToolCall],
    results: list[ApiResult],
    later: Served = NOTHING_LATER,
) -> list[Round]:
    """Return the rounds of a turn, each with the reductions before it."""
    answers = [m for m in messages if m.kind == "answer"]
    parts = [read_blocks(answer.content) for answer in answers]
    outputs = _map_outputs(messages)
    served = Served(
        map_results(block for blocks in parts for block in blocks) | later.results, later.is_live
    )
    paid = {result.answer_id: result for result in results}
    placed = _place_results(messages)
    rounds = [
        replace(
            _build_round(
                held, number, (answer, blocks), outputs, served, tools, paid.get(answer.pk)
            ),
            results_seq=placed.get(answer.seq),
        )
        for number, (answer, blocks) in enumerate(zip(answers, parts, strict=True), 1)
    ]
    for marker in markers:
        at = sum(answer.seq < marker.seq for answer in answers)
        if at == len(rounds):
            rounds.append(Round(at + 1))
        rounds[at] = replace(rounds[at], markers=(*rounds[at].markers, marker))
    return rounds


def _place_results(messages: list[Message]) -> dict[int, int]:
    """Return the log numbers of tool results by those of the answers that called."""
    found, answer = dict[int, int](), 0
    for message in messages:
        if message.kind == "answer":
            answer = message.seq
        elif message.kind == "results":
            found[answer] = message.seq
    return found


def _build_round(
    held: frozenset[Pin],
    number: int,
    parsed: tuple[Message, list[dict[str, Any]]],
    outputs: dict[str, dict[str, Any]],
    served: Served,
    tools: dict[str, ToolCall],
    result: ApiResult | None,
) -> Round:
    answer, blocks = parsed
    cards: list[ToolCard] = [
        build_tool_card(held, block, tools.get(block["id"]), outputs.get(block["id"]))
        for block in blocks
        if block["type"] == "tool_use"
    ]
    cited = join_cited_text(blocks)
    return Round(
        number=number,
        thinking="\n\n".join(b.get("thinking", "") for b in blocks if b["type"] == "thinking"),
        html=render_markdown(cited.text),
        tools=(*build_server_cards(blocks, served.results, is_live=served.is_live), *cards),
        tokens=result.output_tokens if result else None,
        call_id=result.call_id if result else None,
        seq=answer.seq,
        sources=cited.sources,
    )


def find_live(row: models.Turn, live: Live | None, rounds: list[Round]) -> Live | None:
    """Return the running answer: as the hub has it, else from the last checkpoint.

    Before the first checkpoint it is empty, so that streamed text has an element to go to.
    """
    if live is not None:
        return live
    draft, number = getattr(row, "draft", None), sum(one.seq is not None for one in rounds) + 1
    stored = {one.call_id for one in rounds if one.call_id}
    if draft is not None and draft.call_id not in stored and (draft.text or draft.thinking):
        return Live(row.number, number, draft.thinking, "", render_markdown(draft.text))
    return Live(row.number, number) if row.state in _ANSWERING else None


def add_live(rounds: list[Round], live: Live | None) -> list[Round]:
    """Put the running text into its round; a round that is already stored stays as it is."""
    if live is None or any(row.number == live.round and row.seq is not None for row in rounds):
        return rounds
    kept = [row for row in rounds if row.number != live.round]
    marks = next((row.markers for row in rounds if row.number == live.round), ())
    shown = Round(live.round, marks, live.thinking, live.closed, live.tail, is_live=True)
    return [*kept, shown]


def find_fallback(results: Iterable[ApiResult], *, is_live: bool) -> tuple[int, Fallback] | None:
    """Return the number of the round in which another model takes over, and both models.

    `results` are those of a turn's calls; the newest call of a live turn has none yet.
    """
    replies = sorted(
        (row for row in results if row.call.purpose == ApiCall.Purpose.REPLY),
        key=lambda row: row.call.number,
    )
    refused = next((row.call for row in replies if row.status == ApiResult.Status.REFUSED), None)
    if refused is None:
        return None
    model = next((row.call.model for row in replies if row.call.number > refused.number), "")
    if not model and is_live:
        model = _find_open_model(refused)
    number = 1 + sum(
        row.answer_id is not None and row.call.number <= refused.number for row in replies
    )
    found = Fallback(name_model(model), name_model(refused.model))
    return (number, found) if model else None


def mark_fallback(
    rounds: list[Round], results: Iterable[ApiResult], *, is_live: bool
) -> list[Round]:
    """Return the rounds of a turn, with the fallback set at the round where it begins."""
    match find_fallback(results, is_live=is_live):
        case int(number), found if len(rounds) < number:
            return [*rounds, Round(number, fallback=found)]
        case int(number), found:
            return [replace(row, fallback=found) if row.number == number else row for row in rounds]
        case _:
            return rounds


def read_fallback(turn: models.Turn, number: int) -> Fallback | None:
    """Return the fallback that begins at this round of the turn, if there is one."""
    if not has_declined(turn):
        return None
    results = list_turn_results([turn])[turn.pk]
    found = find_fallback(results, is_live=turn.is_live)
    return found[1] if found is not None and found[0] == number else None


def _find_open_model(refused: ApiCall) -> str:
    later = ApiCall.objects.filter(
        turn_id=refused.turn_id, purpose=ApiCall.Purpose.REPLY, number__gt=refused.number
    )
    return later.order_by("number").values_list("model", flat=True).first() or ""


def join_text(content: str) -> str:
    """Return the text of a message without its other blocks."""
    return join_cited_text(read_blocks(content)).text


def _map_outputs(messages: list[Message]) -> dict[str, dict[str, Any]]:
    """Map tool_use ids to their tool_result blocks."""
    return {
        block["tool_use_id"]: block
        for message in messages
        if message.kind == "results"
        for block in read_blocks(message.content)
        if block["type"] == "tool_result"
    }
