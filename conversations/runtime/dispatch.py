"""Where work goes that somebody asked for: to this process, or to a worker.

The database has it already, so what is lost on the way is found by the next sweep; nobody waits for
a broker that is away.
"""

from __future__ import annotations

import logging
import time
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TYPE_CHECKING, Any

from asgiref.sync import async_to_sync

from conversations.agent.events import TurnClosed
from conversations.conf import conf
from conversations.db import db
from conversations.library.access import is_over
from conversations.live.publish import announce
from conversations.live.relay import ALL, relay
from conversations.runtime.supervisor import supervisor

if TYPE_CHECKING:
    from conversations.models import Turn

logger = logging.getLogger("agentweb.turns")
#: One thread, so that tasks go in their order and a slow broker holds up no request.
_post = ThreadPoolExecutor(1, thread_name_prefix="dispatch")
#: Seconds in which nothing is tried with a broker that was away.
PAUSE = 2.0
#: Seconds until a worker throws a task away that it comes to late: a sweep was quicker.
EXPIRES = 60


def wake_turn(turn_id: int) -> None:
    """Have a turn that waits started soon."""
    if conf.run_turns_in == "web":
        supervisor.wake(turn_id)
    else:
        _send_task("conversations.run_turn", turn_id)


def start_proposal(proposal_id: int) -> None:
    """Have the model asked for a summary that a person wants."""
    if conf.run_turns_in == "web":
        supervisor.propose(proposal_id)
    else:
        _send_task("conversations.propose", proposal_id)


def stop_turn(turn: Turn) -> None:
    """Wake a turn that was asked to stop, wherever it runs; show it where nobody ran it."""
    async_to_sync(_stop_turn)(turn)


async def _stop_turn(turn: Turn) -> None:
    supervisor.stop(turn.pk)
    relay.send(ALL, {"type": "stop", "turn": turn.pk})
    if await db(is_over, turn.pk):
        await announce(turn.conversation_id, TurnClosed(turn.number))


def _send_task(name: str, *arguments: Any) -> None:
    # With the ids and the trace of whoever asked.
    _post.submit(copy_context().run, _broker.send, name, *arguments)


class _Broker:
    """The way to the workers, used by one thread."""

    def __init__(self) -> None:
        self._again_at = 0.0

    def send(self, name: str, *arguments: Any) -> None:
        from celery import current_app

        if time.monotonic() < self._again_at:
            return
        try:
            current_app.send_task(name, args=arguments, expires=EXPIRES, retry=False)
        except Exception as error:
            self._again_at = time.monotonic() + PAUSE
            logger.warning("%s: no broker (%s); a worker finds what waits", name, error)


_broker = _Broker()
