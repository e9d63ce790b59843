"""Pages of a transcript that need not end with the newest turn: around a message, or after a turn.

A page requested by a turn or message that is not on the shown path follows the path of that turn,
and names it in `branch`. Such a page is of ended turns; a whole page of the shown path has the
running turn behind them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any
from urllib.parse import parse_qs

from conversations.log.tree import ALL_TURNS, filter_path_turns, find_path_end
from conversations.models import LIVE, Conversation, Message, Transformation
from conversations.transcript import transcript
from conversations.transcript.shapes import Bookmark, Transcript
from conversations.transcript.shapes import Turn as ShownTurn

#: Characters of a chain digest that tell one history from another.
MARK = 12


def read_requested_page(conversation: Conversation, values: Mapping[str, Any]) -> Transcript | None:
    """Return the page that the query of a URL names; None when it names none, or none is found."""
    until = _parse_number(values.get("until"))
    pages: dict[str, Callable[[Conversation, int], Transcript | None]] = {
        "before": transcript.read_transcript,
        "after": partial(read_page_after, until=until or ALL_TURNS),
        "m": read_page_around,
        "turn": read_page_of_turn,
    }
    for name, page in pages.items():
        number = _parse_number(values.get(name))
        if number is not None:
            return page(conversation, number)
    return None


def _parse_number(value: Any) -> int | None:
    text = str(value)
    return int(text) if text.isdecimal() and len(text) < 10 else None


def read_page_around(conversation: Conversation, seq: int) -> Transcript | None:
    """Return the turns around the turn of a message; None when there is no such message."""
    found = Message.objects.filter(conversation=conversation, seq=seq)
    number = found.values_list("turn__number", flat=True).first()
    return None if number is None else read_page_of_turn(conversation, number)


def read_page_of_turn(conversation: Conversation, number: int) -> Transcript | None:
    """Return the turns around a turn; None when there is no such turn."""
    if not conversation.turns.filter(number=number).exists():
        return None
    end = find_path_end(conversation, number)
    ended = filter_path_turns(conversation, end=end, start=number).exclude(state__in=LIVE)
    behind = ended.order_by("number").values_list("number", flat=True)
    upto = list(behind[: transcript.PAGE // 2])
    page = _list_ended(conversation, upto[-1] if upto else number)
    shown = page[: transcript.PAGE][::-1]
    return Transcript(
        tuple(transcript.build_turns(conversation, shown, None)),
        shown[0].number if len(page) > transcript.PAGE else None,
    )


def read_page_after(
    conversation: Conversation, after: int, *, until: int = ALL_TURNS
) -> Transcript:
    """Return the page of ended turns after a turn; running ones are not on it.

    `until` is the last turn that it may show: later ones came to the page by its socket.
    """
    end = find_path_end(conversation, after)
    ended = filter_path_turns(conversation, end=end, start=after + 1).exclude(state__in=LIVE)
    rows = ended.filter(number__lte=until).order_by("number").select_related("draft")
    page = list(rows[: transcript.PAGE + 1])
    shown = page[: transcript.PAGE]
    return Transcript(
        tuple(transcript.build_turns(conversation, shown, None)),
        None,
        later=shown[-1].number if len(page) > transcript.PAGE else None,
        newest=until,
    )


def complete_page(conversation: Conversation, page: Transcript) -> Transcript:
    """Complete a page of some ended turns: links to earlier and later ones, the running turn, and
    its path."""
    if not page.turns:
        return transcript.read_transcript(conversation)
    first, last = page.turns[0], page.turns[-1]
    end = find_path_end(conversation, last.number)
    tail = filter_path_turns(conversation, end=end, most=2).select_related("draft")
    rows = list(tail.order_by("-number"))
    newest = next((row.number for row in rows if row.state not in LIVE), 0)
    running = [row for row in rows if row.state in LIVE]
    return replace(
        page,
        turns=(*page.turns, *transcript.build_turns(conversation, running, None)),
        earlier=first.number if first.parent else None,
        later=last.number if last.number < newest else None,
        newest=newest,
        branch=None if end == conversation.leaf else last.number,
    )


def split_running(
    conversation: Conversation, page: Transcript
) -> tuple[Transcript, list[ShownTurn], Bookmark]:
    """Split ended from running turns; the bookmark is where the ended ones end.

    What follows the bookmark comes through the socket.
    """
    ended = [turn for turn in page.turns if not turn.is_live]
    running = [turn for turn in page.turns if turn.is_live]
    after = page.newest or (ended[-1].number if ended else 0)
    return replace(page, turns=tuple(ended)), running, read_bookmark(conversation, after)


def read_bookmark(conversation: Conversation, after: int) -> Bookmark:
    """Return the bookmark of an ended turn: its chain digest covers everything before it.

    Manual changes belong to their turn too, so a page that missed one has another bookmark.
    """
    if not after:
        return Bookmark()
    rows = [
        kind.objects.filter(conversation=conversation, turn__number=after)
        .order_by()
        .values_list("link", "chain")
        for kind in (Message, Transformation)
    ]
    last = rows[0].union(rows[1]).order_by("-link").first()
    return Bookmark(after, last[1][-MARK:] if last else "")


def parse_bookmark(query: bytes) -> Bookmark:
    """Parse the bookmark of a page; a malformed one is an empty one."""
    values = parse_qs(query.decode("ascii", "replace"))
    after, mark = (values.get(name, [""]) for name in ("after", "mark"))
    is_number = len(after) == 1 and after[0].isdecimal() and len(after[0]) < 10
    return Bookmark(int(after[0]), mark[0]) if is_number else Bookmark()


def is_same_history(conversation: Conversation, found: Bookmark) -> bool:
    """Return whether the page was made from the present history."""
    return not found.after or found == read_bookmark(conversation, found.after)


def _list_ended(conversation: Conversation, end: int) -> list[Any]:
    rows = filter_path_turns(conversation, end=end, most=transcript.PAGE + 2)
    page = rows.exclude(state__in=LIVE).order_by("-number").select_related("draft")
    return list(page[: transcript.PAGE + 1])
