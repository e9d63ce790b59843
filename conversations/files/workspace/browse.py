"""Reads of a person's workspace, for its page and for the tools."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import Count, Max, Min, Sum
from django.shortcuts import get_object_or_404

from conversations.models import FileState, User, WorkspaceFile
from tools.workspace.workspace import Quota

#: Rows of the trash that are shown.
MOST_TRASH = 50


@dataclass(frozen=True, slots=True)
class Folder:
    path: str
    name: str
    files: int
    bytes: int


@dataclass(frozen=True, slots=True)
class DeletedBatch:
    """Files that were deleted together."""

    batch: UUID | None
    path: str
    files: int
    bytes: int
    deleted_at: datetime


@dataclass(frozen=True, slots=True)
class FolderPage:
    """One folder: its content, the folders above it, the use of the workspace, the trash."""

    path: str
    #: (path, name) of the folders above, the first one first
    above: tuple[tuple[str, str], ...]
    folders: tuple[Folder, ...]
    files: tuple[WorkspaceFile, ...]
    all_files: int
    all_bytes: int
    quota: Quota
    trash: tuple[DeletedBatch, ...]

    @property
    def percent(self) -> int:
        """The used share of the workspace, by bytes or files, whichever is nearer to its limit."""
        shares = (self.all_bytes / self.quota.max_bytes, self.all_files / self.quota.max_files)
        return min(100, round(100 * max(shares)))


def list_live_files(owner_id: int) -> list[WorkspaceFile]:
    """Return a person's files sorted by path; in Python, because databases sort by locale."""
    rows = WorkspaceFile.objects.filter(owner_id=owner_id, state=FileState.LIVE)
    return sorted(rows, key=lambda row: row.path)


def find_live_file(owner_id: int, path: str) -> WorkspaceFile | None:
    rows = WorkspaceFile.objects.filter(owner_id=owner_id, state=FileState.LIVE)
    return rows.filter(path=path).first()


def load_owned_file(user: User, public_id: UUID) -> WorkspaceFile:
    """Return one of the user's own files; raises Http404 for any other."""
    rows = WorkspaceFile.objects.filter(owner=user, state=FileState.LIVE)
    return get_object_or_404(rows, public_id=public_id)


def read_folder_page(user: User, path: str, quota: Quota) -> FolderPage | None:
    """Return a folder; None where it does not exist."""
    rows = list_live_files(user.pk)
    inside = [row for row in rows if not path or row.path.startswith(f"{path}/")]
    if path and not inside:
        return None
    start = len(path) + 1 if path else 0
    folders: dict[str, list[WorkspaceFile]] = {}
    files = []
    for row in inside:
        name, slash, _ = row.path[start:].partition("/")
        if slash:
            folders.setdefault(name, []).append(row)
        else:
            files.append(row)
    names = path.split("/") if path else []
    return FolderPage(
        path=path,
        above=tuple(("/".join(names[: at + 1]), name) for at, name in enumerate(names)),
        folders=tuple(
            Folder(row[0].path[:start] + name, name, len(row), sum(each.bytes for each in row))
            for name, row in folders.items()
        ),
        files=tuple(files),
        all_files=len(rows),
        all_bytes=sum(row.bytes for row in rows),
        quota=quota,
        trash=list_deleted_files(user),
    )


def list_deleted_files(user: User) -> tuple[DeletedBatch, ...]:
    """Return what can be restored, the last deleted first."""
    rows = WorkspaceFile.objects.filter(owner=user, state=FileState.TRASH)
    batches = rows.values("batch").annotate(
        path=Min("path"), files=Count("pk"), bytes=Sum("bytes"), deleted_at=Max("changed_at")
    )
    return tuple(DeletedBatch(**row) for row in batches.order_by("-deleted_at")[:MOST_TRASH])
