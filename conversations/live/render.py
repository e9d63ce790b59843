"""Events as HTML fragments, each by the template of its name; streamed text without one.

There is no request that names a reader. The reader is the owner, so the owner's preferences apply,
with the language they chose or that of the browser which connected last. Times are in UTC: they
stand in elements that each browser writes in its own zone, and no day is named otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard, cast

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.html import escape
from django.utils.translation import override

from conversations.accounts.people import read_owner_preferences
from conversations.accounts.preferences import Preferences
from conversations.agent.events import EVENTS, Event, RoundOpened, Shows, TextGrew
from conversations.budgets.notices import find_conversation_limits
from conversations.library.access import load_conversation
from conversations.log.contents import note_contents, read_contents
from conversations.log.settings_version import reading_settings
from conversations.reductions.model_choice import read_choice_of
from conversations.templatetags.agentweb import prose
from conversations.toolbox.egress import read_egress_rule
from conversations.toolbox.toolset import offers_search
from conversations.transcript import paging, queue, transcript
from conversations.transcript.meter import read_meter
from conversations.transcript.shapes import Bookmark, Live, Round, Turn

if TYPE_CHECKING:
    from conversations.models import Conversation

Context = dict[str, Any]


class Snapshot(NamedTuple):
    """The HTML after a bookmark, the page's new bookmark, and the version that it shows.

    `turn` is the running turn, 0: none; `has_text`: its text is not stored yet.
    """

    html: str
    bookmark: Bookmark
    version: int
    turn: int
    has_text: bool


def template_of(event: type[Event] | Event) -> str:
    """Return the template of an event class: events/round_changed.html for RoundChanged."""
    name = event.__name__ if isinstance(event, type) else type(event).__name__
    return f"conversations/events/{re.sub(r'(?<!^)(?=[A-Z])', '_', name).lower()}.html"


def _demand_templates() -> None:
    """Raise for an event without a template, unless it is streamed text or shows a snapshot."""
    for kind in EVENTS.values():
        path = Path(settings.BASE_DIR) / "templates" / template_of(kind)
        if kind.text != "grows" and Shows.PAGE not in kind.shows and not path.is_file():
            raise ImproperlyConfigured(f"{kind.__name__} has no template {template_of(kind)}")


_demand_templates()


@contextmanager
def _read_by_owner(conversation: Conversation, language: str) -> Iterator[Preferences]:
    found = read_owner_preferences(conversation)
    chosen = found.language if found.language in dict(settings.LANGUAGES) else language
    # An event of a request is rendered in that request, whose browser is one of several readers'.
    with override(chosen or settings.LANGUAGE_CODE), timezone.override(None):
        yield found


@reading_settings()
def render_events(
    conversation_id: int,
    *events: Event,
    language: str = "",
    conversation: Conversation | None = None,
) -> str:
    """Render events from the database.

    `conversation` is as the transaction of these events has just left it, its contents noted.
    """
    if conversation is None:
        conversation = load_conversation(conversation_id)
        note_contents(conversation)
    found, empty = list[str](), set[tuple[int, int]]()
    with _read_by_owner(conversation, language) as preferences:
        for event in events:
            if _is_plain(event, conversation) and (event.turn, event.round) in empty:
                # The turn that was rendered with it shows the round as it opens.
                continue
            context = _read_context(conversation, event, preferences)
            found.append(render_to_string(template_of(event), context))
            empty |= _list_empty_rounds(context.get("turn"))
    return "\n".join(found)


def _list_empty_rounds(turn: object) -> set[tuple[int, int]]:
    """Return the turn's number with that of its running round, if that shows nothing yet."""
    if not isinstance(turn, Turn):
        return set()
    empty = [one.number for one in turn.rounds if one == Round(one.number, is_live=True)]
    return {(turn.number, number) for number in empty}


def _is_plain(event: Event, conversation: Conversation) -> TypeGuard[RoundOpened]:
    """Return whether it opens a round that has neither markers nor another model."""
    is_plain = isinstance(event, RoundOpened) and event.is_plain
    return is_plain and not read_contents(conversation).changes


def _read_context(conversation: Conversation, event: Event, preferences: Preferences) -> Context:
    """Read the parts of the page that an event shows."""
    shows, named = event.shows, cast("Any", event)
    context: Context = {"event": event, "conversation": conversation, "preferences": preferences}
    if shows & {Shows.PROMPT, Shows.STATUS, Shows.TURN}:
        is_begun = Shows.PROMPT not in shows
        turn = transcript.read_turn(conversation, named.turn, is_begun=is_begun)
        context["turn"] = turn
        if Shows.TURN not in shows:
            # An older turn may be rendered again while another runs, so its own state decides.
            context["live_turn"] = turn.number if turn.is_live else 0
    if shows & {Shows.OPEN_ROUND, Shows.ROUND}:
        is_open = Shows.OPEN_ROUND in shows
        if _is_plain(event, conversation):
            found = Round(named.round)
        else:
            found = transcript.read_round(conversation, named.turn, named.round)
        if is_open:
            # It may have markers already. Its text is streamed, even if it is stored by now.
            found = Round(named.round, found.markers, is_live=True, fallback=found.fallback)
        context |= {"turn": {"number": named.turn}, "round": found}
    if Shows.QUEUE in shows:
        context["queue"] = queue.read_queue(conversation)
    if Shows.MODEL in shows:
        context["choice"] = read_choice_of(conversation)
    if Shows.EGRESS in shows:
        context["egress"] = read_egress_rule(conversation.owner_id, conversation)
    if Shows.BUDGETS in shows:
        if "live_turn" not in context:
            context["live_turn"] = read_contents(conversation).live_turn
        has_next = not context["live_turn"]
        has_meter = Shows.METER in shows
        context |= _read_figures(conversation, preferences, has_meter=has_meter, has_next=has_next)
    return context


def _read_figures(
    conversation: Conversation,
    preferences: Preferences,
    *,
    has_meter: bool = True,
    has_next: bool = False,
) -> Context:
    """Read the meter, and the budget notices, which depend on the size of the context."""
    find = partial(
        find_conversation_limits,
        conversation,
        searches=offers_search,
        put_away=preferences.put_away,
    )
    if not has_meter:
        return {"limits": find()}
    meter = read_meter(conversation, has_next=has_next)
    return {"meter": meter, "limits": find(tokens=lambda: meter.sent_tokens)}


def render_own(event: Event) -> str:
    """Render an event that carries everything it shows; no query."""
    return render_to_string(template_of(event), {"event": event})


def render_text(event: TextGrew) -> str:
    """Render streamed text; by hand, because at this rate a template would dominate the cost."""
    at = f"#turn-{event.turn:d}-r{event.round:d}"
    parts = [f'<div hx-swap-oob="innerHTML:{at}-tail">{prose(event.tail)}</div>']
    if event.closed:
        parts.insert(0, f'<div hx-swap-oob="beforeend:{at}-done">{prose(event.closed)}</div>')
    if event.thinking:
        words = escape(event.thinking)
        parts.append(f'<div hx-swap-oob="beforeend:{at}-thinking">{words}</div>')
    return "\n".join(parts)


@reading_settings()
def render_snapshot(
    conversation_id: int, bookmark: Bookmark, live: Live | None, language: str = ""
) -> Snapshot:
    """Render the shown path after a bookmark, the running answer included.

    A bookmark far back, on another path or in another history (after a restore of the database)
    gives the newest page.
    """
    # Read the version first: a change during rendering is then shown twice rather than never.
    conversation = load_conversation(conversation_id)
    with _read_by_owner(conversation, language) as preferences:
        return _render_snapshot(conversation, bookmark, live, preferences)


def _render_snapshot(
    conversation: Conversation, bookmark: Bookmark, live: Live | None, preferences: Preferences
) -> Snapshot:
    turns, page = None, None
    if paging.is_same_history(conversation, bookmark):
        turns = transcript.list_turns_after(conversation, bookmark.after, live)
    if turns is None:
        page, turns, bookmark = paging.split_running(
            conversation, transcript.read_transcript(conversation, live=live)
        )
    context: Context = {
        "conversation": conversation,
        "preferences": preferences,
        "transcript": page,
        "bookmark": bookmark,
        "turns": turns,
        "queue": queue.read_queue(conversation),
        "choice": read_choice_of(conversation),
        "egress": read_egress_rule(conversation.owner_id, conversation),
        **_read_figures(
            conversation, preferences, has_next=not any(turn.is_live for turn in turns)
        ),
    }
    html = render_to_string("conversations/events/snapshot.html", context)
    running = next((turn for turn in turns if turn.is_live), None)
    number = running.number if running is not None else 0
    return Snapshot(html, bookmark, conversation.version, number, _has_text(running, live))


def _has_text(running: Turn | None, live: Live | None) -> bool:
    """Return whether the text of the running answer is not stored yet."""
    if running is None or live is None or running.number != live.turn:
        return False
    return any(one.is_live and one.number == live.round for one in running.rounds)
