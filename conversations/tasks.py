"""What nobody waits for: three lines each over the services."""

from __future__ import annotations

import logging

from celery import shared_task

from conversations.services import audit
from conversations.services.attachments import sweep_unsent
from conversations.services.erase import erase_due
from conversations.services.errands import close_lost_errands
from conversations.services.proposals import lapse
from conversations.services.takeovers import expired_turns, take_over
from conversations.services.workspace import sweep_workspaces

logger = logging.getLogger("agentweb.audit")


@shared_task(name="conversations.reap")  # type: ignore[untyped-decorator]
def reap() -> None:
    """Take the turns and titles whose worker is gone."""
    for turn_id in expired_turns():
        take_over(turn_id=turn_id)
    close_lost_errands()
    lapse()


@shared_task(name="conversations.erase")  # type: ignore[untyped-decorator]
def erase() -> None:
    """Erase what has been in the trash, or waited to be sent, long enough."""
    erase_due()
    sweep_unsent()
    sweep_workspaces()


@shared_task(name="conversations.verify")  # type: ignore[untyped-decorator]
def verify() -> None:
    """Verify everything; what is wrong goes to the log."""
    for problem in audit.verify_everything(audit.Tally()):
        logger.error("%s", problem)
