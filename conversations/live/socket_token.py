"""The token of a socket: it is opened by a page of this session, not merely with its cookie.

Browsers send cookies with every handshake, whatever page asks for it; the token is only in our own
pages. A new log-in has a new one.
"""

from __future__ import annotations

from urllib.parse import parse_qs

from django.utils.crypto import constant_time_compare, salted_hmac

_SALT = "agentweb.socket"


def socket_token(session_key: str | None) -> str:
    """Make the token of a session; nobody without a session has one."""
    if not session_key:
        return ""
    return salted_hmac(_SALT, session_key, algorithm="sha256").hexdigest()


def has_token(query: bytes, session_key: str | None) -> bool:
    """Say whether a handshake names the token of its session."""
    named = parse_qs(query.decode("ascii", "replace")).get("token", [])
    expected = socket_token(session_key)
    return bool(expected) and len(named) == 1 and constant_time_compare(named[0], expected)
