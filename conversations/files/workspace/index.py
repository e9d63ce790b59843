"""The index of one owner's files, locked while it is changed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from uuid import uuid4

from django.db import transaction
from django.utils import timezone

from conversations.conf import conf
from conversations.log.legal_holds import is_person_held
from conversations.models import FileState, User, WorkspaceFile
from tools.framework.errors import QuotaError
from tools.workspace.workspace import Quota, check_placement


def read_quota() -> Quota:
    return Quota(conf.workspace_bytes, conf.workspace_files, conf.workspace_file_bytes)


@dataclass(frozen=True, slots=True)
class OwnerIndex:
    """The rows of one owner that count against the quota, by state; locked until the commit."""

    owner_id: int
    live: dict[str, WorkspaceFile]
    pending: tuple[WorkspaceFile, ...]
    #: the oldest first
    trash: tuple[WorkspaceFile, ...]

    @property
    def held(self) -> dict[str, int]:
        return {path: row.bytes for path, row in self.live.items()}

    def demand(self, path: str, size: int) -> None:
        """Raise ToolError for a file that has no room beside stored and pending ones."""
        most = read_quota()
        writing = sum(row.bytes for row in self.pending)
        if writing > most.max_bytes or len(self.pending) >= most.max_files:
            error = QuotaError("Too much is being written at once; try again in a moment.")
            raise error.because("busy")
        room = Quota(
            most.max_bytes - writing, most.max_files - len(self.pending), most.max_file_bytes
        )
        check_placement(self.held, path, size, room)

    def make_room(self, path: str, size: int) -> None:
        """Discard the oldest files of the trash until everything is within the quota.

        Raises ToolError where a legal hold forbids it.
        """
        most = read_quota()
        replaced = self.live.get(path)
        kept = [*self.live.values(), *self.pending, *self.trash]
        total = sum(row.bytes for row in kept) + size - (replaced.bytes if replaced else 0)
        count = len(kept) + (replaced is None)
        is_kept = bool(self.trash) and is_person_held(self.owner_id)
        for row in self.trash:
            if total <= most.max_bytes and count <= most.max_files:
                return
            if is_kept:
                raise QuotaError(
                    "The workspace is full, deleted files included, and none may be discarded:"
                    " its owner is under a legal hold."
                ).because("held")
            discard_file(row)
            total, count = total - row.bytes, count - 1


@contextmanager
def lock_index(owner_id: int) -> Iterator[OwnerIndex]:
    """Lock an owner's index in a transaction and yield it."""
    with transaction.atomic():
        User.objects.select_for_update(no_key=True).only("pk").get(pk=owner_id)
        rows = WorkspaceFile.objects.filter(owner_id=owner_id).exclude(state=FileState.GONE)
        found = list(rows.order_by("changed_at", "pk"))
        yield OwnerIndex(
            owner_id,
            {row.path: row for row in found if row.state == FileState.LIVE},
            tuple(row for row in found if row.state == FileState.PENDING),
            tuple(row for row in found if row.state == FileState.TRASH),
        )


def replace_file(row: WorkspaceFile) -> None:
    """Discard a file that another takes the place of; under a legal hold it goes to the trash."""
    if is_person_held(row.owner_id):
        row.state, row.batch, row.changed_at = FileState.TRASH, uuid4(), timezone.now()
        row.save(update_fields=["state", "batch", "changed_at"])
    else:
        discard_file(row)


def discard_file(row: WorkspaceFile) -> None:
    """Mark a row as gone; the sweep deletes its object and then the row."""
    row.state, row.changed_at = FileState.GONE, timezone.now()
    row.save(update_fields=["state", "changed_at"])
