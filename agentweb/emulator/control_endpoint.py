"""The control endpoint for a test harness: order faults, read requests and bills, reset."""

from __future__ import annotations

from dataclasses import asdict

from agentweb.emulator import json_codec
from agentweb.emulator.errors import ApiError, Invalid
from agentweb.emulator.http_exchange import HttpExchange
from agentweb.emulator.state import Recorded

PREFIX = "/emulator"


async def handle(exchange: HttpExchange, body: bytes) -> None:
    emulator = exchange.emulator
    match exchange.scope["method"], exchange.path.removeprefix(PREFIX):
        case "POST", "/faults":
            emulator.ordered_faults.extend(_names(body))
            await exchange.answer_json({"waiting": emulator.ordered_faults})
        case "GET", "/bills":
            bills = [asdict(bill) for bill in emulator.bills.values()]
            await exchange.answer_json({"total_micros": emulator.billed_micros, "bills": bills})
        case "GET", "/requests":
            await exchange.answer_json({"requests": [_recorded(entry) for entry in emulator.log]})
        case "POST", "/reset":
            emulator.reset()
            await exchange.answer_json({})
        case _:
            raise ApiError(404, "Not Found")


def _names(body: bytes) -> list[str]:
    try:
        value = json_codec.decode(body)
    except json_codec.NotJson as error:
        raise Invalid(f"not JSON: {error}") from error
    names = value.get("faults") if isinstance(value, dict) else None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise Invalid('expected {"faults": ["name:arg", ...]}')
    return names


def _recorded(entry: Recorded) -> json_codec.Object:
    return {
        "request_id": entry.request_id,
        "path": entry.path,
        "status": entry.status,
        "at": entry.at,
        "body": entry.body.decode(errors="replace"),
    }
