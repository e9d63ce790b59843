"""Access to sockets: only pages of a session, and only while the session is valid.

Browsers send cookies with every handshake, whichever site's page starts it, so a handshake needs a
token that only our own pages contain; each log-in has a new one. Logging out, a new password and
deactivation end a session without any event, so the sessions of all open sockets are checked every
few seconds.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from django.conf import settings
from django.utils.crypto import constant_time_compare, salted_hmac

from conversations.accounts.sessions import find_valid_sessions

if TYPE_CHECKING:
    from conversations.live.consumer import ChatConsumer

_SALT = "agentweb.socket"
#: Close code when the session is over; the page then shows the log-in.
LOGGED_OUT = 4401


def socket_token(session_key: str | None, secret: str | None = None) -> str:
    """Return the token of a session, by the site's secret key; "" without a session."""
    if not session_key:
        return ""
    return salted_hmac(_SALT, session_key, secret, algorithm="sha256").hexdigest()


def has_token(query: bytes, session_key: str | None) -> bool:
    """Return whether a handshake carries the token of its session."""
    named = parse_qs(query.decode("ascii", "replace")).get("token", [])
    if not session_key or len(named) != 1:
        return False
    # A page that is open may have its token of a former key.
    secrets = (None, *map(str, settings.SECRET_KEY_FALLBACKS))
    return any(constant_time_compare(named[0], socket_token(session_key, one)) for one in secrets)


class SessionCheck:
    """The sessions that were valid at the last check, each with the evidence for it."""

    def __init__(self) -> None:
        self._valid: dict[str, str] = {}

    def read(self, owners: Mapping[str, int]) -> None:
        """Read which sessions of these users are still valid; two queries."""
        self._valid = find_valid_sessions(owners, self._valid)

    async def end_invalid(self, sockets: Collection[ChatConsumer]) -> None:
        """Close the sockets whose session was not valid when it was read."""
        for socket in sockets:
            if socket.session_key not in self._valid:
                await socket.end(LOGGED_OUT)
