"""Addresses of Redis: of one server, or of the sentinels that know which server it is now.

    redis://[user:password@]host[:6379][/0]    rediss:// for TLS, unix:///path[?db=0]
    redis+sentinel://[user:password@]host[:26379][,host ...]/name[/0][?sentinel_password=...]

User and password are the server's; sentinels seldom have one, and then it is named. redis-py,
channels_redis and Celery each take sentinels in a form of their own.

A server's options follow a question mark, by redis-py's names (`?health_check_interval=30`). Celery
takes those of TLS alone there: the others become options of its transport.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, parse_qsl, quote, unquote, urlencode, urlsplit

if TYPE_CHECKING:
    from redis import Redis

SENTINEL = "redis+sentinel"
SENTINEL_PORT = 26_379
_HOST = re.compile(r"(?P<host>[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:(?P<port>[0-9]{1,5}))?")
_NUMBER, _FLAG, _TEXT = r"[0-9]{1,6}", r"[Tt]rue|[Ff]alse", r".+"
_SECONDS = r"[0-9]{1,6}(\.[0-9]{1,3})?"
_TLS = {
    "ssl_cert_reqs": "required|optional|none", "ssl_check_hostname": _FLAG, "ssl_ca_certs": _TEXT,
    "ssl_ca_path": _TEXT, "ssl_certfile": _TEXT, "ssl_keyfile": _TEXT, "ssl_password": _TEXT,
    "ssl_ciphers": _TEXT,
}  # fmt: skip
#: Options of a server that Celery's transport takes, too.
_TRANSPORT = {
    "health_check_interval": _NUMBER, "socket_timeout": _SECONDS,
    "socket_connect_timeout": _SECONDS, "retry_on_timeout": _FLAG, "client_name": _TEXT,
    "socket_keepalive": _FLAG,
}  # fmt: skip
_PLAIN = _TRANSPORT | {"protocol": "2|3", "max_connections": _NUMBER}
_LOCAL = {name: _PLAIN[name] for name in _PLAIN if name != "socket_keepalive"}
#: The options of each scheme, and the pattern of their values.
OPTIONS = {
    "redis": _PLAIN,
    "rediss": _PLAIN | _TLS,
    "unix": _LOCAL | {"db": _NUMBER, "username": _TEXT, "password": _TEXT},
    SENTINEL: {"sentinel_password": _TEXT},
}


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


def find_wrong_option(url: str) -> str:
    """Return the name of an option that an address cannot have, or not with its value; "": none.

    What may be the rest of a password that has a question mark is not repeated.
    """
    parts = urlsplit(url)
    known = OPTIONS[parts.scheme]
    if "@" in parts.query:
        return "what follows the question mark"
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        if name not in known or not re.fullmatch(known[name], value):
            return name
    return ""


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
    limits: dict[str, Any] = {"socket_timeout": 5, "socket_connect_timeout": 2}
    parts = urlsplit(url)
    if parts.scheme != SENTINEL:
        named = dict(parse_qsl(parts.query))
        limits |= {name: _read_option(named[name]) for name in _TRANSPORT if name in named}
        own = {name: value for name, value in named.items() if name not in _PLAIN}
        address, _, _ = url.partition("?")
        if parts.scheme == "unix":
            # Celery reads user and password before the path alone.
            login = _write_login(own.pop("username", ""), own.pop("password", ""))
            address = f"redis+socket://{login}{parts.path}"
            own = {"virtual_host": own["db"]} if "db" in own else {}
        if parts.scheme == "rediss" and not own:
            # Else Celery would take any certificate, unlike redis-py.
            own = {"ssl_cert_reqs": "required"}
        return f"{address}?{urlencode(own)}" if own else address, limits
    return _make_sentinel_broker(url, limits)


def _read_option(value: str) -> float | bool | str:
    if value.lower() in {"true", "false"}:
        return value.lower() == "true"
    if re.fullmatch(_SECONDS, value):
        return float(value) if "." in value else int(value)
    return value


def _write_login(username: str = "", password: str = "") -> str:
    found = f"{quote(username, '')}:{quote(password, '')}@"
    return found if username or password else ""


def _make_sentinel_broker(url: str, limits: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    one = parse_sentinels(url)
    login = _write_login(**one.login)
    named = ((f"[{host}]" if ":" in host else host, port) for host, port in one.hosts)
    urls = ";".join(f"sentinel://{login}{host}:{port}/{one.number}" for host, port in named)
    own = {"master_name": one.name, "sentinel_kwargs": one.own_login | limits}
    return urls, limits | own
