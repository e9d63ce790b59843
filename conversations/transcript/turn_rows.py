"""The rows of turns that every frame of a turn, or of a round, reads: messages, calls, results."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from django.db import connection

from conversations.log.findings import read_leniently
from conversations.log.prepared_rows import read_rows, shape_of
from conversations.models import ApiCall, ApiResult, Blob, Message, ToolCall, Turn


def find_turn(conversation_id: int, number: int) -> Turn:
    """Return the row of a turn; raises Turn.DoesNotExist."""
    shape = shape_of(Turn)
    statement = f"""
        SELECT {shape.columns()} FROM conversations_turn
        WHERE conversation_id = %s AND number = %s"""  # noqa: S608 - our words
    found = read_rows(shape, statement, [conversation_id, number])
    if not found:
        raise Turn.DoesNotExist(f"conversation {conversation_id} has no turn {number}")
    return found[0]


def list_answer_seqs(turn: Turn) -> list[int]:
    """Return the numbers of a turn's answers in the log, in their order."""
    statement = """
        SELECT seq FROM conversations_message
        WHERE turn_id = %s AND kind = 'answer' ORDER BY seq"""
    with connection.cursor() as cursor:
        cursor.execute(statement, [turn.pk])
        return [seq for (seq,) in cursor.fetchall()]


def list_messages_between(turn: Turn, first: int, end: int) -> list[Message]:
    """Return the messages of a turn from one number in the log to before another."""
    shape = shape_of(Message)
    statement = f"""
        SELECT {shape.columns()} FROM conversations_message
        WHERE turn_id = %s AND seq >= %s AND seq < %s ORDER BY seq"""  # noqa: S608 - our words
    return read_leniently(partial(read_rows, shape, statement, [turn.pk, first, end]))


def list_turn_messages(rows: Sequence[Turn], *, only_prompts: bool) -> list[Message]:
    """Return the messages of turns in their order."""
    if not rows:
        return []
    shape, prompts = shape_of(Message), " AND kind = 'prompt'" if only_prompts else ""
    statement = f"""
        SELECT {shape.columns()} FROM conversations_message
        WHERE turn_id IN ({_write_places(rows)}){prompts} ORDER BY seq"""  # noqa: S608 - our words
    return read_leniently(partial(read_rows, shape, statement, [row.pk for row in rows]))


def list_turn_results(rows: Sequence[Turn]) -> dict[int, list[ApiResult]]:
    """Return the results of the calls of each turn, with the calls and without reported usage.

    The title is not part of the answer whose cost is shown.
    """
    found: dict[int, list[ApiResult]] = {}
    if rows:
        where = f"c.turn_id IN ({_write_places(rows)}) AND c.purpose <> 'title'"
        for one in _read_results(where, [row.pk for row in rows]):
            found.setdefault(one.call.turn_id, []).append(one)
    return found


def list_answer_results(answer: Message) -> list[ApiResult]:
    """Return the result of the call that an answer came from, in the same shape."""
    return _read_results("r.answer_id = %s", [answer.pk])


def _read_results(where: str, values: Sequence[int]) -> list[ApiResult]:
    results, calls = shape_of(ApiResult, "usage"), shape_of(ApiCall)
    statement = f"""
        SELECT {results.columns("r")}, {calls.columns("c")} FROM conversations_apiresult r
        JOIN conversations_apicall c ON c.id = r.call_id WHERE {where}"""  # noqa: S608 - our words
    found = []
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        for row in cursor.fetchall():
            one = results.read(row[: results.width])
            # Not by assignment: the call would refer to its result, too.
            ApiResult.call.field.set_cached_value(one, calls.read(row[results.width :]))
            found.append(one)
    return found


def list_turn_tools(rows: Sequence[Turn]) -> list[ToolCall]:
    """Return the tool calls of turns, each with its stored output."""
    return _read_tools(f"t.turn_id IN ({_write_places(rows)})", [row.pk for row in rows])


def list_answer_tools(answer: Message) -> list[ToolCall]:
    """Return the tool calls of an answer, each with its stored output."""
    return _read_tools("t.answer_id = %s", [answer.pk])


def _read_tools(where: str, values: Sequence[int]) -> list[ToolCall]:
    tools, outputs = shape_of(ToolCall), shape_of(Blob)
    statement = f"""
        SELECT {tools.columns("t")}, {outputs.columns("o")} FROM conversations_toolcall t
        LEFT JOIN conversations_blob o ON o.{Blob._meta.pk.column} = t.output_id
        WHERE {where} ORDER BY t.answer_id, t.position"""  # noqa: S608 - our words
    found = []
    for row in read_leniently(partial(_fetch_all, statement, values)):
        one = tools.read(row[: tools.width])
        if one.output_id is not None:
            ToolCall.output.field.set_cached_value(one, outputs.read(row[tools.width :]))
        found.append(one)
    return found


def _fetch_all(statement: str, values: Sequence[int]) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        found: list[tuple[Any, ...]] = cursor.fetchall()
    return found


def has_declined(turn: Turn) -> bool:
    """Return whether a model declined to answer in this turn."""
    statement = """
        SELECT EXISTS (SELECT 1 FROM conversations_apiresult r
          JOIN conversations_apicall c ON c.id = r.call_id
          WHERE c.turn_id = %s AND c.purpose = 'reply' AND r.status = 'refused')"""
    with connection.cursor() as cursor:
        cursor.execute(statement, [turn.pk])
        return bool(cursor.fetchone()[0])


def _write_places(rows: Sequence[Turn]) -> str:
    return ", ".join(["%s"] * len(rows))
