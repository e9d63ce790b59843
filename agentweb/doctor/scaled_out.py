"""Checks of the scaled-out mode: Redis, workers, beat."""

from __future__ import annotations

from collections.abc import Iterator

import redis
from django.conf import settings

from agentweb.doctor.report_lines import Line, failed, ok, warn
from agentweb.serving.heartbeat import PATIENCE, Sign, code_version, list_signs
from conversations.conf import conf
from conversations.operations.redis_address import connect_redis

#: The oldest Redis version that is tested.
LEAST = (6, 2)


def check_redis() -> Iterator[Line]:
    if not settings.REDIS_URL:
        yield ok("redis", "not used")
        return
    try:
        with connect_redis(settings.REDIS_URL, PATIENCE) as server:
            facts = server.info()
    except redis.AuthenticationError:
        yield failed("redis", "it refuses the password", "Correct REDIS_URL.")
        return
    except redis.RedisError as error:
        text = f"it does not answer ({type(error).__name__})"
        yield failed("redis", text, "Start it, or correct REDIS_URL.")
        return
    version = str(facts["redis_version"])
    if tuple(map(int, version.split(".")[:2])) < LEAST:
        yield warn("redis", f"{version} is old", "Use Redis 6.2 or newer.")
    else:
        yield ok("redis", version)
    policy = facts.get("maxmemory_policy", "noeviction")
    if facts.get("maxmemory") and policy != "noeviction":
        text = f"it forgets keys when it is full ({policy}): tasks could be among them"
        yield warn("redis memory", text, "Set maxmemory-policy to noeviction.")


def check_processes() -> Iterator[Line]:
    if not settings.REDIS_URL or conf.run_turns_in != "worker":
        return
    try:
        alive = list_signs()
    except redis.RedisError:
        yield failed("processes", "unknown without Redis", "Mend Redis first.")
        return
    kinds = {kind: [one for one in alive if one.kind == kind] for kind in ("web", "worker", "beat")}
    yield _counted("workers", kinds["worker"], "Start `manage.py worker`: no turn runs without.")
    yield _counted("web processes", kinds["web"], "Start `manage.py serve`.")
    yield _counted("beat", kinds["beat"], "Start `manage.py beat`: nothing is verified without.")
    if len(kinds["beat"]) > 1:
        text = f"{len(kinds['beat'])} run, so everything is done as often"
        yield warn("beat", text, "Stop all but one.")
    other = sorted({f"{one.kind} {one.host}" for one in alive if one.code != code_version()})
    if other:
        text = f"other code than this runs in: {', '.join(other[:5])}"
        yield warn("code", text, "Finish the deployment: one version everywhere.")
    elif alive:
        yield ok("code", f"{code_version()} everywhere")


def _counted(name: str, found: list[Sign], hint: str) -> Line:
    return ok(name, f"{len(found)} alive") if found else failed(name, "none is alive", hint)


CHECKS = (check_redis, check_processes)
