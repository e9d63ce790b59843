"""A conversation as people read it: turns, their rounds, tool cards and markers.

People always read the originals; what the model reads is the view. A page costs the same number of
queries however long the conversation is: turns, messages, transformations, tool calls, results,
pins.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from django.urls import reverse

from conversations import models
from conversations.conf import conf
from conversations.context import wire
from conversations.context.pinned import Pin
from conversations.context.recallable import message_id
from conversations.hub import Live
from conversations.models import ApiResult, Conversation, Message, ToolCall, Transformation
from conversations.queries.cards import tool_card
from conversations.queries.pins import pins
from conversations.queries.shapes import Keep, Marker, Round, ToolCard, Transcript, Turn
from conversations.queries.taken import can_restore, can_undo
from conversations.queries.words import chip
from conversations.rendering import plain, render

PAGE = 20
CAN_RETRY = ("failed", "interrupted", "cancelled")


def transcript(conversation: Conversation, before: int | None = None) -> Transcript:
    """Give a page of turns, the newest or those before a turn."""
    rows = conversation.turns.order_by("-number").select_related("draft")
    if before is not None:
        rows = rows.filter(number__lt=before)
    page = list(rows[: PAGE + 1])
    shown = page[:PAGE][::-1]
    earlier = shown[0].number if len(page) > PAGE else None
    return Transcript(tuple(turns_of(conversation, shown, None)), earlier)


def turns_after(conversation: Conversation, after: int, live: Live | None) -> list[Turn]:
    """Give the turns behind one, with the text of the running answer as the hub has it."""
    rows = conversation.turns.filter(number__gt=after).order_by("number").select_related("draft")
    return turns_of(conversation, list(rows[:200]), live)


def turn(conversation: Conversation, number: int) -> Turn:
    rows = conversation.turns.filter(number=number).select_related("draft")
    return turns_of(conversation, list(rows), None)[0]


def turns_of(conversation: Conversation, rows: list[models.Turn], live: Live | None) -> list[Turn]:
    messages = _grouped(Message.objects.filter(turn__in=rows).order_by("seq"))
    changes = _grouped(
        Transformation.objects.filter(turn__in=rows).defer("edits", "policy").order_by("seq")
    )
    tools = _grouped(ToolCall.objects.filter(turn__in=rows).select_related("output"))
    results = _by_turn(
        ApiResult.objects.filter(call__turn__in=rows).select_related("call").defer("usage")
    )
    held = pins(conversation)
    return [
        _turn(
            conversation,
            held,
            row,
            messages.get(row.pk, []),
            _markers(conversation, changes.get(row.pk, [])),
            {call.tool_use_id: call for call in tools.get(row.pk, [])},
            results.get(row.pk, []),
            live if live is not None and live.turn == row.number else None,
        )
        for row in rows
    ]


def _turn(
    conversation: Conversation,
    held: frozenset[Pin],
    row: models.Turn,
    messages: list[Message],
    markers: list[Marker],
    tools: dict[str, ToolCall],
    results: list[ApiResult],
    live: Live | None,
) -> Turn:
    prompt = next((m for m in messages if m.kind == "prompt"), None)
    text, images = _prompt(prompt)
    rounds = _rounds(held, messages, markers, tools, results)
    if row.is_live:
        rounds = _with_live(rounds, _live_of(row, live, len(rounds) + 1))
    return Turn(
        number=row.number,
        id=str(row.public_id),
        prompt_html=plain(text),
        images=images,
        rounds=tuple(rounds),
        state=row.state,
        is_live=row.is_live,
        chip=chip(row.state, row.finish_reason),
        error=row.error_text,
        attempt=row.attempt,
        max_attempts=conf.max_attempts,
        retry_at=row.retry_at,
        created_at=row.created_at,
        cost_micros=sum(result.cost_micros for result in results),
        source="\n\n".join(_text(m.content) for m in messages if m.kind == "answer").strip(),
        can_retry=row.state in CAN_RETRY,
        prompt_seq=prompt.seq if prompt else None,
        prompt_keep=_keep(prompt, held),
        answer_keep=_keep(next((m for m in messages[::-1] if m.kind == "answer"), None), held),
    )


def _keep(message: Message | None, held: frozenset[Pin]) -> Keep | None:
    return None if message is None else Keep(message_id(message.seq), message.seq in held)


def _rounds(
    held: frozenset[Pin],
    messages: list[Message],
    markers: list[Marker],
    tools: dict[str, ToolCall],
    results: list[ApiResult],
) -> list[Round]:
    answers = [m for m in messages if m.kind == "answer"]
    outputs = _outputs(messages)
    paid = {result.answer_id: result for result in results}
    rounds = [
        _round(held, number, answer, outputs, tools, paid.get(answer.pk))
        for number, answer in enumerate(answers, 1)
    ]
    for marker in markers:
        at = sum(answer.seq < marker.seq for answer in answers)
        if at == len(rounds):
            rounds.append(Round(at + 1))
        rounds[at] = replace(rounds[at], markers=(*rounds[at].markers, marker))
    return rounds


def _round(
    held: frozenset[Pin],
    number: int,
    answer: Message,
    outputs: dict[str, dict[str, Any]],
    tools: dict[str, ToolCall],
    result: ApiResult | None,
) -> Round:
    blocks = wire.decode(answer.content)
    cards: list[ToolCard] = [
        tool_card(held, block, tools.get(block["id"]), outputs.get(block["id"]))
        for block in blocks
        if block["type"] == "tool_use"
    ]
    return Round(
        number=number,
        thinking="\n\n".join(b.get("thinking", "") for b in blocks if b["type"] == "thinking"),
        html=render(_text(answer.content)),
        tools=tuple(cards),
        tokens=result.output_tokens if result else None,
        cost_micros=result.cost_micros if result else None,
        call_id=result.call_id if result else None,
        seq=answer.seq,
    )


def _live_of(row: models.Turn, live: Live | None, number: int) -> Live | None:
    """Give the running answer: as the hub has it, else as the last checkpoint has it."""
    if live is not None:
        return live
    draft = getattr(row, "draft", None)
    if draft is None or not (draft.text or draft.thinking):
        return None
    return Live(row.number, number, draft.thinking, "", render(draft.text))


def _with_live(rounds: list[Round], live: Live | None) -> list[Round]:
    """Put the text on its way into its round; a round already stored stays as it is."""
    if live is None or any(row.number == live.round and row.html for row in rounds):
        return rounds
    kept = [row for row in rounds if row.number != live.round]
    marks = next((row.markers for row in rounds if row.number == live.round), ())
    shown = Round(live.round, marks, live.thinking, live.closed, live.tail, is_live=True)
    return [*kept, shown]


def _markers(conversation: Conversation, rows: Iterable[Transformation]) -> list[Marker]:
    return [
        Marker(
            row.seq,
            row.kind,
            row.outcome,
            row.note,
            row.tokens_before,
            row.tokens_after,
            reverse("reduction", args=[conversation.public_id, row.seq]),
            can_restore=can_restore(row),
            can_undo=can_undo(conversation, row),
        )
        for row in rows
    ]


def _prompt(message: Message | None) -> tuple[str, tuple[str, ...]]:
    if message is None:
        return "", ()
    images = []
    for block in wire.decode(message.content):
        source = block.get("source") or {}
        if block["type"] == "image" and source.get("type") == "base64":
            # What was imported may lack either; nothing of it can be shown then.
            kind, data = source.get("media_type"), source.get("data")
            if isinstance(kind, str) and kind.startswith("image/") and isinstance(data, str):
                images.append(f"data:{kind};base64,{data}")
    return _text(message.content), tuple(images)


def _text(content: str) -> str:
    return "\n\n".join(b["text"] for b in wire.decode(content) if b["type"] == "text")


def _outputs(messages: list[Message]) -> dict[str, dict[str, Any]]:
    """Map tool_use ids to their tool_result blocks."""
    return {
        block["tool_use_id"]: block
        for message in messages
        if message.kind == "results"
        for block in wire.decode(message.content)
        if block["type"] == "tool_result"
    }


def _grouped(rows: Iterable[Any]) -> dict[int, list[Any]]:
    found: dict[int, list[Any]] = {}
    for row in rows:
        found.setdefault(row.turn_id, []).append(row)
    return found


def _by_turn(rows: Iterable[ApiResult]) -> dict[int, list[ApiResult]]:
    found: dict[int, list[ApiResult]] = {}
    for row in rows:
        found.setdefault(row.call.turn_id, []).append(row)
    return found
