"""Rate limits as token buckets, and their headers.

Cache reads do not count as input. Limits are off by default, because a load test should measure the
caller and not a made-up tier.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

from agentweb.emulator.clock import rfc3339
from agentweb.emulator.errors import ApiError

Kind = Literal["requests", "input-tokens", "output-tokens"]
_UNITS: dict[Kind, str] = {
    "requests": "requests",
    "input-tokens": "input tokens",
    "output-tokens": "output tokens",
}


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits per minute: those of the documented start tier."""

    requests: int = 1_000
    input_tokens: int = 2_000_000
    output_tokens: int = 400_000
    enforced: bool = False

    def of(self, kind: Kind) -> int:
        match kind:
            case "requests":
                return self.requests
            case "input-tokens":
                return self.input_tokens
            case "output-tokens":
                return self.output_tokens


@dataclass(slots=True)
class Buckets:
    """The remaining allowance of one organization."""

    limits: Limits
    filled_at: float
    left: dict[Kind, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.left = {kind: float(self.limits.of(kind)) for kind in _UNITS}

    def take(self, kind: Kind, amount: int, now: float) -> None:
        self._refill(now)
        self.left[kind] -= amount

    def admit(self, organization: str, input_tokens: int, now: float) -> None:
        """Raise the API's 429 for a request that exceeds the remaining allowance."""
        self._refill(now)
        needs: dict[Kind, int] = {"requests": 1, "input-tokens": input_tokens, "output-tokens": 1}
        for kind, need in needs.items():
            if self.limits.enforced and self.left[kind] < min(need, self.limits.of(kind)):
                raise self._refusal(kind, organization, need, now)
        self.left["requests"] -= 1

    def headers(self, now: float) -> list[tuple[str, str]]:
        self._refill(now)
        lines: list[tuple[str, str]] = []
        for kind in _UNITS:
            lines += self._lines(kind, self.limits.of(kind), self.left[kind], now)
        limit = self.limits.input_tokens + self.limits.output_tokens
        left = self.left["input-tokens"] + self.left["output-tokens"]
        name = "anthropic-ratelimit-tokens"
        lines.append((f"{name}-limit", str(limit)))
        lines.append((f"{name}-remaining", str(_rounded(left))))
        lines.append((f"{name}-reset", rfc3339(now + max(0.0, (limit - left) * 60 / limit))))
        return lines

    def _lines(self, kind: Kind, limit: int, left: float, now: float) -> list[tuple[str, str]]:
        name = f"anthropic-ratelimit-{kind}"
        remaining = max(0, int(left)) if kind == "requests" else _rounded(left)
        full_in = max(0.0, (limit - left) * 60 / limit)
        return [
            (f"{name}-limit", str(limit)),
            (f"{name}-remaining", str(remaining)),
            (f"{name}-reset", rfc3339(now + math.ceil(full_in))),
        ]

    def _refill(self, now: float) -> None:
        minutes = max(0.0, now - self.filled_at) / 60
        self.filled_at = now
        for kind in self.left:
            limit = self.limits.of(kind)
            self.left[kind] = min(float(limit), self.left[kind] + limit * minutes)

    def _refusal(self, kind: Kind, organization: str, need: int, now: float) -> ApiError:
        limit = self.limits.of(kind)
        wait = math.ceil((min(need, limit) - self.left[kind]) * 60 / limit)
        text = (
            f"This request would exceed the rate limit for your organization ({organization}) of "
            f"{limit:,} {_UNITS[kind]} per minute. For details, refer to: "
            f"https://docs.claude.com/en/api/rate-limits."
        )
        headers = (("retry-after", str(max(1, wait))), *self.headers(now))
        return ApiError(429, text, headers=headers)


def _rounded(tokens: float) -> int:
    """Round token figures to the nearest thousand, as the headers show them."""
    return max(0, round(tokens / 1_000) * 1_000)
