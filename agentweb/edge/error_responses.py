"""Error responses made by the server itself, with the headers that every response has."""

from __future__ import annotations

from functools import cache
from http import HTTPStatus

from django.conf import settings


@cache
def make_headers() -> tuple[tuple[bytes, bytes], ...]:
    """Return the headers of a response that no application made."""
    policy = settings.CONTENT_SECURITY_POLICY["DIRECTIVES"].items()
    found = {
        "Content-Type": "text/plain; charset=utf-8",
        "Content-Security-Policy": "; ".join(" ".join([name, *words]) for name, words in policy),
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": settings.X_FRAME_OPTIONS,
        "Referrer-Policy": settings.SECURE_REFERRER_POLICY,
        "Cross-Origin-Opener-Policy": settings.SECURE_CROSS_ORIGIN_OPENER_POLICY,
        "Cache-Control": "no-store",
    }
    if settings.HTTPS:
        more = "; includeSubDomains; preload" if settings.HSTS_PRELOAD else ""
        age = f"max-age={settings.SECURE_HSTS_SECONDS}"
        found["Strict-Transport-Security"] = age + more
    return tuple((name.encode(), value.encode()) for name, value in found.items())


def describe_status(status: int) -> bytes:
    """Return the body for a status; it repeats nothing of the request."""
    return f"{status} {HTTPStatus(status).phrase}\n".encode()


def make_refusal(status: int) -> bytes:
    """Return a complete response, after which the connection ends."""
    body = describe_status(status)
    lines = [
        b"HTTP/1.1 " + body.strip(),
        *(b": ".join(pair) for pair in make_headers()),
        b"Content-Length: %d" % len(body),
        b"Connection: close",
    ]
    if status == HTTPStatus.SERVICE_UNAVAILABLE:
        lines.append(b"Retry-After: 5")
    return b"\r\n".join(lines) + b"\r\n\r\n" + body
