"""Publishing: an event is shown on the pages of this process and sent to other processes.

Each process renders events from the database for its own pages; only streamed text is part of its
event. What a turn has rendered right after its commit goes with its events as HTML, and is shown as
it is on pages of its language: a worker renders for the pages of whoever asked it to run the turn.
A state event carries the step of the page version that its publisher committed
(`log/page_version.py`), streamed text its position; the hub decides by them (`live/hub.py`). A
process whose first page opens during an answer, or that missed a part of it, requests the answer so
far, and the process that runs the turn sends it.
"""

from __future__ import annotations

import logging
import time
from dataclasses import astuple
from typing import Any, NamedTuple

from conversations.agent.events import (
    EVENTS,
    BudgetMoved,
    ChatDeleted,
    Event,
    Shows,
    TextGrew,
    ToolMoved,
)
from conversations.db import run_db
from conversations.live import render
from conversations.live.hub import Frame, Position, Topic, hub
from conversations.live.relay import ALL, Message, group_of, relay
from conversations.log.page_version import VersionStep, take_step
from conversations.transcript.shapes import Live

logger = logging.getLogger("agentweb.relay")
#: Seconds after which the answer so far may be requested again.
ASK_SECONDS = 0.5
#: Characters of HTML that are sent to other processes; what is longer each renders itself.
MOST_SENT = 100_000


class Rendered(NamedTuple):
    """Events as HTML, and the language of the pages that it was rendered for."""

    html: str
    language: str


async def publish(
    conversation_id: int,
    *events: Event,
    step: VersionStep | None = None,
    at: Position | None = None,
    rendered: Rendered | None = None,
) -> None:
    """Show events as one step, here and in other processes; raises errors of rendering here.

    `step` None: the last step committed in this context, if it was not published yet. `rendered`:
    the events as they were rendered after that step.
    """
    if step is None and at is None:
        step = take_step(conversation_id)
    if relay.is_open:
        message = _write_message(conversation_id, events, step, at)
        if rendered is not None and len(rendered.html) <= MOST_SENT:
            message["rendered"] = [*rendered]
        relay.send(group_of(conversation_id), message)
    topic = hub.enter(conversation_id)
    try:
        await _show(topic, conversation_id, events, step, at, is_own=True, rendered=rendered)
    finally:
        hub.leave(conversation_id)


async def publish_text(topic: Topic, conversation_id: int, event: TextGrew, at: Position) -> None:
    """Show text of a turn of this process, which holds the topic, and send it to the others."""
    if relay.is_open:
        relay.send(group_of(conversation_id), _write_message(conversation_id, (event,), None, at))
    if topic.lock.locked():
        async with topic.lock:
            _show_text(topic, conversation_id, event, at)
    else:
        # Nothing is awaited meanwhile.
        _show_text(topic, conversation_id, event, at)


async def announce(conversation_id: int, *events: Event) -> None:
    """Publish a change made outside a running turn; errors are only logged."""
    try:
        await publish(conversation_id, *events)
    except Exception:
        logger.exception("%s was not shown", events)


async def publish_spending(owner_id: int, but: int | None = None) -> None:
    """Update the budgets shown in the person's open conversations, except `but`."""
    relay.send(ALL, {"type": "spent", "owner": owner_id, "but": but})
    await _show_spending(owner_id, but)


def follow_conversation(conversation_id: int, topic: Topic) -> None:
    """Subscribe to a conversation when its first page opens."""
    relay.join(group_of(conversation_id))
    if not topic.turns:
        _ask_for_answer(conversation_id)


def leave_conversation(conversation_id: int) -> None:
    relay.leave(group_of(conversation_id))


def _write_message(
    conversation_id: int, events: tuple[Event, ...], step: VersionStep | None, at: Position | None
) -> Message:
    # Not `asdict`: it would copy each field deeply, and the fields are flat.
    named = [
        [type(event).__name__, {name: getattr(event, name) for name in event.__slots__}]
        for event in events
    ]
    return {
        "type": "events",
        "conversation": conversation_id,
        "events": named,
        "step": step and [*step],
        "at": at and [*at],
    }


async def handle_message(message: Message) -> None:
    """Handle a message of another process; it is ignored when no page here needs it."""
    if "conversation" in message:
        topic = hub.find(int(message["conversation"]))
        if topic is None or not (topic.readers or message["type"] == "ask"):
            return
        hub.enter(int(message["conversation"]))
        try:
            await _handle_for(topic, message)
        finally:
            hub.leave(int(message["conversation"]))
    elif message["type"] == "spent":
        await _show_spending(int(message["owner"]), message["but"])
    else:
        logger.warning("a message of another version: %s", str(message["type"])[:40])


async def _handle_for(topic: Topic, message: Message) -> None:
    conversation_id = int(message["conversation"])
    match message:
        case {"type": "events", "events": named} if _are_known(named):
            events = tuple(EVENTS[name](**fields) for name, fields in named)
            step, at = (
                value and (value[0], value[1]) for value in (message["step"], message["at"])
            )
            found = message.get("rendered")
            rendered = found and Rendered(*found)
            await _show(topic, conversation_id, events, step, at, is_own=False, rendered=rendered)
        case {"type": "ask"}:
            _answer(topic, conversation_id)
        case {"type": "answer"}:
            await _handle_answer(topic, message)
        case _:
            # The sender runs another version of the code, whose event cannot be rendered here.
            topic.demand_snapshots()


async def _show(
    topic: Topic,
    conversation_id: int,
    events: tuple[Event, ...],
    step: VersionStep | None,
    at: Position | None,
    *,
    is_own: bool,
    rendered: Rendered | None = None,
) -> None:
    async with topic.lock:
        match events:
            case (TextGrew() as event,):
                _show_text(topic, conversation_id, event, at or (0, 0))
            case (ToolMoved() as event,):
                _show_progress(topic, event, at or (0, 0))
            case (ChatDeleted() as event,):
                topic.publish(Frame(render.render_own(event)))
            case _:
                await _show_state(topic, conversation_id, events, step, rendered, is_own=is_own)


def _show_text(topic: Topic, conversation_id: int, event: TextGrew, at: Position) -> None:
    match topic.follow_text(event, at):
        case "new":
            if topic.readers:
                # Not in a thread: joining strings takes less time than the switch.
                topic.publish(Frame(render.render_text(event)))
        case "gap" if time.monotonic() - topic.requested_at > ASK_SECONDS:
            # All text after one gap needs a single request for the answer so far.
            topic.requested_at = time.monotonic()
            _ask_for_answer(conversation_id)


def _show_progress(topic: Topic, event: ToolMoved, at: Position) -> None:
    if at[0] < topic.stored:
        return
    html = render.render_own(event)
    if event.words or event.percent is not None:
        topic.progress[event.tool_use_id] = html
    else:
        topic.progress.pop(event.tool_use_id, None)
    if topic.readers:
        topic.publish(Frame(html))


async def _show_state(
    topic: Topic,
    conversation_id: int,
    events: tuple[Event, ...],
    step: VersionStep | None,
    rendered: Rendered | None,
    *,
    is_own: bool,
) -> None:
    if topic.is_of_the_past(step):
        return
    topic.follow_states(events, step, is_own=is_own)
    is_base = any(topic.is_base(event, step) for event in events)
    if any(Shows.PAGE in event.shows for event in events):
        topic.publish(Frame(None, step))
    elif topic.is_wanted(step, is_base=is_base):
        try:
            if rendered is not None and rendered.language == topic.language:
                html = rendered.html
            else:
                html = await run_db(
                    render.render_events, conversation_id, *events, language=topic.language
                )
        except Exception:
            # Later frames build on the one that failed, so all pages take a snapshot.
            topic.demand_snapshots()
            raise
        topic.publish(Frame("\n".join((html, *topic.progress.values())), step, is_base))
    elif step is not None and topic.readers:
        topic.demand_version(step[1])


async def _show_spending(owner_id: int, but: int | None) -> None:
    for conversation_id in hub.list_open_by(owner_id):
        topic = hub.find(conversation_id)
        if conversation_id != but and topic is not None:
            try:
                await _show(topic, conversation_id, (BudgetMoved(),), None, None, is_own=False)
            except Exception:
                logger.exception("what was spent was not shown")


def _ask_for_answer(conversation_id: int) -> None:
    relay.send(ALL, {"type": "ask", "conversation": conversation_id})


def _are_known(named: list[tuple[str, dict[str, Any]]]) -> bool:
    return all(name in EVENTS for name, _ in named)


def _answer(topic: Topic, conversation_id: int) -> None:
    """Send the answer so far, if its turn runs in this process."""
    if topic.turns:
        live: Any = topic.live and [*astuple(topic.live)]
        message: Message = {
            "type": "answer",
            "conversation": conversation_id,
            "live": live,
            "at": [*topic.text],
            "progress": dict(topic.progress),
            "version": topic.version,
        }
        relay.send(group_of(conversation_id), message)


async def _handle_answer(topic: Topic, message: Message) -> None:
    if topic.turns:
        return
    async with topic.lock:
        live = Live(*message["live"]) if message["live"] else None
        base, count = message["at"]
        if topic.adopt_text(live, (base, count), message["progress"], message["version"]):
            topic.demand_snapshots()
        else:
            topic.demand_version(message["version"])
