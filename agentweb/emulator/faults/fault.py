"""A fault, requested by header, by a word in the prompt, by model name or by control order.

`name[:arg][:xN]`: `overloaded`, `rate_limited:30`, `error_after:12`, `overloaded:x2` (only the
first two requests with these words). A word in a prompt is `emulator:fault=name...`, so that a
fault can be had through a browser.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_WORD = re.compile(r"emulator:fault=([A-Za-z0-9_]+(?::[A-Za-z0-9_./-]+)*)")
_SUMMARY = re.compile(r"emulator:summary=([a-z_]+)")
_TIMES = re.compile(r"x(\d+)$")


@dataclass(frozen=True, slots=True)
class Fault:
    name: str
    arg: str = ""
    #: Number of requests with the same text that it hits; 0 means all.
    times: int = 0

    def number(self, default: int) -> int:
        return int(self.arg) if self.arg.isdigit() else default

    def seconds(self, default: float) -> float:
        try:
            return float(self.arg)
        except ValueError:
            return default


def parse_fault(text: str) -> Fault:
    name, *rest = text.strip().split(":", 1)
    parts = rest[0].split(":") if rest else []
    times = 0
    if parts and (found := _TIMES.match(parts[-1])):
        times = int(found[1])
        parts.pop()
    return Fault(name, ":".join(parts), times)


def fault_in(text: str) -> Fault | None:
    """Return the last fault word in a prompt."""
    found = _WORD.findall(text)
    return parse_fault(found[-1]) if found else None


def summary_fault_in(text: str) -> str:
    """Return the kind of bad summary that a text orders; empty for none."""
    found = _SUMMARY.findall(text)
    return found[-1] if found else ""
