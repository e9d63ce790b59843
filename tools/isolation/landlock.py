"""Landlock: a process gives up files and network for good, and for all that it starts.

Linux only, from 5.13 on (TCP from 6.7, signals and abstract sockets from 6.12); where the kernel
has none of it, or another system runs, `forbid_access` returns 0 and the other limits remain. UDP
is not covered by any version.

Three system calls by ctypes and not a library: of those on PyPI in November 2026 `landlock` has
only development releases and no network, `py-landlock` and `landlockpy` are months old with one
author each, `sandlock` is a sandbox of 4.5 MB; each is longer than what is needed here.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from collections.abc import Iterable

_CREATE, _ADD_RULE, _RESTRICT = 444, 445, 446
_VERSION, _PATH_BENEATH, _NO_NEW_PRIVILEGES = 1, 1, 38
#: Rights on files that each version of Landlock knows: (version, number of rights).
_FILE_RIGHTS = ((1, 13), (2, 14), (3, 15), (5, 16))
#: Rights to read a file, and to list a folder, which a rule on a file may not have.
_READ_FILE, _READ_FOLDER = 1 << 2, 1 << 3
_TCP, _SCOPES = 0b11, 0b11


def forbid_access(readable: Iterable[str]) -> int:
    """Forbid all access to files but to read those paths, TCP connections and signals to others.

    Returns the version of Landlock, or 0. Paths that are not there are passed over.
    """
    if not sys.platform.startswith("linux"):
        return 0
    libc = ctypes.CDLL(None, use_errno=True)
    version = libc.syscall(_CREATE, None, ctypes.c_size_t(0), _VERSION)
    if version < 1:
        return 0
    handled = (1 << max(count for since, count in _FILE_RIGHTS if version >= since)) - 1
    network = _TCP if version >= 4 else 0
    scopes = _SCOPES if version >= 6 else 0
    attributes = struct.pack("=QQQ", handled, network, scopes)
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    ruleset = libc.syscall(_CREATE, attributes, ctypes.c_size_t(size), 0)
    if ruleset < 0:
        return 0
    try:
        for path in readable:
            _allow_reading(libc, ruleset, path)
        libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
        is_done: bool = libc.syscall(_RESTRICT, ruleset, 0) == 0
        return version if is_done else 0
    finally:
        os.close(ruleset)


def _allow_reading(libc: ctypes.CDLL, ruleset: int, path: str) -> None:
    try:
        place = os.open(path, getattr(os, "O_PATH", 0) | os.O_CLOEXEC)
    except OSError:
        return
    try:
        rights = _READ_FILE | (_READ_FOLDER if os.path.isdir(path) else 0)  # noqa: PTH112
        libc.syscall(_ADD_RULE, ruleset, _PATH_BENEATH, struct.pack("=Qi", rights, place), 0)
    finally:
        os.close(place)
