"""Dispatch requested work: to this process, or through the broker to a worker.

The work is already recorded in the database, so the next sweep finds whatever was lost on the way,
and no request waits for a broker that is down.
"""

from __future__ import annotations

import logging
import time
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TYPE_CHECKING

from asgiref.sync import async_to_sync

from conversations.agent.events import TurnClosed
from conversations.conf import conf
from conversations.db import run_db
from conversations.library.access import is_over
from conversations.live.hub import hub
from conversations.live.publish import announce
from conversations.live.relay import ALL, relay
from conversations.runtime.supervisor import supervisor

if TYPE_CHECKING:
    from conversations.models import Turn

logger = logging.getLogger("agentweb.turns")
#: One thread, so that tasks keep their order and a slow broker delays no request.
_post = ThreadPoolExecutor(1, thread_name_prefix="dispatch")
#: Seconds without a new attempt after the broker could not be reached.
PAUSE = 2.0
#: Seconds after which a worker discards a task: a sweep has found the work by then.
EXPIRES = 60
#: Header of a task: the language of the conversation's open pages here. It is no argument, because
#: a worker of an older version takes none but the id.
PAGES_LANGUAGE = "pages_language"


def wake_turn(turn: Turn) -> None:
    """Have a process start a waiting turn soon."""
    if conf.run_turns_in == "web":
        supervisor.wake(turn.pk)
    else:
        language = hub.find_language(turn.conversation_id)
        _send_task("conversations.run_turn", turn.pk, **{PAGES_LANGUAGE: language})


def start_proposal(proposal_id: int) -> None:
    """Have a process request the summary of a stored proposal from the model."""
    if conf.run_turns_in == "web":
        supervisor.propose(proposal_id)
    else:
        _send_task("conversations.propose", proposal_id)


def stop_turn(turn: Turn) -> None:
    """Signal a stop to the process that runs the turn; publish its end if none does."""
    async_to_sync(_stop_turn)(turn)


async def _stop_turn(turn: Turn) -> None:
    supervisor.stop(turn.pk)
    relay.send(ALL, {"type": "stop", "turn": turn.pk})
    if await run_db(is_over, turn.pk):
        await announce(turn.conversation_id, TurnClosed(turn.number))


def _send_task(name: str, key: int, **headers: str | None) -> None:
    # The context carries the log ids and the trace of the request.
    _post.submit(copy_context().run, _broker.send, name, key, headers)


class _Broker:
    """The connection to the workers, used by one thread."""

    def __init__(self) -> None:
        self._again_at = 0.0

    def send(self, name: str, key: int, headers: dict[str, str | None]) -> None:
        from celery import current_app

        if time.monotonic() < self._again_at:
            return
        try:
            current_app.send_task(name, args=[key], headers=headers, expires=EXPIRES, retry=False)
        except Exception as error:
            self._again_at = time.monotonic() + PAUSE
            logger.warning("%s: no broker (%s); a worker finds what waits", name, error)


_broker = _Broker()
