"""Moving, deleting and restoring files: paths change, objects stay where they are."""

from __future__ import annotations

from uuid import UUID, uuid4

from django.utils import timezone

from conversations.files.workspace.index import OwnerIndex, discard_file, lock_index
from conversations.files.workspace.sweep import sweep_gone
from conversations.files.workspace.write import find_free_path, list_numbered_paths
from conversations.log.legal_holds import is_person_held
from conversations.models import FileState, WorkspaceFile
from tools.framework.clean_text import quote
from tools.framework.errors import FileRefusedError
from tools.workspace.paths import split_path
from tools.workspace.workspace import list_below, missing_error, normalize_path, plan_move


def move_files(*, owner_id: int, path: str, to: str, key: str = "") -> int:
    """Move a file, or all files of a folder, and return how many. Raises ToolError."""
    with lock_index(owner_id) as held:
        done = [row for row in held.live.values() if key and row.done_by == key]
        if done:
            return len(done)
        new = plan_move(held.held, path, to)
        # Free the old paths first: a new path may be the old path of another file.
        for old in new:
            _set_path(held.live[old], f"\n{held.live[old].pk}", key)
        for old, path_ in new.items():
            _set_path(held.live[old], path_, key)
        return len(new)


def _set_path(row: WorkspaceFile, path: str, key: str) -> None:
    row.path, row.done_by = path, key
    row.save(update_fields=["path", "done_by"])


def delete_files(*, owner_id: int, path: str, key: str = "", is_folder: bool = False) -> UUID:
    """Move a file, or with `is_folder` a folder, to the trash; return the batch to restore."""
    with lock_index(owner_id) as held:
        done = [row for row in held.trash if key and row.done_by == key]
        if done and done[0].batch:
            return done[0].batch
        rows = _list_chosen(held, path, is_folder)
        batch, now = uuid4(), timezone.now()
        for row in rows:
            row.state, row.batch, row.done_by, row.changed_at = FileState.TRASH, batch, key, now
            row.save(update_fields=["state", "batch", "done_by", "changed_at"])
        return batch


def _list_chosen(held: OwnerIndex, path: str, is_folder: bool) -> list[WorkspaceFile]:
    path = "/".join(split_path(path)) if is_folder else normalize_path(path)
    inside = list_below(held.held, path)
    if path in held.live:
        return [held.live[path]]
    if inside and not is_folder:
        raise FileRefusedError(f"{quote(path)} is a folder; delete its files one by one.")
    if not inside:
        raise missing_error(path)
    return [held.live[each] for each in inside]


def restore_files(*, owner_id: int, batch: UUID) -> list[str]:
    """Restore what was deleted together; a file whose path is taken gets a number.

    Raises PathRefusedError, and restores nothing, where a path has no room for its number.
    """
    with lock_index(owner_id) as held:
        taken, back = dict(held.live), []
        keys = [row.pk for row in held.trash if row.batch == batch]
        # Locked, and read again: the sweep discards what is old without the owner's lock.
        rows = WorkspaceFile.objects.select_for_update().filter(pk__in=keys, state=FileState.TRASH)
        for row in rows.order_by("changed_at", "pk"):
            row.path = _find_restore_path(taken, row.path)
            row.state, row.batch = FileState.LIVE, None
            row.save(update_fields=["state", "batch", "path"])
            taken[row.path] = row
            back.append(row.path)
        return sorted(back)


def _find_restore_path(taken: dict[str, WorkspaceFile], path: str) -> str:
    """Return a free path; where a file has taken a folder's path, the folder gets a number."""
    names = path.split("/")
    for depth in range(1, len(names)):
        folder = "/".join(names[:depth])
        if folder in taken:
            free = next(each for each in list_numbered_paths(folder) if each not in taken)
            path = normalize_path("/".join([free, *names[depth:]]))
            return _find_restore_path(taken, path)
    return find_free_path(taken, path)


def empty_file_trash(*, owner_id: int) -> int:
    """Discard everything in the trash, unless it is held; return how many files."""
    with lock_index(owner_id) as held:
        if is_person_held(owner_id):
            return 0
        for row in held.trash:
            discard_file(row)
    sweep_gone(owner_id=owner_id)
    return len(held.trash)


def clear_workspace(*, owner_id: int) -> None:
    """Discard every file of a person and the trash, unless they are held.

    A file that is being written is refused.
    """
    with lock_index(owner_id) as held:
        if is_person_held(owner_id):
            return
        for row in (*held.live.values(), *held.trash):
            discard_file(row)
        for row in held.pending:
            _set_path(row, "", "")
    sweep_gone(owner_id=owner_id)
