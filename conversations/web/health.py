"""Health checks for a load balancer: whether the process runs, and whether it can serve requests.

`live` does no I/O. `ready` queries the database in a single thread and answers within three seconds
whatever the database does: a hanging server blocks only this thread, and concurrent requests wait
for the same check. Redis carries only hints, so without it the site is slower but still ready.
"""

from __future__ import annotations

import logging
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock

import redis
from django.conf import settings
from django.db import DatabaseError, InterfaceError, connection
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from conversations.budgets.reconciliation import has_drift
from conversations.operations.db_damage import demand_undamaged
from conversations.operations.redis_address import connect_redis

logger = logging.getLogger("agentweb.views")
#: Seconds that a check may take; seconds of them for Redis.
LOOK_SECONDS, REDIS_SECONDS = 2.5, 1.0
NO_ANSWER = "The database does not answer."
NO_REDIS = "Redis does not answer: answers come with a delay until it is back."
DRIFT = "Budget windows differ from their ledger: run manage.py ledger."


@require_safe
def live(request: HttpRequest) -> HttpResponse:
    return HttpResponse("ok", content_type="text/plain")


@require_safe
def ready(request: HttpRequest) -> HttpResponse:
    """Report whether requests can be served: 503 while the database does not answer."""
    try:
        words = _look.begin().result(LOOK_SECONDS)
    except TimeoutError:
        logger.warning("not ready: the database did not answer in %s seconds", LOOK_SECONDS)
        return HttpResponse(NO_ANSWER, content_type="text/plain", status=503)
    except (DatabaseError, InterfaceError) as error:
        # The driver's text may name hosts and users, so it is logged and not returned.
        logger.warning("not ready: %s", error)
        return HttpResponse(NO_ANSWER, content_type="text/plain", status=503)
    if words:
        logger.warning("ready, but: %s", " ".join(words))
    return HttpResponse("\n".join(("ok", *words)), content_type="text/plain")


class _HealthCheck:
    """Runs one check at a time, whose result all concurrent requests share."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="health")
        self._lock = Lock()
        self._going: Future[tuple[str, ...]] | None = None

    def begin(self) -> Future[tuple[str, ...]]:
        with self._lock:
            if self._going is None or self._going.done():
                self._going = self._pool.submit(_run_check)
            return self._going


_look = _HealthCheck()


def _run_check() -> tuple[str, ...]:
    try:
        return list_problems()
    finally:
        connection.close()


def list_problems() -> tuple[str, ...]:
    """Return problems that do not prevent serving; raises for those that do."""
    demand_undamaged()
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    found = [DRIFT] if has_drift() else []
    if settings.REDIS_URL and not has_redis(settings.REDIS_URL):
        found.append(NO_REDIS)
    return tuple(found)


def has_redis(url: str) -> bool:
    """Return whether the Redis server answers within a second."""
    try:
        with connect_redis(url, REDIS_SECONDS) as one:
            return bool(one.ping())
    except redis.RedisError:
        return False
