"""Writing a file: room is reserved, bytes are stored, then the path is assigned."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import chain, count

from django.utils import timezone

from conversations.files.workspace.index import discard_file, lock_index, replace_file
from conversations.files.workspace.objects import make_object_name, put_object
from conversations.files.workspace.sweep import sweep_gone
from conversations.models import FileState, WorkspaceFile
from tools.framework.clean_text import quote
from tools.framework.errors import FileChangedError
from tools.workspace.paths import LONGEST_NAME, LONGEST_PATH
from tools.workspace.workspace import check_free_name, compute_digest, normalize_path

#: Bytes that what follows the last dot of a name may have to count as its ending.
LONGEST_ENDING = 32


def write_file(
    *,
    owner_id: int,
    path: str,
    data: bytes,
    key: str = "",
    over: str | None = None,
    is_numbered: bool = False,
) -> tuple[WorkspaceFile, bool]:
    """Create or replace a file; return its row and whether it is new. Raises ToolError.

    `over`: replace a file only if it has this digest. `is_numbered`: replace nothing; where the
    path is taken, add a number to it.
    """
    path = normalize_path(path)
    row = _reserve_room(owner_id, path, data, key, over, is_numbered)
    if row.state == FileState.LIVE:
        return row, False
    try:
        put_object(row.object, data)
        is_new = _publish_file(row, over, is_numbered)
    except BaseException:
        discard_file(row)
        raise
    finally:
        sweep_gone(owner_id=owner_id)
    return row, is_new


def _reserve_room(
    owner_id: int, path: str, data: bytes, key: str, over: str | None, is_numbered: bool
) -> WorkspaceFile:
    """Return a new row that reserves room, or the live one that has these bytes already."""
    with lock_index(owner_id) as held:
        if is_numbered:
            path = find_free_path(held.live, path)
        _demand_unchanged(held.live.get(path), path, over)
        held.demand(path, len(data))
        digest = compute_digest(data)
        old = held.live.get(path)
        if old is not None and old.digest == digest:
            old.done_by = key
            old.save(update_fields=["done_by"])
            return old
        held.make_room(path, len(data))
        return WorkspaceFile.objects.create(
            owner_id=owner_id,
            path=path,
            object=make_object_name(owner_id),
            bytes=len(data),
            digest=digest,
            done_by=key,
            changed_at=timezone.now(),
        )


def _publish_file(row: WorkspaceFile, over: str | None, is_numbered: bool) -> bool:
    """Give the stored object its path; return whether the path is new."""
    with lock_index(row.owner_id) as held:
        if not any(each.pk == row.pk and each.path == row.path for each in held.pending):
            error = FileChangedError("The workspace was cleared while the file was written.")
            raise error.because("cleared")
        if is_numbered:
            row.path = find_free_path(held.live, row.path)
        old = held.live.get(row.path)
        _demand_unchanged(old, row.path, over)
        check_free_name(held.held, row.path)
        if old is not None:
            replace_file(old)
        row.state, row.changed_at = FileState.LIVE, timezone.now()
        row.save(update_fields=["state", "path", "changed_at"])
        return old is None


def _demand_unchanged(old: WorkspaceFile | None, path: str, over: str | None) -> None:
    if over is not None and (old is None or old.digest != over):
        raise FileChangedError(f"{quote(path)} was changed meanwhile; read it again.")


def find_free_path(taken: Collection[str], path: str) -> str:
    """Return the path, or the first of "name (2).txt", "name (3).txt" that is free.

    Raises PathRefusedError where the folder's own path leaves no room for a number.
    """
    folder, slash, name = path.rpartition("/")
    stem, dot, ending = name.rpartition(".")
    if not stem or len(ending.encode()) > LONGEST_ENDING:
        stem, dot, ending = name, "", ""
    numbered = list_numbered_paths(f"{folder}{slash}{stem}", f"{dot}{ending}")
    return next(
        each
        for each in chain([path], numbered)
        if each not in taken and not any(other.startswith(f"{each}/") for other in taken)
    )


def list_numbered_paths(path: str, ending: str = "") -> Iterator[str]:
    """Yield "path (2)", "path (3)" and so on, each with the ending.

    The name loses as many whole characters at its end as name and path are too long with the
    number. Raises PathRefusedError where that is not enough.
    """
    folder, slash, name = path.rpartition("/")
    most = min(LONGEST_NAME, LONGEST_PATH - len(f"{folder}{slash}".encode()))
    for number in count(2):
        tail = f" ({number}){ending}"
        room = max(0, most - len(tail.encode()))
        stem = name.encode()[:room].decode(errors="ignore")
        yield normalize_path(f"{folder}{slash}{stem}{tail}")
