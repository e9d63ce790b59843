"""The port of a workspace, and the rules of what may be stored where.

A workspace is an index of paths over stored bytes. The index is authoritative: folders are implied
by the paths of files, a move changes a path and no bytes, and other files on the disk of the store
are not part of it. Used instead of directories on a disk, which an object store does not have and
which other programs could write to. `conversations/files/workspace` stores the index; here are its
form and `check_placement`, which it calls before each change.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Protocol

from tools.framework.clean_text import quote
from tools.framework.errors import (
    FileChangedError,
    FileMissingError,
    FileRefusedError,
    PathRefusedError,
    QuotaError,
)
from tools.workspace.paths import split_path


@dataclass(frozen=True, slots=True)
class Quota:
    max_bytes: int = 50_000_000
    max_files: int = 1_000
    max_file_bytes: int = 5_000_000


@dataclass(frozen=True, slots=True)
class Entry:
    path: str
    bytes: int
    changed_at: datetime | None = None


class Workspace(Protocol):
    """The files of one person. Blocking: call it in a thread.

    `key` is the idempotency key of a tool call: a change made under a key is not repeated.
    """

    def entries(self, path: str = "") -> list[Entry]:
        """List the files in a folder and below it, or the one file, sorted by path."""
        ...

    def read(self, path: str) -> bytes:
        """Read one file in full."""
        ...

    def write(self, path: str, data: bytes, *, key: str = "", over: str | None = None) -> bool:
        """Create or replace one file within the quota; return whether it is new.

        With `over`, only a file whose bytes have that digest is replaced; else FileChangedError.
        """
        ...

    def move(self, path: str, to: str, *, key: str = "") -> int:
        """Move a file or all files of a folder; return how many."""
        ...

    def delete(self, path: str, *, key: str = "") -> None:
        """Move one file to the trash."""
        ...

    def is_done(self, path: str, key: str) -> bool:
        """Tell whether the last change of a file was made under this key."""
        ...


def is_done_before(workspace: Workspace, path: str, key: str, since: datetime) -> bool:
    """Return whether a call that is repeated made the last change of a file.

    Raises FileChangedError where another has changed the file since the call was first started: it
    may have been done before that, and done again it would undo their change.
    """
    if workspace.is_done(path, key):
        return True
    with suppress(FileMissingError):
        for entry in workspace.entries(path):
            is_later = entry.changed_at is not None and entry.changed_at >= since
            if is_later and entry.path == normalize_path(path):
                raise FileChangedError(
                    f"The server stopped while this was done, and {quote(path)} was changed by"
                    " another since. It was left as it is: read it before you change it."
                )
    return False


def compute_digest(data: bytes) -> str:
    return f"sha256:{sha256(data).hexdigest()}"


def normalize_path(path: str) -> str:
    """Return the path of a file as it is stored; raises PathRefusedError."""
    names = split_path(path)
    if not names or path.endswith(("/", "/.")):
        raise PathRefusedError("A file path is needed, like notes/plan.md.").because("no_path")
    return "/".join(names)


def list_below(held: Mapping[str, int], path: str) -> list[str]:
    """Return the paths of the files in a folder and below it, sorted; all of them for ""."""
    return sorted(each for each in held if not path or each.startswith(f"{path}/"))


def check_placement(held: Mapping[str, int], path: str, size: int, quota: Quota) -> None:
    """Raise FileRefusedError or QuotaError where a file of this size cannot be stored."""
    check_free_name(held, path)
    if size > quota.max_file_bytes:
        raise QuotaError(
            f"A file may have at most {quota.max_file_bytes:,} bytes, this has {size:,}."
        ).because("big_file", most=quota.max_file_bytes, size=size)
    total = sum(held.values()) - held.get(path, 0) + size
    if total > quota.max_bytes:
        raise QuotaError(
            f"The workspace is full: it would hold {total:,} of at most {quota.max_bytes:,} bytes."
            " Write less, or delete files that are not needed."
        ).because("full", most=quota.max_bytes, size=total)
    if path not in held and len(held) >= quota.max_files:
        raise QuotaError(
            f"The workspace is full: it may hold at most {quota.max_files:,} files."
            " Replace or delete one instead."
        ).because("many_files", most=quota.max_files)


def check_free_name(held: Mapping[str, int], path: str) -> None:
    """Raise FileRefusedError for a path that is a folder, or that leads through a file."""
    names = path.split("/")
    for depth in range(1, len(names)):
        if (folder := "/".join(names[:depth])) in held:
            raise _is_file(folder)
    if list_below(held, path):
        error = FileRefusedError(f"{quote(path)} is a folder; list_files shows what is in it.")
        raise error.because("folder", path=quote(path))


def _is_file(path: str) -> FileRefusedError:
    error = FileRefusedError(f"{quote(path)} is a file, not a folder.")
    return error.because("file", path=quote(path))


def plan_move(held: Mapping[str, int], path: str, to: str) -> dict[str, str]:
    """Return the new path of each file that a move changes; raises a ToolError if it may not."""
    path, to = "/".join(split_path(path)), normalize_path(to)
    old = [path] if path in held else list_below(held, path)
    if not path or not old:
        raise missing_error(path)
    if to == path or to.startswith(f"{path}/"):
        error = FileRefusedError(f"{quote(path)} cannot be moved to itself or into itself.")
        raise error.because("itself", path=quote(path))
    others = {each: size for each, size in held.items() if each not in old}
    new = {each: "/".join(split_path(to + each[len(path) :])) for each in old}
    if path in held and to in others:
        error = FileRefusedError(f"There is a file {quote(to)} already; delete or move it first.")
        raise error.because("taken", path=quote(to))
    check_free_name(others, to)
    if path not in held and to in others:
        raise _is_file(to)
    return new


def missing_error(path: str) -> FileMissingError:
    return FileMissingError(
        f"There is no file {quote(path)} in the workspace; list_files shows what there is."
    ).because("missing", path=quote(path))
