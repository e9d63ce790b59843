"""Telling the pages: an event is shown to the sockets of this process and passed on to the others.

Each process renders what its own sockets look at, from the database; only text that grows comes
with the event. A process whose sockets come to a conversation in the middle of an answer, or missed
a part of it, asks, and the process of the turn gives it the answer so far.
"""

from __future__ import annotations

import logging
import time
from dataclasses import astuple
from typing import Any, get_args

from conversations.agent import events
from conversations.agent.events import (
    BudgetMoved,
    Event,
    QueueChanged,
    TextGrew,
    TitleChanged,
    ToolMoved,
)
from conversations.db import run_db
from conversations.live import render
from conversations.live.hub import Place, Topic, hub
from conversations.live.relay import ALL, Message, group_of, relay
from conversations.transcript.marks import (
    WHOLE,
    Mark,
    after,
    is_of_turns,
    is_past,
    leads_to,
    marks,
    shows,
)
from conversations.transcript.shapes import Live

logger = logging.getLogger("agentweb.relay")
#: Seconds until an answer that did not come is asked for again.
ASK_SECONDS = 0.5
_NAMES = {kind.__name__ for kind in get_args(Event)}


async def tell(conversation_id: int, event: Event, place: Place | None = None) -> None:
    """Show an event here and everywhere; raises what rendering it here raises."""
    if relay.is_open:
        relay.send(group_of(conversation_id), _message(conversation_id, event, place))
    topic = hub.enter(conversation_id)
    try:
        await _show(topic, conversation_id, event, place)
    finally:
        hub.leave(conversation_id)


def _message(conversation_id: int, event: Event, place: Place | None) -> Message:
    # The fields of an event are flat: `asdict` would copy each of them.
    fields = {name: getattr(event, name) for name in event.__slots__}
    return {
        "type": "event",
        "conversation": conversation_id,
        "name": type(event).__name__,
        "event": fields,
        "place": place and [*place],
    }


async def announce(conversation_id: int, event: Event) -> None:
    """Tell of a change that no running turn made; one that cannot be shown does no harm."""
    try:
        await tell(conversation_id, event)
    except Exception:
        logger.exception("%s was not shown", event)


async def renew(conversation_id: int) -> None:
    """Tell every page that another path is shown."""
    relay.send(group_of(conversation_id), {"type": "renew", "conversation": conversation_id})
    await _renew(conversation_id)


async def tell_spending(owner_id: int, but: int | None = None) -> None:
    """Tell a person's other open conversations that their budgets moved."""
    relay.send(ALL, {"type": "spent", "owner": owner_id, "but": but})
    await _spent(owner_id, but)


def come_to(conversation_id: int, topic: Topic) -> None:
    """Hear of a conversation from now on; for its first socket."""
    relay.join(group_of(conversation_id))
    if not topic.turns:
        relay.send(ALL, {"type": "ask", "conversation": conversation_id})


def go_from(conversation_id: int) -> None:
    relay.leave(group_of(conversation_id))


async def hear(message: Message) -> None:
    """Do what another process says; what is about nobody here is nothing."""
    match message["type"]:
        case "event":
            await _hear_event(message)
        case "live":
            await _hear_live(message)
        case "ask":
            _answer(int(message["conversation"]))
        case "renew":
            await _renew(int(message["conversation"]))
        case "spent":
            await _spent(int(message["owner"]), message["but"])
        case _:
            logger.warning("a message of another version: %s", str(message["type"])[:40])


async def _hear_event(message: Message) -> None:
    conversation_id = int(message["conversation"])
    topic = hub.find(conversation_id)
    if topic is None or not topic.sockets:
        return
    if message["name"] not in _NAMES:
        # A newer process says what this one cannot show: its page is in step again by a snapshot.
        await _renew(conversation_id)
        return
    event: Event = getattr(events, message["name"])(**message["event"])
    place = message["place"]
    topic = hub.enter(conversation_id)
    try:
        took = await _show(topic, conversation_id, event, place and tuple(place))
    finally:
        hub.leave(conversation_id)
    # All that comes behind a gap is one: the answer so far is asked for once.
    if took == "gap" and time.monotonic() - topic.asked > ASK_SECONDS:
        topic.asked = time.monotonic()
        relay.send(ALL, {"type": "ask", "conversation": conversation_id})


async def _show(topic: Topic, conversation_id: int, event: Event, place: Place | None) -> str:
    async with topic.lock:
        took = topic.take(event, place, is_alone=not relay.is_open)
        if took in ("old", "gap"):
            return took
        if isinstance(event, ToolMoved):
            _keep_said(topic, event)
        if topic.sockets:
            try:
                frame = await _frame(topic, conversation_id, event)
            except Exception:
                # What follows would have no place on the pages: they are given all of it anew.
                topic.renew()
                raise
            if took == "missed":
                topic.renew()
            elif frame:
                topic.publish(frame)
    return took


def _keep_said(topic: Topic, event: ToolMoved) -> None:
    if event.words or event.percent is not None:
        topic.said[event.tool_use_id] = render.text(event)
    else:
        topic.said.pop(event.tool_use_id, None)


async def _frame(topic: Topic, conversation_id: int, event: Event) -> str:
    if isinstance(event, TextGrew):
        # No thread: it puts strings together, which takes less than going there.
        return render.grown(event)
    if isinstance(event, ToolMoved):
        return topic.said.get(event.tool_use_id, "")
    mark, frame = await run_db(_rendered, conversation_id, event, topic.language)
    if mark is not None and (is_past(event, mark) or not leads_to(mark, topic.shown, event)):
        # A turn, its end, or that another path is shown, was told and not heard here.
        topic.renew()
        return ""
    if mark is not None and (is_of_turns(mark, topic.shown) or shows(event, mark)):
        topic.shown = after(event, mark, topic.shown or mark)
        topic.past(mark)
    return "\n".join((frame, *topic.said.values()))


def _rendered(conversation_id: int, event: Event, language: str) -> tuple[Mark | None, str]:
    mark = None
    if isinstance(event, (*WHOLE, QueueChanged, TitleChanged)):
        # The mark first: what changes in between is shown once more, and never not at all.
        mark = marks([conversation_id]).get(conversation_id)
    return mark, render.render(conversation_id, event, language)


def _answer(conversation_id: int) -> None:
    """Tell the answer so far, if it is told from here."""
    topic = hub.find(conversation_id)
    if topic is None or not topic.turns or topic.place is None:
        return
    live: Any = topic.live and [*astuple(topic.live)]
    message = {"type": "live", "conversation": conversation_id, "place": [*topic.place]}
    relay.send(group_of(conversation_id), message | {"live": live, "said": dict(topic.said)})


async def _hear_live(message: Message) -> None:
    topic = hub.find(int(message["conversation"]))
    if topic is None or not topic.sockets or topic.turns:
        return
    async with topic.lock:
        live = Live(*message["live"]) if message["live"] else None
        if topic.adopt(tuple(message["place"]), live, message["said"]):
            # What was told until then may have been states, too: that there is a turn at all.
            topic.renew()


async def _renew(conversation_id: int) -> None:
    topic = hub.find(conversation_id)
    if topic is not None:
        async with topic.lock:
            topic.renew()


async def _spent(owner_id: int, but: int | None) -> None:
    for conversation_id in hub.watched_by(owner_id):
        topic = hub.find(conversation_id)
        if conversation_id != but and topic is not None:
            try:
                await _show(topic, conversation_id, BudgetMoved(), None)
            except Exception:
                logger.exception("what was spent was not shown")
