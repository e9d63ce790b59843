"""Fingerprints of recent requests, from which cache diagnostics are made."""

from __future__ import annotations

from dataclasses import dataclass, field

from agentweb.emulator.call import Call

_MOST = 10_000


@dataclass(frozen=True, slots=True)
class Fingerprint:
    model: str
    tools: bytes
    system: bytes
    messages: tuple[bytes, ...]
    choices: bytes
    #: Tokens that the cache held for it.
    cached: int


@dataclass(slots=True)
class Fingerprints:
    """The most recent requests that can be diagnosed."""

    _known: dict[tuple[str, str, str], Fingerprint] = field(default_factory=dict)

    def of(self, call: Call, message_id: str) -> Fingerprint | None:
        return self._known.get(_key(call, message_id))

    def keep(self, call: Call, message_id: str, made: Fingerprint) -> None:
        if len(self._known) >= _MOST:
            self._known.pop(next(iter(self._known)))
        self._known[_key(call, message_id)] = made

    def clear(self) -> None:
        self._known.clear()


def _key(call: Call, message_id: str) -> tuple[str, str, str]:
    return call.account.organization, call.account.workspace, message_id
