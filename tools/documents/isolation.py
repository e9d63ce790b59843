"""A child process for one document: bytes in, parts out; a crash of it affects nothing else.

The child limits itself before it parses (child.py); here are the deadline, the number of children
at once and the cap on their output.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tools.documents.child import MOST_CHARACTERS
from tools.documents.parts import Part
from tools.framework.clean_text import quote
from tools.framework.errors import FileRefusedError, InputError, WorkspaceBusyError

#: seconds until a child is killed; its limit of processor time is lower
DEADLINE = 30.0
#: seconds to wait until another child ends
PATIENCE = 20.0
#: JSON needs up to six bytes for a character, and twelve outside the Basic Multilingual Plane
MOST_BYTES = 12 * MOST_CHARACTERS + 1_000_000
ROOT = str(Path(__file__).resolve().parents[2])
START = (
    "import sys; sys.path.insert(0, sys.argv[1]); from tools.documents.child import main; main()"
)

_slots = threading.BoundedSemaphore(2)


def read_in_child(data: bytes, kind: str, name: str, part: str) -> list[Part]:
    """Read a document in a child; raises FileRefusedError and InputError."""
    request = json.dumps({"kind": kind, "part": part}).encode() + b"\n"
    with _reserve_slot():
        answer, code = _run_child(request + data)
    parsed = _parse_answer(answer) if code == 0 else {}
    if "parts" in parsed:
        return [Part(*each) for each in parsed["parts"]]
    if parsed.get("unknown"):
        raise InputError(f"{quote(name)}: {parsed['unknown']}")
    reason = parsed.get("refused") or (
        "it could not be read within the limits of time and memory, or it is damaged"
    )
    raise FileRefusedError(f"{quote(name)} is not read: {reason}.")


def _parse_answer(answer: bytes) -> dict[str, Any]:
    try:
        parsed: dict[str, Any] = json.loads(answer)
    except ValueError:  # cut at MOST_BYTES
        return {}
    return parsed


def _run_child(request: bytes) -> tuple[bytes, int]:
    child = subprocess.Popen(
        [sys.executable, "-I", "-c", START, ROOT],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={},
        start_new_session=True,
    )
    assert child.stdin and child.stdout  # noqa: S101, PT018  both are pipes
    timer = threading.Timer(DEADLINE, child.kill)
    timer.start()
    try:
        with suppress(BrokenPipeError):  # the child has exited: its exit code is reported below
            child.stdin.write(request)
            child.stdin.close()
        answer = child.stdout.read(MOST_BYTES + 1)
    finally:
        timer.cancel()
        child.stdout.close()  # ends a child that still writes: its next write fails
        code = child.wait(timeout=DEADLINE)
    return answer, code


@contextmanager
def _reserve_slot() -> Iterator[None]:
    if not _slots.acquire(timeout=PATIENCE):
        raise WorkspaceBusyError("Other documents are being read; try again in a moment.")
    try:
        yield
    finally:
        _slots.release()
