"""Which fault, if any, a request is to suffer."""

from __future__ import annotations

from agentweb.emulator.exchange import Exchange
from agentweb.emulator.faults.fault import Fault, fault_in, parse_fault
from agentweb.emulator.scenes.view import Request

_HEADER = "x-emulator-fault"


def choose_fault(exchange: Exchange, view: Request, *, background: bool) -> Fault | None:
    """The fault of a request, counted off if it is a limited one.

    A background request (summary, title) quotes the conversation, so fault words in it are not
    meant for it.
    """
    fault = _asked(exchange, view, background=background)
    if fault is None or not fault.times:
        return fault
    words = f"{fault}|{view.prompt}".encode("utf-8", "surrogatepass")
    return fault if exchange.emulator.times(words) <= fault.times else None


def _asked(exchange: Exchange, view: Request, *, background: bool) -> Fault | None:
    if header := exchange.headers.get(_HEADER):
        return parse_fault(header)
    if exchange.emulator.ordered_faults:
        return parse_fault(exchange.emulator.ordered_faults.pop(0))
    return None if background else fault_in(view.prompt)
