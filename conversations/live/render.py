"""Events as fragments of HTML, by the template of the event's name, but for growing text.

No request says who reads; it is the owner, so their preferences count, and the language they chose
or that of the browser which looked last.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from django.conf import settings
from django.template.loader import render_to_string
from django.utils.html import escape
from django.utils.translation import override

from conversations.accounts.people import read_owner_preferences
from conversations.accounts.preferences import Preferences
from conversations.agent.events import (
    BudgetMoved,
    Event,
    MeterMoved,
    QueueChanged,
    RoundChanged,
    RoundOpened,
    ServerLeaves,
    TextGrew,
    TitleChanged,
    ToolMoved,
    TurnChanged,
    TurnClosed,
    TurnOpened,
)
from conversations.budgets.notices import find_conversation_limits
from conversations.library.access import find_live_turn, load_conversation
from conversations.templatetags.agentweb import prose
from conversations.transcript import paging, queue, transcript
from conversations.transcript.meter import read_meter
from conversations.transcript.shapes import Bookmark, Live, Round

if TYPE_CHECKING:
    from conversations.models import Conversation


def template_of(event: type[Event] | Event) -> str:
    """Name the template of an event class: RoundChanged is events/round_changed.html."""
    name = event.__name__ if isinstance(event, type) else type(event).__name__
    return f"conversations/events/{re.sub(r'(?<!^)(?=[A-Z])', '_', name).lower()}.html"


@contextmanager
def _read_by_owner(conversation: Conversation, language: str) -> Iterator[Preferences]:
    found = read_owner_preferences(conversation)
    chosen = found.language if found.language in dict(settings.LANGUAGES) else language
    with override(chosen or settings.LANGUAGE_CODE):
        yield found


def render(conversation_id: int, event: Event, language: str = "") -> str:
    """Render an event from the database."""
    conversation = load_conversation(conversation_id)
    with _read_by_owner(conversation, language) as preferences:
        return _render(conversation, event, preferences)


def _render(conversation: Conversation, event: Event, preferences: Preferences) -> str:
    context: dict[str, object] = {
        "event": event,
        "conversation": conversation,
        "preferences": preferences,
    }
    away = preferences.put_away
    match event:
        case TurnOpened() | TurnChanged() | TurnClosed():
            is_begun = not isinstance(event, TurnOpened)
            turn = transcript.read_turn(conversation, event.turn, is_begun=is_begun)
            context["turn"], context["queue"] = turn, queue.read_queue(conversation)
            # Not what the turn does: an older one is shown anew while the last one runs.
            is_closed = isinstance(event, TurnClosed)
            is_live = find_live_turn(conversation) is not None if is_closed else turn.is_live
            context |= _standing(conversation, away) | {"has_live": is_live}
        case RoundOpened() | RoundChanged():
            shown = transcript.read_round(conversation, event.turn, event.round)
            if isinstance(event, RoundOpened):
                # It may have markers already; its text comes live, also where it is stored by now.
                shown = Round(event.round, shown.markers, is_live=True)
            context |= {"turn": {"number": event.turn}, "round": shown}
        case MeterMoved():
            context |= _standing(conversation, away)
            context["has_live"] = find_live_turn(conversation) is not None
        case BudgetMoved():
            context["limits"] = find_conversation_limits(conversation, put_away=away)
            context["has_live"] = find_live_turn(conversation) is not None
        case QueueChanged():
            context["queue"] = queue.read_queue(conversation)
        case TextGrew() | ToolMoved() | TitleChanged() | ServerLeaves():
            pass
    return render_to_string(template_of(event), context)


def _standing(conversation: Conversation, away: str) -> dict[str, object]:
    """Give how full the context is and what is said of budgets, which goes by it."""
    meter = read_meter(conversation)
    limits = find_conversation_limits(conversation, tokens=lambda: meter.tokens, put_away=away)
    return {"meter": meter, "limits": limits}


def text(event: ToolMoved | ServerLeaves) -> str:
    """Render words of the event's own, which need no database."""
    return render_to_string(template_of(event), {"event": event})


def grown(event: TextGrew) -> str:
    """Put growing text together: so often that a template would cost more than all else."""
    at = f"#turn-{event.turn:d}-r{event.round:d}"
    parts = [f'<div hx-swap-oob="innerHTML:{at}-tail">{prose(event.tail)}</div>']
    if event.closed:
        parts.insert(0, f'<div hx-swap-oob="beforeend:{at}-done">{prose(event.closed)}</div>')
    if event.thinking:
        words = escape(event.thinking)
        parts.append(f'<div hx-swap-oob="beforeend:{at}-thinking">{words}</div>')
    return "\n".join(parts)


def snapshot(
    conversation_id: int, bookmark: Bookmark, live: Live | None, language: str = ""
) -> tuple[str, Bookmark]:
    """Render everything of the shown path behind a bookmark, the live answer included.

    For a page that ends with a turn of another path or of another history (a restored database has
    one), or far back, that is the newest page. Also give the bookmark of where the page then ends.
    """
    conversation = load_conversation(conversation_id)
    with _read_by_owner(conversation, language) as preferences:
        return _snapshot(conversation, bookmark, live, preferences)


def _snapshot(
    conversation: Conversation, bookmark: Bookmark, live: Live | None, preferences: Preferences
) -> tuple[str, Bookmark]:
    turns, page = None, None
    if paging.is_same_history(conversation, bookmark):
        turns = transcript.list_turns_after(conversation, bookmark.after, live)
    if turns is None:
        page, turns, bookmark = paging.split_running(
            conversation, transcript.read_transcript(conversation, live=live)
        )
    context: dict[str, object] = {
        "conversation": conversation,
        "preferences": preferences,
        "transcript": page,
        "bookmark": bookmark,
        "turns": turns,
        "queue": queue.read_queue(conversation),
        **_standing(conversation, preferences.put_away),
    }
    return render_to_string("conversations/events/snapshot.html", context), bookmark
