"""A conversation as people read it: turns with their rounds, tool cards and markers.

People always read the originals; what the model reads is the view. A page costs the same number of
queries however long the conversation is: turns, messages, transformations, tool calls, results,
pins, versions, files. It follows one path of turns: the shown one, or that of a given turn.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from django.urls import reverse
from django.utils.translation import gettext as _

from conversations import models
from conversations.agent.finish import can_continue
from conversations.conf import conf
from conversations.context.steps.pinned import Pin
from conversations.context.steps.recall_list import message_id
from conversations.files.attachment_display import Attached, list_shown_files, map_named_files
from conversations.log.contents import read_contents
from conversations.log.tree import (
    filter_path_turns,
    find_version_position,
    list_versions,
    make_version_id,
)
from conversations.models import ApiResult, Conversation, Message, ToolCall, Transformation
from conversations.reductions.pins import list_pins
from conversations.reductions.removed_originals import (
    can_restore,
    can_undo,
    list_excluded,
    list_undone,
)
from conversations.reductions.shapes import PinState
from conversations.rendering import render_plain
from conversations.transcript.questions import list_open_questions
from conversations.transcript.rounds import (
    Served,
    add_live,
    build_rounds,
    find_later,
    find_live,
    join_text,
    mark_fallback,
    read_fallback,
)
from conversations.transcript.shapes import Live, Marker, Round, Transcript, Turn
from conversations.transcript.tool_cards import mark_excluded, mark_round_excluded
from conversations.transcript.turn_rows import (
    find_turn,
    list_answer_results,
    list_answer_seqs,
    list_answer_tools,
    list_messages_between,
    list_turn_messages,
    list_turn_results,
    list_turn_tools,
)
from conversations.transcript.words import describe_ending, describe_rate_limit, explain_ending

PAGE = 20
#: Turns after the end of a client's page beyond which the page is built again.
MOST_BEHIND = 200
#: Greater than every sequence number.
_END = 2**62
CAN_RETRY = ("failed", "interrupted", "cancelled")


def read_transcript(
    conversation: Conversation, before: int | None = None, live: Live | None = None
) -> Transcript:
    """Return a page of turns: the last of the shown path, or those before a turn on its path."""
    rows = filter_path_turns(conversation, end=before, most=PAGE + 2 if before else PAGE + 1)
    if before is not None:
        rows = rows.filter(number__lt=before)
    page = list(rows.order_by("-number").select_related("draft"))
    shown = page[:PAGE][::-1]
    earlier = shown[0].number if len(page) > PAGE else None
    return Transcript(tuple(build_turns(conversation, shown, live)), earlier)


def list_turns_after(
    conversation: Conversation, after: int, live: Live | None
) -> list[Turn] | None:
    """Return the turns after one, with the running answer's text as the hub has it.

    None when that turn is not on the shown path, or too far back.
    """
    rows = filter_path_turns(conversation, start=after, most=MOST_BEHIND + 1)
    found = list(rows.order_by("number").select_related("draft"))
    first = found[0] if found else None
    if after and (first is None or first.number != after):
        return None
    if first is not None and not after and first.parent:
        return None
    return build_turns(conversation, [row for row in found if row.number > after], live)


def read_turn(conversation: Conversation, number: int, *, is_begun: bool = True) -> Turn:
    """Return a turn; with `is_begun` false only its prompt (its rounds are published later)."""
    row = _find_row(conversation, number)
    if not (row.is_live and is_begun):
        # Before its rounds are published, and after its end, it has no draft to show.
        models.Turn.draft.related.set_cached_value(row, None)
    return build_turns(conversation, [row], None, is_begun=is_begun)[0]


def read_round(conversation: Conversation, turn: int, number: int) -> Round:
    """Return one round of a turn without the others, of which an agent's turn has many.

    A round without an answer yet has only the reductions before it.
    """
    noted, row = read_contents(conversation), _find_row(conversation, turn)
    answers = list_answer_seqs(row)
    before, own, behind = [0, *answers, *[_END] * (number + 1)][number - 1 : number + 2]
    since = Transformation.objects.filter(turn=row, seq__gt=before, seq__lt=own)
    changes = list(since.defer("edits", "policy").order_by("seq")) if noted.changes else []
    markers = _build_markers(conversation, changes)
    fallback = read_fallback(row, number)
    if own == _END:
        return Round(number, markers=tuple(markers), fallback=fallback)
    messages = list_messages_between(row, own, behind)
    answer = messages[0]
    Message.turn.field.set_cached_value(answer, row)
    found = build_rounds(
        list_pins(conversation),
        messages,
        markers,
        {call.tool_use_id: call for call in list_answer_tools(answer)},
        list_answer_results(answer),
        find_later(answer, Message.objects.filter(turn=row)),
    )
    shown = replace(found[0], number=number, fallback=fallback)
    return mark_round_excluded(shown, list_excluded(conversation)) if shown.tools else shown


def _find_row(conversation: Conversation, number: int) -> models.Turn:
    """Return the row of a turn, as it was noted if it was."""
    noted = read_contents(conversation).turn
    if noted is not None and noted.number == number:
        return noted
    return find_turn(conversation.pk, number)


def build_turns(
    conversation: Conversation,
    rows: list[models.Turn],
    live: Live | None,
    *,
    is_begun: bool = True,
) -> list[Turn]:
    messages = _group_by_turn(list_turn_messages(rows, only_prompts=not is_begun))
    changes: dict[int, list[Transformation]] = {}
    if is_begun and read_contents(conversation).changes:
        reduced = Transformation.objects.filter(turn__in=rows).defer("edits", "policy")
        changes = _group_by_turn(reduced.order_by("seq"))
    # Skip queries whose rows only a turn with answers, or with tools, can have.
    answers = (m.content for some in messages.values() for m in some if m.kind == "answer")
    tools: dict[int, list[ToolCall]] = {}
    if any('"tool_use"' in content for content in answers):
        tools = _group_by_turn(list_turn_tools(rows))
    results = list_turn_results(rows) if is_begun else {}
    held = list_pins(conversation)
    prompts = [m.content for some in messages.values() for m in some if m.kind == "prompt"]
    files = map_named_files(conversation, prompts)
    others = _list_versions(conversation, rows)
    shown = [
        _build_turn(
            conversation,
            held,
            files,
            row,
            others[row.parent],
            messages.get(row.pk, []),
            _build_markers(conversation, changes.get(row.pk, [])),
            {call.tool_use_id: call for call in tools.get(row.pk, [])},
            results.get(row.pk, []),
            live if live is not None and live.turn == row.number else None,
        )
        for row in rows
    ]
    return _add_tool_states(conversation, rows, shown)


def _list_versions(conversation: Conversation, rows: list[models.Turn]) -> dict[int, list[int]]:
    """Return the versions of these turns by their parents; no query for a last turn without any."""
    noted = read_contents(conversation)
    if noted.versions == 1 and [row.number for row in rows] == [noted.last]:
        return {rows[0].parent: [rows[0].number]}
    return list_versions(conversation, {row.parent for row in rows})


def _add_tool_states(
    conversation: Conversation, rows: list[models.Turn], shown: list[Turn]
) -> list[Turn]:
    """Mark tool cards that are excluded from requests, and add open questions to turns."""
    has_cards = any(one.tools for turn in shown for one in turn.rounds)
    out = list_excluded(conversation) if has_cards else frozenset[str]()
    questions = list_open_questions(rows)
    return [
        replace(mark_excluded(turn, out), questions=questions.get(row.pk, ()))
        for row, turn in zip(rows, shown, strict=True)
    ]


def _build_turn(
    conversation: Conversation,
    held: frozenset[Pin],
    files: dict[str, Attached],
    row: models.Turn,
    others: list[int],
    messages: list[Message],
    markers: list[Marker],
    tools: dict[str, ToolCall],
    results: list[ApiResult],
    live: Live | None,
) -> Turn:
    prompt = next((m for m in messages if m.kind == "prompt"), None)
    answers = [m for m in messages if m.kind == "answer"]
    text = join_text(prompt.content) if prompt else ""
    found = build_rounds(held, messages, markers, tools, results, Served({}, row.is_live))
    if row.is_live:
        found = add_live(found, find_live(row, live, found))
    found = mark_fallback(found, results, is_live=row.is_live)
    return Turn(
        number=row.number,
        parent=row.parent,
        versions=find_version_position(row, others),
        next_id=str(make_version_id(row.public_id, len(others))),
        is_continuation=row.continues_id is not None,
        can_continue=can_continue(row.state, row.finish_reason, has_answer=bool(answers)),
        id=str(row.public_id),
        prompt_html=render_plain(text) if text else "",
        files=list_shown_files(prompt.content, files) if prompt else (),
        rounds=tuple(found),
        **_describe_state(row, has_answer=bool(answers), is_empty=_is_empty(row, found)),
        cost_micros=sum(result.cost_micros for result in results),
        source="\n\n".join(join_text(m.content) for m in answers).strip(),
        prompt_seq=prompt.seq if prompt else None,
        prompt_keep=_pin_state(prompt, held),
        answer_keep=_pin_state(answers[-1] if answers else None, held),
    )


def _is_empty(row: models.Turn, rounds: list[Round]) -> bool:
    """Return whether a turn completed without a word at its end.

    A reduction after the end is a round of its own, without an answer. A response without a word is
    not stored, so behind tools it shows in their results: nothing was said to them.
    """
    last = next((one for one in reversed(rounds) if one.seq is not None), Round(0))
    is_whole = (row.state, row.finish_reason) == ("done", "end_turn")
    has_words = bool(last.html or last.tools or last.sources) and last.results_seq is None
    return is_whole and not has_words


def _describe_state(row: models.Turn, *, has_answer: bool, is_empty: bool) -> dict[str, Any]:
    """Return the state of a turn and what can be done about it, as fields of `Turn`."""
    return {
        "state": row.state,
        "is_live": row.is_live,
        "chip": describe_ending(row.state, row.finish_reason, row.error_code)
        or (_("The answer is empty") if is_empty else ""),
        "hint": explain_ending(row.state, row.finish_reason, has_answer=has_answer)
        or (
            _("The model ended without a word. Try again, or ask in other words.")
            if is_empty
            else ""
        ),
        "is_too_long": (row.state, row.finish_reason) == ("failed", "context"),
        "can_retry": row.state in CAN_RETRY or is_empty,
        "error": row.error_text,
        "attempt": row.attempt,
        "max_attempts": conf.max_attempts,
        "retry_at": row.retry_at,
        "waits_for": describe_rate_limit(row.waits_for),
        "created_at": row.created_at,
    }


def _pin_state(message: Message | None, held: frozenset[Pin]) -> PinState | None:
    return None if message is None else PinState(message_id(message.seq), message.seq in held)


def _build_markers(conversation: Conversation, rows: list[Transformation]) -> list[Marker]:
    back = list_undone(rows)
    return [
        Marker(
            row.seq,
            row.kind,
            row.outcome,
            row.note,
            row.tokens_before,
            row.tokens_after,
            reverse("reduction", args=[conversation.public_id, row.seq]),
            can_restore=can_restore(row) and row.seq not in back,
            can_undo=can_undo(conversation, row),
            setting=row.setting,
        )
        for row in rows
    ]


def _group_by_turn(rows: Iterable[Any]) -> dict[int, list[Any]]:
    found: dict[int, list[Any]] = {}
    for row in rows:
        found.setdefault(row.turn_id, []).append(row)
    return found
