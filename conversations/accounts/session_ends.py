"""When sessions end: some time after the last request, and some time after the log-in.

The end is the session's own expiry date, so pages and sockets agree on it. It is moved only once
some minutes have passed, so most requests write nothing.
"""

from __future__ import annotations

import time
from copy import deepcopy
from datetime import UTC, datetime

from django.contrib.sessions.backends.base import SessionBase

from conversations.conf import conf
from conversations.models.sessions import BEGAN, DEVICE, MOVED, NETWORK, SessionStore

_HOUR = 3_600
#: A request is noted when the last one noted was so many seconds ago, or a tenth of the idle time.
_NOTED_EVERY = 600


def begin_session(
    session: SessionBase, now: float | None = None, *, device: str = "", network: str = ""
) -> None:
    """Note the log-in and where it came from, and set the first end."""
    session[BEGAN] = int(time.time() if now is None else now)
    session[DEVICE], session[NETWORK] = device, network
    _move_end(session, session[BEGAN])


def renew_session(session: SessionBase, now: float | None = None, *, network: str = "") -> bool:
    """Move the end of a session in use; return False if it has lasted its whole time."""
    now = time.time() if now is None else now
    if BEGAN not in session:
        # Of a log-in before this was noted.
        begin_session(session, now, network=network)
    whole, idle = conf.session_hours * _HOUR, conf.session_idle_hours * _HOUR
    passed = now - session.get(MOVED, 0)
    if (whole and now >= session[BEGAN] + whole) or (idle and passed >= idle):
        return False
    if passed > min(idle / 10 or _NOTED_EVERY, _NOTED_EVERY):
        _move_end(session, now)
        if network:
            session[NETWORK] = network
        if isinstance(session, SessionStore):
            session.noted = deepcopy(dict(session.items()))
    return True


def _move_end(session: SessionBase, now: float) -> None:
    session[MOVED] = int(now)
    left = [hours * _HOUR for hours in (conf.session_idle_hours,) if hours]
    if conf.session_hours:
        left.append(int(session[BEGAN] + conf.session_hours * _HOUR - now))
    # A date, not a span: a span would begin anew whenever something is stored in the session.
    end = now + max(min(left, default=10 * 365 * 24 * _HOUR), 1)
    session.set_expiry(datetime.fromtimestamp(end, UTC))
