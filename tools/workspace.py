"""One folder per user, and no way out of it.

Reading takes no lock: a file is put in place by rename, so a reader sees the old or the new one.
Writing holds one lock (flock on a file beside the folder, which excludes threads as well as
processes) over counting and placing, so the quota holds with any number of writers. The use is
counted from the disk each time: a thousand files take a few milliseconds, and a stored counter
could be wrong. Folders count as files, since they cost as much.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from tools.errors import PathRefusedError, QuotaError, WorkspaceBusyError
from tools.folders import (
    FOLDER,
    Names,
    is_plain,
    open_folder,
    read_plain,
    refusal,
    replace_file,
    walk,
)
from tools.paths import UNFINISHED, split

LOCK = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
#: Entries looked at before a folder filled by someone else is given up.
MOST_SEEN = 20_000


@dataclass(frozen=True, slots=True)
class Entry:
    path: str
    bytes: int


@dataclass(frozen=True, slots=True)
class Workspace:
    root: Path
    max_bytes: int = 50_000_000
    #: files and folders together
    max_files: int = 1_000
    max_file_bytes: int = 5_000_000
    #: seconds a writer waits for another
    patience: float = 10.0

    def read(self, path: str) -> bytes:
        """Read one file whole."""
        names = _file(path)
        with self._opened() as root, open_folder(root, names[:-1]) as folder:
            return read_plain(folder, names, self.max_file_bytes)

    def write(self, path: str, data: bytes) -> bool:
        """Create or replace one file, atomically and within the quota; say whether it is new."""
        names = _file(path)
        if len(data) > self.max_file_bytes:
            raise QuotaError(
                f"A file may have at most {self.max_file_bytes:,} bytes, this has {len(data):,}."
            )
        with self._opened() as root, self._locked():
            used = self._used(root)
            old = used.get(names)
            if old is not None and not is_plain(old, os.fstat(root).st_dev):
                raise refusal(names, old)
            self._admit(used, names, len(data))
            with open_folder(root, names[:-1], create=True) as folder:
                replace_file(folder, names, data)
        return old is None

    def entries(self, path: str = "") -> list[Entry]:
        """List the ordinary files below a folder, sorted by path."""
        names = split(path)
        found = []
        with self._opened() as root, open_folder(root, names) as folder:
            device = os.fstat(root).st_dev
            for below, state in islice(walk(folder), MOST_SEEN):
                shown = "/".join((*names, *below))
                if is_plain(state, device) and _is_reachable(shown):
                    found.append(Entry(shown, state.st_size))
        return sorted(found, key=lambda entry: entry.path)

    def clear(self) -> None:
        """Remove everything at once, what no tool could name included."""
        with self._opened(), self._locked():
            gone = self.root.with_name(f".{self.root.name}.{secrets.token_hex(8)}")
            self.root.rename(gone)
            shutil.rmtree(gone)

    def _admit(self, used: dict[Names, os.stat_result], names: Names, size: int) -> None:
        old = used.get(names)
        total = sum(state.st_size for state in used.values()) - (old.st_size if old else 0) + size
        if total > self.max_bytes:
            raise QuotaError(
                f"The workspace is full: it would hold {total:,} of at most"
                f" {self.max_bytes:,} bytes. Write less, or replace a larger file."
            )
        added = sum(names[:depth] not in used for depth in range(1, len(names) + 1))
        if added and len(used) + added > self.max_files:
            raise QuotaError(
                f"The workspace is full: it may hold at most {self.max_files:,} files"
                " and folders. Replace an existing file instead."
            )

    def _used(self, root: int) -> dict[Names, os.stat_result]:
        """Count what there is and clear what a crash left unfinished; only under the lock."""
        used = {}
        for names, state in islice(walk(root), MOST_SEEN):
            if names[-1].startswith(UNFINISHED) and stat.S_ISREG(state.st_mode):
                with open_folder(root, names[:-1]) as folder:
                    os.unlink(names[-1], dir_fd=folder)
            else:
                used[names] = state
        return used

    @contextmanager
    def _opened(self) -> Iterator[int]:
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        root = os.open(self.root, FOLDER)
        try:
            yield root
        finally:
            os.close(root)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        # Beside the folder, so that no tool can see, hold or remove it.
        lock = os.open(self.root.parent / f".{self.root.name}.lock", LOCK, 0o600)
        try:
            until = time.monotonic() + self.patience
            while not _taken(lock):
                if time.monotonic() > until:
                    raise WorkspaceBusyError("The workspace is busy; try again in a moment.")
                time.sleep(0.005)
            yield
        finally:
            os.close(lock)


def _taken(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _file(path: str) -> Names:
    names = split(path)
    if not names or path.endswith(("/", "/.")):
        raise PathRefusedError("A file path is needed, like notes/plan.md.")
    return names


def _is_reachable(path: str) -> bool:
    """Say whether a tool could name this file; others may have put odd names there."""
    try:
        return "/".join(split(path)) == path
    except PathRefusedError:
        return False
