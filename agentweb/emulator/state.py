"""The state of one emulator: cache, rate buckets, bills and, if recorded, every request."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Sequence
from dataclasses import dataclass, field

from agentweb.emulator.batch import Batch
from agentweb.emulator.cache import PromptCache
from agentweb.emulator.clock import Clock, SystemClock
from agentweb.emulator.errors import ApiError
from agentweb.emulator.file_store import FileStore
from agentweb.emulator.fingerprints import Fingerprints
from agentweb.emulator.ids import digest
from agentweb.emulator.prices import Tariff, cost_micros
from agentweb.emulator.prompt_units import TokenCounter
from agentweb.emulator.rate_limits import Buckets, Limits
from agentweb.emulator.scenes.scene import Scene
from agentweb.emulator.script import Script
from agentweb.emulator.usage import Usage


@dataclass(frozen=True, slots=True)
class Bill:
    """The usage of one request with its cost."""

    request_id: str
    model: str
    #: Every sampling iteration, compaction included.
    iterations: tuple[Usage, ...]
    cost_micros: int
    #: The final usage was sent, so the answer was not cut short.
    complete: bool


@dataclass(frozen=True, slots=True)
class Recorded:
    """One request as it arrived, and the status of its response."""

    request_id: str
    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    status: int
    at: float


@dataclass(kw_only=True)
class Emulator:
    scenes: Sequence[Scene]
    #: One of the scenes, which also chooses faults.
    script: Script | None = None
    clock: Clock = field(default_factory=SystemClock)
    seed: int = 0
    #: Seconds between two deltas.
    pace: float = 0.0
    #: Deltas per second, independent of readers, each with a timestamp; 0: `pace` applies.
    rate: float = 0.0
    record: bool = False
    limits: Limits = field(default_factory=Limits)
    #: The effect of a changed prefix when the request does not set one; older accounts drop.
    prefix_mismatch: str = "error"
    #: Whether thinking that another service signed is accepted, but not read; else it is refused.
    accepts_foreign_signatures: bool = False
    #: API keys that fail, besides the built-in ones.
    bad_keys: dict[str, ApiError] = field(default_factory=dict)
    bills: dict[str, Bill] = field(default_factory=dict)
    log: list[Recorded] = field(default_factory=list)
    cache: PromptCache = field(default_factory=PromptCache)
    counter: TokenCounter = field(default_factory=TokenCounter)
    fingerprints: Fingerprints = field(default_factory=Fingerprints)
    files: FileStore = field(default_factory=FileStore)
    #: Batches by id, in order of creation, and the seconds that one is in progress.
    batches: dict[str, Batch] = field(default_factory=dict)
    batch_seconds: float = 0.0
    #: Streams in progress; their bills are not final.
    open_streams: int = 0
    #: Faults ordered through the control endpoint, used in order.
    ordered_faults: list[str] = field(default_factory=list)
    _buckets: dict[str, Buckets] = field(default_factory=dict)
    _seen: Tally[bytes] = field(default_factory=Tally)

    def nonce(self, *parts: bytes) -> bytes:
        """Return a nonce that differs for every request and repeats in a run with the same seed."""
        key = digest(str(self.seed).encode(), *parts)
        return digest(key, str(self.times(key)).encode())

    def times(self, key: bytes) -> int:
        """Count a use of the key and return the number of its uses."""
        self._seen[key] += 1
        return self._seen[key]

    def buckets(self, organization: str) -> Buckets:
        if organization not in self._buckets:
            self._buckets[organization] = Buckets(self.limits, self.clock.now())
        return self._buckets[organization]

    def bill(
        self,
        request_id: str,
        model: str,
        iterations: tuple[Usage, ...],
        *,
        tariff: Tariff,
        complete: bool,
        searches: int = 0,
    ) -> Bill:
        cost = cost_micros(model, iterations, tariff=tariff, searches=searches)
        self.bills[request_id] = bill = Bill(request_id, model, iterations, cost, complete)
        return bill

    @property
    def billed_micros(self) -> int:
        """Return the sum of all bills."""
        return sum(bill.cost_micros for bill in self.bills.values())

    def reset(self) -> None:
        """Clear all state."""
        self.bills.clear()
        self.log.clear()
        self.cache.clear()
        self.fingerprints.clear()
        self.files.clear()
        self.batches.clear()
        self.ordered_faults.clear()
        self._buckets.clear()
        self._seen.clear()
