"""Errors of the API: a status, a type, a text, and sometimes details and headers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from agentweb.emulator import json_codec

TYPES: Mapping[int, str] = MappingProxyType(
    {
        400: "invalid_request_error",
        401: "authentication_error",
        402: "billing_error",
        403: "permission_error",
        404: "not_found_error",
        405: "invalid_request_error",
        409: "conflict_error",
        413: "request_too_large",
        429: "rate_limit_error",
        500: "api_error",
        503: "api_error",
        504: "timeout_error",
        529: "overloaded_error",
    }
)


@dataclass(eq=False)
class ApiError(Exception):
    status: int
    message: str
    #: `error.details`, for errors with a machine-readable code.
    details: json_codec.Object | None = None
    headers: tuple[tuple[str, str], ...] = ()
    type: str = field(default="")

    def __post_init__(self) -> None:
        super().__init__(self.message)
        self.type = self.type or TYPES.get(self.status, "api_error")

    def envelope(self, request_id: str) -> json_codec.Object:
        error: json_codec.Object = {"type": self.type, "message": self.message}
        if self.details is not None:
            error["details"] = self.details
        return {"type": "error", "error": error, "request_id": request_id}


class Invalid(ApiError):
    """A 400 of type `invalid_request_error`."""

    def __init__(self, message: str, *, code: str = "") -> None:
        super().__init__(400, message, {"error_code": code} if code else None)


class TooLarge(ApiError):
    """A refusal by the edge in front of the API: its body is a page and not JSON."""

    def __init__(self) -> None:
        super().__init__(413, "Request exceeds the maximum size")
