"""One person's workspace as the tools and the exports use it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from django.db import connection

from conversations.files.workspace.arrange import clear_workspace, delete_files, move_files
from conversations.files.workspace.browse import find_live_file, list_live_files
from conversations.files.workspace.objects import read_object
from conversations.files.workspace.write import write_file
from tools.framework.clean_text import quote
from tools.framework.errors import FileMissingError, FileRefusedError
from tools.workspace.paths import split_path
from tools.workspace.workspace import Entry, missing_error, normalize_path

P = ParamSpec("P")
T = TypeVar("T")
W = TypeVar("W")


def with_connection(
    method: Callable[Concatenate[W, P], T],
) -> Callable[Concatenate[W, P], T]:
    """Close the connection after the method: it runs in threads that Django does not manage."""

    @wraps(method)
    def call(self: W, /, *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return method(self, *args, **kwargs)
        finally:
            if not connection.in_atomic_block:
                connection.close()

    return call


@dataclass(frozen=True, slots=True)
class UserWorkspace:
    """The Workspace port over the index and the storage."""

    owner_id: int

    @with_connection
    def entries(self, path: str = "") -> list[Entry]:
        names = split_path(path)
        folder = "/".join(names)
        rows = list_live_files(self.owner_id)
        inside = [row for row in rows if not folder or row.path.startswith(f"{folder}/")]
        if folder and not inside:
            inside = [row for row in rows if row.path == folder]
            if not inside:
                raise FileMissingError(
                    f"There is no folder {quote(folder)} in the workspace; list_files shows what"
                    " there is."
                )
        return [Entry(row.path, row.bytes, row.changed_at) for row in inside]

    @with_connection
    def read(self, path: str) -> bytes:
        path = normalize_path(path)
        row = find_live_file(self.owner_id, path)
        while row is not None:
            try:
                return read_object(row)
            except FileNotFoundError as error:
                again = find_live_file(self.owner_id, path)  # replaced since the index was read
                if again is not None and again.object == row.object:
                    raise FileMissingError(f"The content of {quote(path)} is lost.") from error
                row = again
        if any(each.path.startswith(f"{path}/") for each in list_live_files(self.owner_id)):
            raise FileRefusedError(f"{quote(path)} is a folder; list_files shows what is in it.")
        raise missing_error(path)

    @with_connection
    def write(self, path: str, data: bytes, *, key: str = "", over: str | None = None) -> bool:
        _, is_new = write_file(owner_id=self.owner_id, path=path, data=data, key=key, over=over)
        return is_new

    @with_connection
    def move(self, path: str, to: str, *, key: str = "") -> int:
        return move_files(owner_id=self.owner_id, path=path, to=to, key=key)

    @with_connection
    def delete(self, path: str, *, key: str = "") -> None:
        delete_files(owner_id=self.owner_id, path=path, key=key)

    @with_connection
    def is_done(self, path: str, key: str) -> bool:
        row = find_live_file(self.owner_id, normalize_path(path))
        return row is not None and row.done_by == key

    @with_connection
    def clear(self) -> None:
        """Remove all files and the trash."""
        clear_workspace(owner_id=self.owner_id)
