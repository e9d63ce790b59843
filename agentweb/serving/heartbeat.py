"""Heartbeats: each process reports in Redis, and in a file, what it is and which code it runs.

A heartbeat is sent only while the event loop runs, so a process that hangs stops sending. Only
`manage.py doctor` and the health check of a container read them; which process may run a turn is
decided by the leases in the database.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

import redis
from django.conf import settings

from conversations.operations.redis_address import connect_redis
from conversations.telemetry.event_loop_lag import pulse

logger = logging.getLogger("agentweb.alive")
Kind = Literal["web", "worker", "beat"]
#: Seconds between two heartbeats, and seconds after which one has expired.
EVERY, LASTS = 10, 35
_KEY = "agentweb:alive:"
#: Seconds that a process waits for Redis.
PATIENCE = 2.0
_CODE = ("agentweb", "conversations", "tools", "templates")


@dataclass(frozen=True, slots=True)
class Sign:
    """One live process."""

    kind: str
    host: str
    pid: int
    code: str


@cache
def code_version() -> str:
    """Return a digest of the code of this process: equal where every file is equal."""
    digest = hashlib.sha256()
    for folder in _CODE:
        for path in sorted((Path(settings.BASE_DIR) / folder).rglob("*")):
            if path.suffix in {".py", ".html"}:
                digest.update(path.relative_to(settings.BASE_DIR).as_posix().encode())
                digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def find_sign_file(kind: Kind) -> Path | None:
    """Return the heartbeat file for the container's health check; None if there is none."""
    folder = settings.ALIVE_DIR
    return Path(folder) / f"agentweb-{kind}.alive" if folder else None


class Signs:
    """The heartbeats of this process, from `begin` to its end."""

    def __init__(self, kind: Kind, *, every: float = EVERY) -> None:
        self._sign = Sign(kind, socket.gethostname(), os.getpid(), code_version())
        self._file, self._every = find_sign_file(kind), every
        self._ended = threading.Event()
        self._is_good = True

    def begin(self) -> None:
        threading.Thread(target=self._go_on, name="alive", daemon=True).start()

    def end(self) -> None:
        self._ended.set()
        if self._file is not None:
            with suppress(OSError):
                self._file.unlink(missing_ok=True)
        self._use_redis(lambda server: server.delete(self._key))

    def _go_on(self) -> None:
        while not self._ended.is_set():
            if pulse.is_beating:
                self.give()
            self._ended.wait(self._every)

    def give(self) -> None:
        """Send one heartbeat; that it failed is logged once, until one succeeds whole."""
        text = json.dumps(asdict(self._sign))
        found = (
            self._write_file(),
            self._use_redis(lambda server: server.set(self._key, text, ex=LASTS)),
        )
        errors = [type(error).__name__ for error in found if error is not None]
        if errors and self._is_good:
            logger.warning("no sign of life could be given: %s", ", ".join(errors))
        self._is_good = not errors

    @property
    def _key(self) -> str:
        return f"{_KEY}{self._sign.kind}:{self._sign.host}:{self._sign.pid}"

    def _write_file(self) -> OSError | None:
        """Write the file; return the error, since a full disk may have room the next time."""
        if self._file is not None:
            try:
                self._file.write_text(str(time.time()), encoding="ascii")
            except OSError as error:
                return error
        return None

    def _use_redis(self, what: Any) -> redis.RedisError | None:
        if settings.REDIS_URL:
            try:
                with connect_redis(settings.REDIS_URL, PATIENCE) as server:
                    what(server)
            except redis.RedisError as error:
                return error
        return None


@contextmanager
def give_signs(kind: Kind) -> Iterator[None]:
    """Send heartbeats for as long as a process works."""
    signs = Signs(kind)
    signs.begin()
    try:
        yield
    finally:
        signs.end()


def list_signs() -> list[Sign]:
    """Return the live processes; raises RedisError."""
    with connect_redis(settings.REDIS_URL, PATIENCE) as server:
        keys = sorted(server.scan_iter(f"{_KEY}*", count=500))
        found = [server.get(key) for key in keys]
    return [Sign(**json.loads(text)) for text in found if text]
