"""Addresses of Redis: of one server, or of the sentinels that know which server it is now.

    redis://[user:password@]host[:6379][/0]    rediss:// for TLS, unix:///path[?db=0]
    redis+sentinel://[user:password@]host[:26379][,host ...]/name[/0][?sentinel_password=...]

User and password are the server's; sentinels seldom have one, and then it is named. redis-py,
channels_redis and Celery each take sentinels in a form of their own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

if TYPE_CHECKING:
    from redis import Redis

SENTINEL = "redis+sentinel"
SENTINEL_PORT = 26_379
_HOST = re.compile(r"(?P<host>[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:(?P<port>[0-9]{1,5}))?")


@dataclass(frozen=True, slots=True)
class Sentinels:
    """Sentinels, the name by which they know the server, and how to log in there."""

    hosts: tuple[tuple[str, int], ...]
    name: str
    number: int = 0
    login: dict[str, str] = field(default_factory=dict)
    own_login: dict[str, str] = field(default_factory=dict)


def is_address(url: str) -> bool:
    """Return whether a URL is an address of Redis."""
    try:
        if urlsplit(url).scheme == SENTINEL:
            return bool(parse_sentinels(url).hosts)
        parts = urlsplit(url)
        is_server = parts.scheme in {"redis", "rediss"} and bool(parts.hostname)
        is_sound = is_server and parts.port != 0 and re.fullmatch(r"/?[0-9]{0,3}", parts.path)
    except ValueError:
        return False
    return bool(is_sound) or url.startswith("unix:///")


def find_number(url: str) -> str:
    """Return the number of the database that an address names."""
    parts = urlsplit(url)
    last = parts.path.rpartition("/")[2]
    if parts.scheme == "unix":
        last = parse_qs(parts.query).get("db", [""])[0]
    return last if last.isdigit() else "0"


def parse_sentinels(url: str) -> Sentinels:
    """Read an address with sentinels; raises ValueError."""
    parts = urlsplit(url)
    login, _, hosts = parts.netloc.rpartition("@")
    name, _, number = parts.path.strip("/").partition("/")
    found = [_HOST.fullmatch(one) for one in hosts.split(",")]
    if not name or not re.fullmatch(r"[0-9]{0,3}", number):
        raise ValueError("an address with sentinels ends with /name or /name/0")
    user, _, password = login.partition(":")
    named = {"username": unquote(user), "password": unquote(password)}
    own = parse_qs(parts.query).get("sentinel_password", [""])[0]
    return Sentinels(
        tuple(_read_host(one) for one in found),
        unquote(name),
        int(number or 0),
        {key: value for key, value in named.items() if value},
        {"password": own} if own else {},
    )


def _read_host(found: re.Match[str] | None) -> tuple[str, int]:
    port = int(found["port"] or SENTINEL_PORT) if found else 0
    if found is None or not 0 < port < 65_536:
        raise ValueError("a sentinel is host or host:26379")
    return found["host"].strip("[]"), port


def connect_redis(url: str, seconds: float) -> Redis:
    """Return a client that waits so long for a connection, and for an answer."""
    import redis
    from redis import sentinel

    limits: dict[str, Any] = {"socket_timeout": seconds, "socket_connect_timeout": seconds}
    if urlsplit(url).scheme != SENTINEL:
        return redis.Redis.from_url(url, **limits)
    one = parse_sentinels(url)
    own: dict[str, Any] = one.own_login | limits
    make_sentinel: Any = sentinel.Sentinel
    watched = make_sentinel(
        list(one.hosts), sentinel_kwargs=own, db=one.number, **one.login, **limits
    )
    found: Redis = watched.master_for(one.name)
    return found


def make_channel_host(url: str, seconds: float) -> dict[str, Any]:
    """Return the host of channels_redis for an address."""
    limits = {"socket_timeout": seconds, "socket_connect_timeout": seconds}
    if urlsplit(url).scheme != SENTINEL:
        return {"address": url, **limits}
    one = parse_sentinels(url)
    own = {"sentinels": list(one.hosts), "master_name": one.name, "db": one.number}
    return own | {"sentinel_kwargs": one.own_login | limits} | one.login | limits


def make_broker(url: str) -> tuple[str, dict[str, Any]]:
    """Return the broker's URL and transport options of Celery for an address."""
    limits = {"socket_timeout": 5, "socket_connect_timeout": 2}
    parts = urlsplit(url)
    if parts.scheme == "unix":
        return url.replace("unix:", "redis+socket:", 1).replace("db=", "virtual_host=", 1), limits
    if parts.scheme == "rediss" and "ssl_" not in parts.query:
        # Else Celery would take any certificate, unlike redis-py.
        return f"{url}{'&' if parts.query else '?'}ssl_cert_reqs=required", limits
    if parts.scheme != SENTINEL:
        return url, limits
    one = parse_sentinels(url)
    user, password = (quote(one.login.get(key, ""), "") for key in ("username", "password"))
    login = f"{user}:{password}@" if one.login else ""
    named = ((f"[{host}]" if ":" in host else host, port) for host, port in one.hosts)
    urls = ";".join(f"sentinel://{login}{host}:{port}/{one.number}" for host, port in named)
    own = {"master_name": one.name, "sentinel_kwargs": one.own_login | limits}
    return urls, limits | own
