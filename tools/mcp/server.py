"""An MCP server: a command on this machine or a URL, and its limits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tools.framework.outside_access import WebAccess

#: Most bytes of one message of a server; a result is one.
MOST_MESSAGE = 12_000_000

#: Called with the reason that a connection is lost, and the end of what a child wrote to its
#: error output.
Lost = Callable[[str, str], None]


@dataclass(frozen=True, slots=True)
class Command:
    program: str
    arguments: tuple[str, ...]
    #: the full environment of the process
    environment: tuple[tuple[str, str], ...] = field(repr=False)
    #: the working directory; made on first use
    folder: Path


@dataclass(frozen=True, slots=True)
class Address:
    url: str
    headers: tuple[tuple[str, str], ...] = field(repr=False)
    access: WebAccess


#: Shorter values are not redacted: any text may contain them.
SHORTEST_SECRET = 6


@dataclass(frozen=True, slots=True)
class Server:
    name: str
    endpoint: Command | Address
    #: seconds a call may take
    deadline: float = 60.0
    #: seconds between two reads of its list of tools
    check_seconds: float = 300.0

    def redact(self, text: str) -> str:
        """Replace the secrets of the server's settings, which servers often repeat."""
        at = self.endpoint
        pairs = at.headers if isinstance(at, Address) else at.environment
        parts = {part for _, value in pairs for part in (value, *value.split())}
        for secret in sorted(parts, key=len, reverse=True):
            if len(secret) >= SHORTEST_SECRET:
                text = text.replace(secret, "[secret]")
        return text
