#!/usr/bin/env python3
"""Run agentweb's commands; on a Python without its packages, make `.venv` first and go on in it.

Standard library only, because nothing else is there on a fresh machine. A Python that has the
packages (an image, a developer's own environment) is used as it is and never changed. `.venv` keeps
a stamp, the digest of the lock file that was installed, so a changed lock is installed again.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

if sys.platform == "win32":
    sys.exit("agentweb runs on Linux and macOS; on Windows use WSL or the Docker image.")
if sys.version_info < (3, 11):  # noqa: UP036  older Pythons come this far and are told
    sys.exit("agentweb needs Python 3.11 or newer; this is " + sys.version.split()[0])

import fcntl
from typing import NoReturn

HOME = Path(__file__).resolve().parent
VENV = HOME / ".venv"
PYTHON, STAMP = VENV / "bin" / "python", VENV / "agentweb.stamp"
RUNTIME, DEV = HOME / "requirements.lock", HOME / "requirements-dev.lock"
SERVING = (
    "django", "channels", "daphne", "uvloop", "celery", "anthropic", "httpx2", "nh3",
    "latex2mathml", "cryptography", "mcp", "pypdf", "docx", "openpyxl", "defusedxml", "allauth",
    "fido2", "qrcode",
)  # fmt: skip
TESTING = (
    "pytest_django", "pytest_asyncio", "playwright", "coverage", "mypy", "importlinter",
    "axe_playwright_python", "cyclonedx", "oidc_provider_mock",
)  # fmt: skip
#: Commands that need the packages of development: `bench` has clients and servers of its own, and
#: the tables of `docs` are made from it, too.
INSTRUMENTS = (["test"], ["docs"], ["bench"])
NO_NETWORK = ("Connection", "connection", "Network", "name resolution", "No matching distribution")


def main() -> None:
    lock = choose_lock(sys.argv[1:])
    if has_packages(lock):
        run()
    with alone():
        if not is_stamped(lock):
            prepare(lock)
        elif Path(sys.prefix) == VENV:
            stop("The packages in .venv are not complete: remove that folder and start again.")
    os.execv(PYTHON, [str(PYTHON), str(HOME / "manage.py"), *sys.argv[1:]])  # noqa: S606


def choose_lock(words: list[str]) -> Path:
    return DEV if words[:1] in INSTRUMENTS else RUNTIME


def run() -> NoReturn:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentweb.settings")
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line
    from django.db import OperationalError, ProgrammingError

    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as error:
        # Its text names the setting; where in the code it was read helps nobody who set it.
        if "--traceback" in sys.argv:
            raise
        sys.exit(str(error))
    except (OperationalError, ProgrammingError, sqlite3.OperationalError) as error:
        from agentweb.serving.startup import describe_unusable

        words = describe_unusable(error)
        if not words or "--traceback" in sys.argv:
            raise
        sys.exit(f"CommandError: {words}")
    sys.exit()


def has_packages(lock: Path) -> bool:
    """Tell whether this Python has what the lock brings, without importing any of it."""
    names = SERVING if lock == RUNTIME else (*SERVING, *TESTING)
    return all(importlib.util.find_spec(name) for name in names)


def is_stamped(lock: Path) -> bool:
    """Tell whether `.venv` has this lock; the lock for development holds the other."""
    is_made = STAMP.is_file() and os.access(PYTHON, os.X_OK)
    return is_made and STAMP.read_text(encoding="ascii") in {digest(lock), digest(DEV)}


def digest(lock: Path) -> str:
    return hashlib.sha256(lock.read_bytes()).hexdigest()


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """Let one start at a time prepare the environment; the lock ends with the process."""
    handle = os.open(HOME, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print("Waiting for another start, which prepares it ...", file=sys.stderr, flush=True)
        fcntl.flock(handle, fcntl.LOCK_EX)
    yield
    os.close(handle)


def prepare(lock: Path) -> None:
    """Make `.venv` unless one is there that works, and install the lock into it."""
    if not os.access(VENV if VENV.exists() else HOME, os.W_OK):
        stop(f"{HOME} is not writable, so the environment cannot be prepared in it.")
    how = "for what it lacks" if STAMP.exists() else "(first time only)"
    print(f"Preparing the environment {how} ...", file=sys.stderr, flush=True)
    if not (os.access(PYTHON, os.X_OK) and call(PYTHON, "-m", "pip", "--version")[0]):
        if not (importlib.util.find_spec("venv") and importlib.util.find_spec("ensurepip")):
            stop("This Python has no venv; on Debian or Ubuntu: apt install python3-venv.")
        made, output = call(sys.executable, "-m", "venv", "--clear", VENV)
        if not made:
            stop(f"{output}\n\nThe folder .venv could not be made.")
    STAMP.unlink(missing_ok=True)
    pip = (PYTHON, "-m", "pip", "install", "--no-input", "--disable-pip-version-check")
    # The lock has everything. pip would look for newer versions of what is needed with an extra.
    installed, output = call(*pip, "--no-deps", "--require-hashes", "-r", lock)
    if not installed:
        unreached = any(sign in output for sign in NO_NETWORK)
        why = " The package index was not reached: is there a network?" if unreached else ""
        stop(f"{output}\n\nThe packages could not be installed.{why}")
    STAMP.write_text(digest(lock), encoding="ascii")


def call(*command: str | Path) -> tuple[bool, str]:
    """Run a command; give whether it went well and the end of what it said."""
    merged = subprocess.STDOUT
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, stderr=merged, text=True)
    return done.returncode == 0, "\n".join(done.stdout.splitlines()[-12:])


def stop(sentence: str) -> NoReturn:
    own = "pip install --no-deps -r requirements.lock"
    sys.exit(f"{sentence}\nAn environment of your own works too: {own}")


if __name__ == "__main__":
    main()
