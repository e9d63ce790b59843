"""A message batch: its requests, its progress and the result of each."""

from __future__ import annotations

from dataclasses import dataclass, field

from agentweb.emulator import json_codec
from agentweb.emulator.api_accounts import Account
from agentweb.emulator.clock import rfc3339
from agentweb.emulator.versions import Version

_DAY = 86_400
_KINDS = ("succeeded", "errored", "canceled", "expired")


@dataclass(slots=True, kw_only=True)
class Batch:
    id: str
    account: Account
    betas: frozenset[str]
    version: Version
    #: The custom id of each request and its parameters.
    requests: list[tuple[str, json_codec.Object]]
    created: float
    ends: float
    canceled: float | None = None
    #: Empty until the batch has ended.
    results: list[json_codec.Object] = field(default_factory=list)

    def as_json(self, home: str) -> json_codec.Object:
        count = dict.fromkeys(_KINDS, 0) | {"processing": 0 if self.results else self.size}
        for row in self.results:
            count[row["result"]["type"]] += 1
        status = "in_progress" if self.canceled is None else "canceling"
        ended = bool(self.results)
        return {
            "id": self.id,
            "type": "message_batch",
            "processing_status": "ended" if ended else status,
            "request_counts": count,
            "created_at": rfc3339(self.created),
            "expires_at": rfc3339(self.created + _DAY),
            "ended_at": rfc3339(self.ends) if ended else None,
            "cancel_initiated_at": None if self.canceled is None else rfc3339(self.canceled),
            "archived_at": None,
            "results_url": f"{home}/v1/messages/batches/{self.id}/results" if ended else None,
        }

    @property
    def size(self) -> int:
        return len(self.requests)
