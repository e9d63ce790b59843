"""The sweep: deletes the objects that no path refers to, and then their rows."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from django.utils import timezone

from conversations.conf import conf
from conversations.files.workspace.objects import drop_object
from conversations.log.legal_holds import is_owner_held
from conversations.models import FileState, WorkspaceFile

logger = logging.getLogger("agentweb.workspace")

#: A write that is pending for longer was left by a crash.
LONGEST_WRITE = timedelta(hours=1)
#: Objects that one sweep deletes.
MOST_SWEPT = 500


def sweep_workspaces(*, now: datetime | None = None) -> int:
    """Delete unfinished writes, trash past its time, and discarded files; return how many."""
    now = now or timezone.now()
    rows = WorkspaceFile.objects.all()
    rows.filter(state=FileState.PENDING, changed_at__lt=now - LONGEST_WRITE).update(
        state=FileState.GONE
    )
    old = rows.filter(state=FileState.TRASH, changed_at__lt=now - timedelta(conf.trash_days))
    old.filter(~is_owner_held()).update(state=FileState.GONE)
    return sweep_gone()


def sweep_gone(*, owner_id: int | None = None) -> int:
    """Delete the objects of discarded rows; return how many.

    A row whose object cannot be deleted now stays, and the next sweep tries again.
    """
    rows = WorkspaceFile.objects.filter(state=FileState.GONE)
    if owner_id is not None:
        rows = rows.filter(owner_id=owner_id)
    swept = 0
    for key, name in list(rows.order_by("pk").values_list("pk", "object")[:MOST_SWEPT]):
        try:
            drop_object(name)
        except Exception:
            logger.exception("the object of workspace file %d could not be deleted", key)
            continue
        WorkspaceFile.objects.filter(pk=key, state=FileState.GONE).delete()
        swept += 1
    return swept
