"""The rows of turns that every frame of a turn reads: messages, and the results of calls."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import connection

from conversations.log.whole_rows import read_rows, shape_of
from conversations.models import ApiCall, ApiResult, Message, Turn


def list_turn_messages(rows: Sequence[Turn], *, only_prompts: bool) -> list[Message]:
    """Return the messages of turns in their order."""
    if not rows:
        return []
    shape, prompts = shape_of(Message), " AND kind = 'prompt'" if only_prompts else ""
    statement = f"""
        SELECT {shape.columns()} FROM conversations_message
        WHERE turn_id IN ({_write_places(rows)}){prompts} ORDER BY seq"""  # noqa: S608 - our words
    return read_rows(shape, statement, [row.pk for row in rows])


def list_turn_results(rows: Sequence[Turn]) -> dict[int, list[ApiResult]]:
    """Return the results of the calls of each turn, with the calls and without reported usage.

    The title is not part of the answer whose cost is shown.
    """
    results, calls = shape_of(ApiResult, "usage"), shape_of(ApiCall)
    found: dict[int, list[ApiResult]] = {}
    if not rows:
        return found
    statement = f"""
        SELECT {results.columns("r")}, {calls.columns("c")} FROM conversations_apiresult r
        JOIN conversations_apicall c ON c.id = r.call_id
        WHERE c.turn_id IN ({_write_places(rows)}) AND c.purpose <> 'title'"""  # noqa: S608
    with connection.cursor() as cursor:
        cursor.execute(statement, [row.pk for row in rows])
        for values in cursor.fetchall():
            one = results.read(values[: results.width])
            call = calls.read(values[results.width :])
            # Not by assignment: the call would refer to its result, too.
            ApiResult.call.field.set_cached_value(one, call)
            found.setdefault(call.turn_id, []).append(one)
    return found


def _write_places(rows: Sequence[Turn]) -> str:
    return ", ".join(["%s"] * len(rows))
