"""The trials that the page shows: where several processes serve it, Redis has a copy of each.

A trial runs in the process that was asked for it, and the page may be asked of any other. A copy
holds figures and no text of the conversation. If Redis is away, a process shows its own trials.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from dataclasses import fields, replace
from typing import Any

from django.conf import settings
from redis import RedisError

from conversations.lab.facts import Shares
from conversations.lab.report import Report, Tokens
from conversations.operations.redis_address import connect_redis
from conversations.reductions.trials import MOST_SECONDS, Trial, Trials

logger = logging.getLogger("agentweb.trials")
_KEY = "agentweb:trial:"
#: Seconds that a request waits for Redis, and for which the copy of an ended trial is kept.
PATIENCE, KEPT_SECONDS = 1.0, 86_400.0


class SharedTrials(Trials):
    """The trials of this process, and copies of those of the others."""

    def find(self, user_id: int) -> Trial | None:
        own = super().find(user_id)
        if not settings.REDIS_URL or (own is not None and own.is_running):
            return own
        try:
            with connect_redis(settings.REDIS_URL, PATIENCE) as server:
                text = server.get(f"{_KEY}{user_id}")
        except RedisError as error:
            logger.warning("no copy of a trial could be read: %s", type(error).__name__)
            return own
        return read_copy(text) if text else own

    def put(self, user_id: int, trial: Trial, seconds: float = MOST_SECONDS) -> None:
        super().put(user_id, trial, seconds)
        if not settings.REDIS_URL:
            return
        # The copy of a trial whose process ended expires, so that another one can be started.
        lasts = seconds if trial.is_running else KEPT_SECONDS
        try:
            with connect_redis(settings.REDIS_URL, PATIENCE) as server:
                server.set(f"{_KEY}{user_id}", write_copy(trial), px=int(lasts * 1_000))
        except RedisError as error:
            logger.warning("no copy of a trial could be kept: %s", type(error).__name__)


def write_copy(trial: Trial) -> str:
    """Return a trial as JSON, without the times of its single calls."""
    reports = tuple(map(_strip_times, trial.reports))
    actual = _strip_times(trial.actual) if trial.actual else None
    return json.dumps(replace(trial, reports=reports, actual=actual), default=_list_fields)


def read_copy(text: str | bytes) -> Trial | None:
    """Read the JSON of a trial; None if another version of the code wrote it."""
    try:
        data = json.loads(text)
        actual = _read_report(data["actual"]) if data["actual"] else None
        reports = tuple(map(_read_report, data["reports"]))
        names = tuple(data["names"])
        return Trial(**(data | {"names": names, "reports": reports, "actual": actual}))
    except (KeyError, TypeError):
        return None


def _strip_times(report: Report) -> Report:
    return replace(report, decide=[], join=[])


def _list_fields(value: Any) -> dict[str, Any]:
    return {field.name: getattr(value, field.name) for field in fields(value)}


def _read_report(data: dict[str, Any]) -> Report:
    parts: dict[str, Any] = {
        **{name: Tokens(**data[name]) for name in ("tokens", "summaries")},
        **{name: Counter(data[name]) for name in ("applied", "others")},
        **{name: Shares(**data[name]) for name in ("facts", "sole", "own")},
    }
    return Report(**(data | parts))


trials = SharedTrials()
