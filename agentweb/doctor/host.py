"""Checks of the machine: Python and its packages, the data folder, its disk."""

from __future__ import annotations

import os
import shutil
import stat
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from django.conf import settings
from packaging.utils import canonicalize_name

from agentweb.doctor.report_lines import Line, failed, ok, warn
from agentweb.lock_files import LOCK, read_pins
from agentweb.serving.host import find_file_system, is_on_network

#: Free bytes below which a disk is nearly full, and full.
LITTLE, HARDLY_ANY = 1_000_000_000, 100_000_000
OLDEST = (3, 11)


def check_python() -> Iterator[Line]:
    version = ".".join(map(str, sys.version_info[:3]))
    if tuple(sys.version_info) >= OLDEST:
        yield ok("python", version)
    else:
        yield failed("python", f"{version} is too old", "Install Python 3.11 or newer.")


def check_packages() -> Iterator[Line]:
    """Compare what is installed with the lock, where the lock is there (not in an image)."""
    lock = Path(settings.BASE_DIR) / LOCK
    if not lock.is_file():
        yield ok("packages", "there is no lock to compare them with")
        return
    there: dict[str, str] = {
        canonicalize_name(one.name): one.version for one in metadata.distributions()
    }
    wanted = read_pins(lock, here=True)
    other = sorted(
        f"{name} {there[name]}" for name, versions in wanted.items()
        if name in there and there[name] not in versions
    )  # fmt: skip
    if other:
        text = f"{len(other)} are not of the lock: {', '.join(other[:5])}"
        yield warn("packages", text, f"pip install --no-deps --require-hashes -r {LOCK}")
    else:
        yield ok("packages", f"{len(wanted)} pinned, none of another version")


def check_data_folder() -> Iterator[Line]:
    folder, name = Path(settings.DATA_DIR), "data folder"
    if not folder.is_dir():
        yield failed(name, f"{folder} is not there", "Make it, or set AGENTWEB_DATA_DIR.")
        return
    mode = stat.S_IMODE(folder.stat().st_mode)
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        hint = f"chown -R {os.geteuid()} {folder}"
        yield failed(name, f"{folder} cannot be written by this user", hint)
    elif mode & 0o077:
        text = f"{folder} can be entered by other users of this machine (mode {mode:o})"
        yield warn(name, text, f"chmod 700 {folder}")
    else:
        yield ok(name, str(folder))
    yield from _secret(folder / "secret_key")
    if is_on_network(folder):
        text = f"{folder} is on a network file system ({find_file_system(folder)})"
        yield warn(name, text, "Use a local disk; SQLite must not be there at all.")


def _secret(path: Path) -> Iterator[Line]:
    if path.is_file() and (mode := stat.S_IMODE(path.stat().st_mode)) & 0o077:
        text = f"{path} can be read by other users (mode {mode:o}): they could forge sessions"
        yield failed("secret key", text, f"chmod 600 {path}, and make a new one if they may have.")


def check_disk() -> Iterator[Line]:
    free = shutil.disk_usage(settings.DATA_DIR).free
    text, hint = f"{free / 1e9:.1f} GB free", "Make room; a full disk refuses messages."
    if free < HARDLY_ANY:
        yield failed("disk", text, hint)
    elif free < LITTLE:
        yield warn("disk", text, hint)
    else:
        yield ok("disk", text)


CHECKS = (check_python, check_packages, check_data_folder, check_disk)
