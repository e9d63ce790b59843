"""Sessions, each with its person and what they are shown of it; and the store that writes them.

Django's own table knows no person, so nobody could be shown theirs. The columns are copies of what
is in the session's data, written with it.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.backends.base import UpdateError
from django.contrib.sessions.backends.db import SessionStore as DatabaseStore
from django.contrib.sessions.base_session import AbstractBaseSession
from django.db import DatabaseError, connection, models
from django.utils import timezone

from conversations.models.people import User

#: Names in a session's data: seconds of the log-in and of the last request noted, and from where.
BEGAN, MOVED, DEVICE, NETWORK = "began", "moved", "device", "network"


class Session(AbstractBaseSession):
    user = models.ForeignKey(User, null=True, on_delete=models.CASCADE, related_name="sessions")
    #: In words, such as "Firefox, Windows".
    device = models.CharField(max_length=60, blank=True)
    #: The network of the last address, not the address.
    network = models.CharField(max_length=60, blank=True)
    began_at = models.DateTimeField(null=True)
    seen_at = models.DateTimeField(null=True)

    @classmethod
    def get_session_store_class(cls) -> type[SessionStore]:
        return SessionStore

    def __str__(self) -> str:
        # The key opens the account.
        return "a session"


class SessionStore(DatabaseStore):
    """Django's store in the database, on the table above.

    `noted` is its data where nothing changed in it but the time of the last request: what a
    database that takes nothing may lose, so that people go on reading.
    """

    noted: dict[str, Any] | None = None

    @classmethod
    def get_model_class(cls) -> type[Session]:
        return Session

    def load(self) -> dict[str, Any]:
        # By hand: every request does it, and the ORM takes ten times as long to write the
        # statement as the database takes to run it.
        table = Session._meta.db_table
        with connection.cursor() as cursor:
            cursor.execute(
                f"SELECT session_data FROM {table} WHERE session_key = %s AND expire_date > %s",  # noqa: S608
                [self.session_key, connection.ops.adapt_datetimefield_value(timezone.now())],
            )
            found = cursor.fetchone()
        if found is None:
            self._session_key = None
            return {}
        return self.decode(found[0])

    def save(self, must_create: bool = False) -> None:
        try:
            super().save(must_create)
        except UpdateError as error:
            # Django takes any failure of the database for a session that is gone, which would be
            # the visitor's bad request. Of one that is gone it says so by an error of no kind.
            failure = error.__context__
            if not isinstance(failure, DatabaseError) or type(failure) is DatabaseError:
                raise
            if self.noted != dict(self.items()):
                raise failure from failure.__cause__

    def create_model_instance(self, data: dict[str, Any]) -> Session:
        row = super().create_model_instance(data)
        assert isinstance(row, Session)  # noqa: S101
        row.user_id = int(data[SESSION_KEY]) if SESSION_KEY in data else None
        row.device, row.network = data.get(DEVICE, ""), data.get(NETWORK, "")
        row.began_at, row.seen_at = _read_time(data, BEGAN), _read_time(data, MOVED)
        return row


def _read_time(data: dict[str, Any], name: str) -> datetime | None:
    return datetime.fromtimestamp(data[name], UTC) if name in data else None
