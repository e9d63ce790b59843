"""Objects on the local disk, each opened relative to the descriptor of its folder.

This is the default storage of workspaces. Django's own follows links; here a link, a pipe or a
device in place of an object or of its folder is refused (see tools/workspace/directories.py), and
an object appears complete or not at all.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BytesIO
from pathlib import Path
from typing import Any

from django.core.files.base import File
from django.core.files.storage import Storage

from tools.framework.errors import FileMissingError, FileRefusedError
from tools.workspace.directories import (
    FOLDER,
    Names,
    is_ordinary_file,
    open_folder,
    read_ordinary_file,
    replace_file,
    translate_errors,
)
from tools.workspace.paths import UNFINISHED

#: More than the quota of one file, so a longer object was not written by this program.
MOST = 1_000_000_000


class GuardedStorage(Storage):
    """A Django storage of one folder; names are plain names separated by slashes."""

    def __init__(self, location: str | os.PathLike[str], most: int = MOST) -> None:
        self.location, self.most = Path(location), most

    def _open(self, name: str, mode: str = "rb") -> File[bytes]:
        names = _split_name(name)
        try:
            with self._opened() as root, open_folder(root, names[:-1]) as folder:
                return File(BytesIO(read_ordinary_file(folder, names, self.most)), name)
        except FileMissingError as error:
            raise FileNotFoundError(name) from error

    def _save(self, name: str, content: File[Any]) -> str:
        names = _split_name(name)
        data = b"".join(content.chunks())
        with self._opened() as root, open_folder(root, names[:-1], create=True) as folder:
            replace_file(folder, names, data)
        return name

    def exists(self, name: str) -> bool:
        names = _split_name(name)
        try:
            with self._opened() as root, open_folder(root, names[:-1]) as folder:
                os.stat(names[-1], dir_fd=folder, follow_symlinks=False)
        except (FileMissingError, FileNotFoundError):
            return False
        return True

    def size(self, name: str) -> int:
        names = _split_name(name)
        with self._opened() as root, open_folder(root, names[:-1]) as folder:
            found = os.stat(names[-1], dir_fd=folder, follow_symlinks=False)
            if not is_ordinary_file(found, os.fstat(folder).st_dev):
                raise FileRefusedError("this is not an ordinary file")
        return found.st_size

    def delete(self, name: str) -> None:
        """Remove an object, the remains of an unfinished one, or whatever else has its name."""
        names = _split_name(name)
        try:
            with (
                self._opened() as root,
                open_folder(root, names[:-1]) as folder,
                translate_errors(names, "file"),
            ):
                for each in (f"{UNFINISHED}{names[-1]}", names[-1]):
                    with suppress(FileNotFoundError):
                        os.unlink(each, dir_fd=folder)
        except FileMissingError:
            return

    @contextmanager
    def _opened(self) -> Iterator[int]:
        self.location.mkdir(mode=0o700, parents=True, exist_ok=True)
        root = os.open(self.location, FOLDER)
        try:
            yield root
        finally:
            os.close(root)


def _split_name(name: str) -> Names:
    names = tuple(name.split("/"))
    if any(each in ("", ".", "..") or "\0" in each for each in names):
        raise ValueError("an object has a plain name")
    return names
