"""Choose the fault that a request meets."""

from __future__ import annotations

import re

from agentweb.emulator.faults.fault import Fault, fault_in, parse_fault
from agentweb.emulator.http_exchange import HttpExchange
from agentweb.emulator.scenes.view import Request

_HEADER = "x-emulator-fault"
_PACE_HEADER = "x-emulator-pace"
_PACE = re.compile(r"emulator:pace=(\d+(?:\.\d+)?)")
_SLOWEST = 60.0


def choose_pace(exchange: HttpExchange, view: Request) -> float:
    """Return the seconds between deltas: of a header, of the prompt, or the emulator's."""
    requested = exchange.headers.get(_PACE_HEADER) or next(iter(_PACE.findall(view.prompt)), "")
    try:
        return min(float(requested), _SLOWEST) if requested else exchange.emulator.pace
    except ValueError:
        return exchange.emulator.pace


def choose_fault(exchange: HttpExchange, view: Request, *, background: bool) -> Fault | None:
    """Return the fault of a request; count it if it is limited.

    A background request (summary, title) quotes the conversation, so its fault words do not count.
    """
    fault = _find_requested(exchange, view, background=background)
    if fault is None or not fault.times:
        return fault
    words = f"{fault}|{view.prompt}".encode("utf-8", "surrogatepass")
    return fault if exchange.emulator.times(words) <= fault.times else None


def _find_requested(exchange: HttpExchange, view: Request, *, background: bool) -> Fault | None:
    if header := exchange.headers.get(_HEADER):
        return parse_fault(header)
    if exchange.emulator.ordered_faults:
        return parse_fault(exchange.emulator.ordered_faults.pop(0))
    _, _, named = view.model.partition("+")
    if named:
        return parse_fault(named)
    if background:
        return None
    script = exchange.emulator.script
    if script is not None and (name := script.fault(view)):
        return parse_fault(name)
    return fault_in(view.prompt)
