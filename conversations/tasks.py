"""Celery tasks: the turns of a worker, side calls, and the periodic tasks of beat."""

from __future__ import annotations

import logging
from typing import Any

from celery import shared_task

from conversations.alerts.delivery import deliver_alerts
from conversations.audit.verify import Tally, verify_everything
from conversations.runtime.dispatch import PAGES_LANGUAGE
from conversations.runtime.process import process, run_maintenance
from conversations.runtime.supervisor import supervisor

logger = logging.getLogger("agentweb.audit")


@shared_task(bind=True, name="conversations.run_turn")  # type: ignore[untyped-decorator]
def run_turn(task: Any, turn_id: int) -> None:
    """Run a turn to its end, if the database says that it still needs a worker."""
    supervisor.work_off(turn_id, task.request.get(PAGES_LANGUAGE))


@shared_task(name="conversations.propose")  # type: ignore[untyped-decorator]
def propose(proposal_id: int) -> None:
    """Start the side call for a requested summary; it continues after this task."""
    supervisor.propose(proposal_id)


@shared_task(name="conversations.sweep")  # type: ignore[untyped-decorator]
def sweep() -> None:
    """Sweep the turns and side calls whose worker is gone."""
    process.do(process.sweep())


@shared_task(name="conversations.alert")  # type: ignore[untyped-decorator]
def alert() -> None:
    """Send the alerts of budgets that are due."""
    process.do(deliver_alerts())


@shared_task(name="conversations.maintain")  # type: ignore[untyped-decorator]
def maintain() -> None:
    """Do what is not urgent: retention, erasing what is due, removing files, anchoring."""
    process.do(run_maintenance())


@shared_task(name="conversations.verify")  # type: ignore[untyped-decorator]
def verify() -> None:
    """Verify everything; problems go to the log."""
    for problem in verify_everything(Tally()):
        logger.error("%s", problem)
