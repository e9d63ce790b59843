"""Signatures of thinking: a running hash over system, tools and every earlier block.

A thinking block is not part of that hash but names the thinking block before it, so that taking
thinking from the front leaves the rest valid and taking one from the middle breaks all later ones.
A compaction block carries the state of the range it replaces, which is why thinking kept directly
behind it stays valid.
"""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass
from typing import Self

from agentweb.emulator import json_codec
from agentweb.emulator.canonical_blocks import essence, tool_essence
from agentweb.emulator.ids import digest

_SECRET = b"agentweb emulator, not a secret"


@dataclass(frozen=True, slots=True)
class Seal:
    """What a signature covers."""

    model: str
    account: str
    system: str
    tools: str
    state: str
    previous: str
    content: str
    tokens: int

    @property
    def id(self) -> str:
        return digest(_SECRET, self._payload()).hex()[:16]

    def encode(self) -> str:
        payload = self._payload()
        return base64.b64encode(digest(_SECRET, payload) + payload).decode()

    @classmethod
    def decode(cls, signature: str) -> Self | None:
        """Return the seal in a signature; None unless it is one of ours and unchanged."""
        try:
            raw = base64.b64decode(signature, validate=True)
        except (ValueError, binascii.Error):
            return None
        if len(raw) < 16 or digest(_SECRET, raw[16:]) != raw[:16]:
            return None
        return cls(*json.loads(raw[16:]))

    def _payload(self) -> bytes:
        fields = [self.model, self.account, self.system, self.tools]
        return json_codec.encode([*fields, self.state, self.previous, self.content, self.tokens])


def content_hash(text: str) -> str:
    return digest(text.encode("utf-8", "surrogatepass")).hex()[:16]


class Chain:
    """The running hash of one request, continued through its answer."""

    def __init__(self, *, system: json_codec.Value, tools: list[json_codec.Object] | None) -> None:
        fixed = [tool for tool in tools or [] if not tool.get("defer_loading")]
        self.system = _short(essence({"role": "system", "content": system or []}))
        self.tools = _short(*(tool_essence(tool) for tool in fixed))
        self.state = _short(b"start")
        #: Seal id of the last thinking block; empty before the first.
        self.previous = ""

    def absorb(self, role: str, block: json_codec.Object) -> None:
        """Add one block other than thinking to the hash."""
        if block["type"] == "fallback":
            return
        if block["type"] == "compaction":
            carried = Seal.decode(
                str(block.get("signature") or block.get("encrypted_content") or "")
            )
            if carried is not None:
                self.state = carried.state
                self.previous = ""
                return
        self.state = _short(self.state.encode(), role.encode(), essence(block))

    def seal(self, *, model: str, account: str, text: str, tokens: int) -> Seal:
        return Seal(
            model,
            account,
            self.system,
            self.tools,
            self.state,
            self.previous,
            content_hash(text),
            tokens,
        )


def _short(*parts: bytes) -> str:
    return digest(*parts).hex()[:16]
