"""The session check: a socket whose session is over, or whose user may no longer read, is closed.

Logging out, another password, a deactivated account end a session; no event says so, and a socket
was authorised by the session it came with. So all are asked about at once, every few seconds.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from conversations.accounts.sessions import find_valid_sessions
from conversations.db import run_db

if TYPE_CHECKING:
    from conversations.live.consumer import ChatConsumer

#: Why the socket is closed; the page asks for the log-in.
LOGGED_OUT = 4401


class SessionCheck:
    """The sessions that held at the last check, each with what vouched for it."""

    def __init__(self) -> None:
        self._valid: dict[str, str] = {}

    async def end_invalid(self, sockets: Collection[ChatConsumer]) -> None:
        """Close the sockets whose session does not hold any more; two statements."""
        owners = {socket.session_key: socket.conversation.owner_id for socket in sockets}
        self._valid = await run_db(find_valid_sessions, owners, self._valid)
        for socket in sockets:
            if socket.session_key not in self._valid:
                await socket.end(LOGGED_OUT)
