"""Events as fragments of HTML, by the template of the event's name."""

from __future__ import annotations

import re
from dataclasses import replace

from django.template.loader import render_to_string

from conversations.events import (
    Event,
    MeterMoved,
    RoundChanged,
    RoundOpened,
    TextGrew,
    TitleChanged,
    TurnChanged,
    TurnClosed,
    TurnOpened,
)
from conversations.hub import Live
from conversations.queries import meters, transcripts
from conversations.queries.conversations import conversation_by_id
from conversations.queries.shapes import Round, Turn


def template_of(event: type[Event] | Event) -> str:
    """Name the template of an event class: RoundChanged is events/round_changed.html."""
    name = event.__name__ if isinstance(event, type) else type(event).__name__
    return f"conversations/events/{re.sub(r'(?<!^)(?=[A-Z])', '_', name).lower()}.html"


def render(conversation_id: int, event: Event) -> str:
    """Render an event from the database."""
    conversation = conversation_by_id(conversation_id)
    context: dict[str, object] = {"event": event, "conversation": conversation}
    match event:
        case TurnOpened() | TurnChanged() | TurnClosed():
            context["turn"] = transcripts.turn(conversation, event.turn)
        case RoundOpened() | RoundChanged():
            turn = transcripts.turn(conversation, event.turn)
            context |= {"turn": turn, "round": _round(turn, event)}
        case MeterMoved():
            context |= {
                "meter": meters.meter(conversation),
                "budget": meters.budget_pill(conversation.owner_id),
            }
        case TextGrew() | TitleChanged():
            pass
    return render_to_string(template_of(event), context)


def text(event: TextGrew) -> str:
    """Render growing text, which needs no database."""
    return render_to_string(template_of(event), {"event": event})


def snapshot(conversation_id: int, after: int, live: Live | None) -> str:
    """Render everything of the conversation behind turn `after`, the live answer included."""
    conversation = conversation_by_id(conversation_id)
    return render_to_string(
        "conversations/events/snapshot.html",
        {
            "conversation": conversation,
            "turns": transcripts.turns_after(conversation, after, live),
            "meter": meters.meter(conversation),
            "budget": meters.budget_pill(conversation.owner_id),
        },
    )


def _round(turn: Turn, event: RoundOpened | RoundChanged) -> Round:
    found = next((row for row in turn.rounds if row.number == event.round), Round(event.round))
    # A round that has just opened may have markers already, and gets its text live.
    return replace(found, is_live=isinstance(event, RoundOpened))
