"""One request to an address of the API: its key, its patience, and no redirect.

The key goes into a header and nowhere else; a service that asks to wait is asked again.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from urllib.parse import urlsplit

from agentweb.emulator import json_codec
from agentweb.emulator.comparison.known_requests import KnownRequest
from agentweb.emulator.comparison.outcome import Outcome, read_outcome

_SECONDS, _LONGEST_WAIT, _TRIES = 600, 60.0, 4
_BUSY = frozenset({429, 500, 502, 503, 504, 529})


class Unreachable(Exception):
    """The address does not answer; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where requests go; `key` is never part of its text."""

    url: str
    key: str
    #: Whether requests are retried while the service is busy.
    is_patient: bool = False
    pause: Callable[[float], None] = time.sleep

    def __repr__(self) -> str:
        return f"Address({self.url})"

    def ask(self, request: KnownRequest) -> Outcome:
        """Send a request and read its outcome; raises Unreachable."""
        tries = _TRIES if self.is_patient else 1
        for left in reversed(range(tries)):
            status, headers, body = self._send(request)
            if status not in _BUSY or not left:
                break
            self.pause(_read_wait(headers.get("retry-after", "")))
        # No service should return a key; if one does, it is not stored.
        body = body.replace(self.key.encode(), b"[key]") if self.key else body
        return read_outcome(status, headers.get("content-type", ""), body)

    def _send(self, request: KnownRequest) -> tuple[int, dict[str, str], bytes]:
        parts = urlsplit(self.url)
        kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        connection = kind(parts.hostname or "", parts.port, timeout=_SECONDS)
        headers = {
            "x-api-key": self.key,
            "anthropic-version": request.version,
            "content-type": "application/json",
        }
        if request.beta:
            headers["anthropic-beta"] = request.beta
        body = None if request.body is None else json_codec.encode(request.body)
        method, path = "GET" if body is None else "POST", parts.path.rstrip("/") + request.path
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            told = {name.lower(): value for name, value in answer.getheaders()}
            return answer.status, told, answer.read()
        except (OSError, HTTPException, ValueError) as error:
            raise Unreachable(f"{self.url} does not answer: {error}") from None
        finally:
            connection.close()


def _read_wait(told: str) -> float:
    try:
        return min(max(0.0, float(told)), _LONGEST_WAIT)
    except ValueError:
        return 5.0
