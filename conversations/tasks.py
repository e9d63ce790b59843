"""What nobody waits for: three lines each over the services, and the turns of a worker."""

from __future__ import annotations

import logging

from celery import shared_task

from conversations.audit.anchors import anchor_if_due
from conversations.audit.verify import Tally, verify_everything
from conversations.runtime.process import process, run_maintenance
from conversations.runtime.supervisor import supervisor

logger = logging.getLogger("agentweb.audit")


@shared_task(name="conversations.run_turn")  # type: ignore[untyped-decorator]
def run_turn(turn_id: int) -> None:
    """Run a turn to its end; the database says whether it is still to be run."""
    supervisor.work_off(turn_id)


@shared_task(name="conversations.propose")  # type: ignore[untyped-decorator]
def propose(proposal_id: int) -> None:
    """Ask for the summary that a person wants; the asking goes on behind this task."""
    supervisor.propose(proposal_id)


@shared_task(name="conversations.reap")  # type: ignore[untyped-decorator]
def reap() -> None:
    """Take the turns and titles whose worker is gone."""
    process.do(process.sweep())


@shared_task(name="conversations.erase")  # type: ignore[untyped-decorator]
def erase() -> None:
    """Erase what has been in the trash, or waited to be sent, long enough."""
    process.do(run_maintenance())


@shared_task(name="conversations.anchor")  # type: ignore[untyped-decorator]
def anchor() -> None:
    """Write the ends of the chains outside the database, when an hour is over."""
    anchor_if_due()


@shared_task(name="conversations.verify")  # type: ignore[untyped-decorator]
def verify() -> None:
    """Verify everything; what is wrong goes to the log."""
    for problem in verify_everything(Tally()):
        logger.error("%s", problem)
