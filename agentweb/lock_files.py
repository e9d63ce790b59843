"""Reads the lock files: what pip installs, pinned with the digests of its files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from packaging.requirements import Requirement
from packaging.utils import NormalizedName, canonicalize_name

#: What is installed to run the project.
LOCK = "requirements.lock"
_ENTRY = re.compile(r"^[A-Za-z0-9].*(?:\n[ \t]+.*)*", re.MULTILINE)
_DIGEST = re.compile(r"--hash=sha256:([0-9a-f]{64})")


class Entry(NamedTuple):
    name: NormalizedName
    version: str
    #: Whether its marker holds for this Python on this system.
    applies: bool
    #: SHA-256 of each file that may be installed.
    digests: list[str]


def read_entries(lock: Path) -> list[Entry]:
    """Return the entries of a lock, as they stand in it."""
    return [_read_entry(entry) for entry in _ENTRY.findall(lock.read_text(encoding="utf-8"))]


def _read_entry(text: str) -> Entry:
    pin = Requirement(text.partition("\n")[0].rstrip(" \\"))
    version = str(pin.specifier).removeprefix("==")
    applies = pin.marker is None or pin.marker.evaluate()
    return Entry(canonicalize_name(pin.name), version, applies, _DIGEST.findall(text))


def read_pins(lock: Path, *, here: bool = False) -> dict[str, set[str]]:
    """Return the versions of each package; markers may select one of several.

    With `here`, only what they select for this Python.
    """
    versions: dict[str, set[str]] = {}
    for entry in read_entries(lock):
        if entry.applies or not here:
            versions.setdefault(entry.name, set()).add(entry.version)
    return versions
