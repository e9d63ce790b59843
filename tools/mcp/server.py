"""Where an MCP server is, and what it is told: a command on this machine or a URL."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from tools.framework.outside_access import WebAccess

#: Bytes of one message of a server, its results among them.
MOST_MESSAGE = 12_000_000


@dataclass(frozen=True, slots=True)
class Command:
    program: str
    arguments: tuple[str, ...]
    #: the whole environment of the process
    environment: tuple[tuple[str, str], ...] = field(repr=False)
    #: where it runs; made on first use
    folder: Path


@dataclass(frozen=True, slots=True)
class Address:
    url: str
    headers: tuple[tuple[str, str], ...] = field(repr=False)
    access: WebAccess


#: Shorter ones are words that texts have anyway.
SHORTEST_SECRET = 6


@dataclass(frozen=True, slots=True)
class Server:
    name: str
    place: Command | Address
    #: seconds a call may take
    deadline: float = 60.0
    #: seconds between two looks at its list of tools
    check_seconds: float = 300.0

    def unsaid(self, text: str) -> str:
        """Take out of what it said the secrets it was given, which servers like to repeat."""
        place = self.place
        given = place.headers if isinstance(place, Address) else place.environment
        parts = {part for _, value in given for part in (value, *value.split())}
        for secret in sorted(parts, key=len, reverse=True):
            if len(secret) >= SHORTEST_SECRET:
                text = text.replace(secret, "[secret]")
        return text
