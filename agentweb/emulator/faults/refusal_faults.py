"""Faults that refuse the request before anything is answered."""

from __future__ import annotations

from collections.abc import Callable

from agentweb.emulator.errors import ApiError, Invalid, TooLarge
from agentweb.emulator.faults.fault import Fault

_LIMIT = (
    "This request would exceed the rate limit for your organization ({org}) of 40,000 "
    "input tokens per minute. "
    "For details, refer to: https://docs.claude.com/en/api/rate-limits."
)
_ORG = "5d9f2c1e-0000-4000-8000-000000000000"


def _rate_limited(fault: Fault) -> ApiError:
    headers = () if fault.arg == "none" else (("retry-after", fault.arg or "1"),)
    return ApiError(429, _LIMIT.format(org=_ORG), headers=headers)


def _spend_limit(_: Fault) -> ApiError:
    text = (
        "You have reached your specified API usage limits. You will regain access on "
        "2026-12-01 at 00:00 UTC."
    )
    return ApiError(429, text, {"error_code": "enforced_spend_limit_reached"})


def _plain(status: int, text: str) -> Callable[[Fault], ApiError]:
    return lambda _: ApiError(status, text)


def _status(fault: Fault) -> ApiError:
    code, _, after = fault.arg.partition(":")
    status = int(code) if code.isdigit() else 500
    if status == 413:
        return TooLarge()
    if status == 429:
        return _rate_limited(Fault("rate_limited", after or "none"))
    return ApiError(status, _TEXTS.get(status, "Internal server error"))


_TEXTS = {
    400: "The request was refused on purpose.",
    401: "invalid x-api-key",
    402: (
        "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing."
    ),
    403: "Your API key does not have permission to use the specified resource.",
    404: "model: not found",
    409: "The resource is in a state that conflicts with this request.",
    500: "Internal server error",
    503: "Service unavailable",
    504: "Request timed out",
    529: "Overloaded",
}

_REFUSALS: dict[str, Callable[[Fault], ApiError]] = {
    "status": _status,
    "bad_request": _plain(400, _TEXTS[400]),
    "authentication": _plain(401, _TEXTS[401]),
    "billing": _plain(402, _TEXTS[402]),
    "permission": _plain(403, _TEXTS[403]),
    "not_found": _plain(404, _TEXTS[404]),
    "conflict": _plain(409, _TEXTS[409]),
    "too_large": lambda _: TooLarge(),
    "rate_limited": _rate_limited,
    "spend_limit": _spend_limit,
    "spend400": _plain(
        400,
        "You have reached your specified API usage limits. You will regain access on 2026-12-01.",
    ),
    "api_error": _plain(500, _TEXTS[500]),
    "unavailable": _plain(503, _TEXTS[503]),
    "timeout": _plain(504, _TEXTS[504]),
    "overloaded": _plain(529, _TEXTS[529]),
    "overflow": lambda fault: Invalid(
        f"prompt is too long: {fault.number(217570)} tokens > 200000 maximum"
    ),
    "context_limit": lambda _: Invalid(
        "input length and `max_tokens` exceed context limit: 178959 + 64000 > 200000, "
        "decrease input length or `max_tokens` and try again"
    ),
    "compaction_unavailable": lambda _: ApiError(
        529, "Compaction is temporarily unavailable", {"error_code": "compaction_unavailable"}
    ),
}


def refusal(fault: Fault) -> ApiError | None:
    make = _REFUSALS.get(fault.name)
    return make(fault) if make else None


NAMES = frozenset(_REFUSALS)
