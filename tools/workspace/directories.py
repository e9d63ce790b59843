"""Directories as open descriptors, walked name by name.

A path string is never resolved after it was checked: each name is opened relative to the descriptor
of its directory with O_NOFOLLOW, and the opened descriptor is examined. So a directory that is
replaced by a link between two steps is refused, not followed. Used instead of resolve-and-compare,
which has a race, and of openat2, which Python cannot call.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from tools.framework.clean_text import quote
from tools.framework.errors import FileMissingError, FileRefusedError
from tools.workspace.paths import UNFINISHED

Names = tuple[str, ...]

REFUSED = frozenset(
    {errno.ELOOP, errno.ENOTDIR, errno.EISDIR, errno.ENXIO, errno.ENODEV, errno.EACCES, errno.EPERM}
)

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# O_NONBLOCK: a pipe without a writer must not hang the call that is about to refuse it.
READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def is_ordinary_file(found: os.stat_result, device: int) -> bool:
    """Tell whether this is an ordinary file with one name, on the workspace's file system."""
    # st_nlink is 0 for a file that was replaced after it was opened.
    return stat.S_ISREG(found.st_mode) and found.st_nlink <= 1 and found.st_dev == device


@contextmanager
def open_folder(root: int, names: Names, *, create: bool = False) -> Iterator[int]:
    """Open a folder below an open root; `create` makes missing folders."""
    folder = os.dup(root)
    try:
        for depth, name in enumerate(names, start=1):
            with translate_errors(names[:depth], "folder"):
                if create:
                    with suppress(FileExistsError):
                        os.mkdir(name, 0o700, dir_fd=folder)
                inner = os.open(name, FOLDER, dir_fd=folder)
            os.close(folder)
            folder = inner
        yield folder
    finally:
        os.close(folder)


def read_ordinary_file(folder: int, names: Names, most: int) -> bytes:
    """Read an ordinary file of an open folder; raises FileRefusedError above `most` bytes."""
    with translate_errors(names, "file"):
        file = os.open(names[-1], READ, dir_fd=folder)
    try:
        state = os.fstat(file)
        if not is_ordinary_file(state, os.fstat(folder).st_dev):
            raise refusal_of(names, state)
        data = bytearray()
        while len(data) <= most and (piece := os.read(file, 1_048_576)):
            data += piece
    finally:
        os.close(file)
    if len(data) > most:
        raise FileRefusedError(f"{quote('/'.join(names))} is larger than {most:,} bytes.")
    return bytes(data)


def replace_file(folder: int, names: Names, data: bytes) -> None:
    """Write a file in full or not at all, and durably."""
    unfinished = f"{UNFINISHED}{names[-1]}"
    file = os.open(unfinished, CREATE, 0o600, dir_fd=folder)
    try:
        with open(file, "wb") as out:  # noqa: PTH123  a descriptor, not a path
            out.write(data)
            out.flush()
            os.fsync(file)
        with translate_errors(names, "file"):
            os.rename(unfinished, names[-1], src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        os.unlink(unfinished, dir_fd=folder)
        raise
    os.fsync(folder)


def refusal_of(names: Names, state: os.stat_result) -> FileRefusedError:
    """Return the error for something that is not an ordinary file."""
    shown = quote("/".join(names))
    if stat.S_ISDIR(state.st_mode):
        return FileRefusedError(f"{shown} is a folder; list_files shows what is in it.")
    return FileRefusedError(
        f"{shown} is not an ordinary file; links and special files are not opened."
    )


@contextmanager
def translate_errors(names: Names, wanted: str) -> Iterator[None]:
    """Translate errors of the file system; messages name only the path in the workspace."""
    shown = quote("/".join(names))
    try:
        yield
    except FileNotFoundError as error:
        raise FileMissingError(
            f"There is no {wanted} {shown} in the workspace; list_files shows what there is."
        ) from error
    except OSError as error:
        if error.errno not in REFUSED:
            raise
        raise FileRefusedError(
            f"{shown} is not an ordinary {wanted}; links and special files are not opened."
        ) from error
