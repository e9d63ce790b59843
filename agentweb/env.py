"""Reads environment variables, in one place; an invalid value stops the start and is named."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured
from django.utils.translation import get_language_info, to_language

from conversations.context.policy.share import parse_share
from conversations.operations import redis_address

#: Most digits of a meaningful number.
_MOST_DIGITS = 18
#: Executions of a statement on a connection after which it is prepared there.
_PREPARED_AFTER = 3
#: Every variable that was asked for: the names of all settings, once they are read.
asked: set[str] = set()
_TRUE, _FALSE = {"1", "true", "yes", "on"}, {"0", "false", "no", "off"}


def text(name: str, default: str = "") -> str:
    """Read a text; `<name>_FILE` names a file to read it from instead."""
    asked.add(name)
    path = os.environ.get(f"{name}_FILE")
    if path:
        try:
            return Path(path).read_text(encoding="utf-8").strip()
        except (OSError, ValueError) as error:
            raise ImproperlyConfigured(f"{name}_FILE: cannot read {path}: {error}") from error
    return os.environ.get(name, default)


def flag(name: str, default: bool = False) -> bool:
    value = text(name).strip().lower()
    if not value:
        return default
    if value in _TRUE | _FALSE:
        return value in _TRUE
    raise ImproperlyConfigured(f"{name}: {value!r} is neither true nor false")


def number(
    name: str, default: int = 0, *, least: int | None = None, most: int | None = None
) -> int:
    value = text(name).strip()
    if not value:
        return default
    if not re.fullmatch(r"-?[0-9]+(_[0-9]+)*", value) or len(value) > _MOST_DIGITS:
        raise ImproperlyConfigured(f"{name}: {value!r} is not a whole number")
    found = int(value)
    if least is not None and found < least:
        raise ImproperlyConfigured(f"{name}: {found:,} is less than {least:,}")
    if most is not None and found > most:
        raise ImproperlyConfigured(f"{name}: {found:,} is more than {most:,}")
    return found


def choice(name: str, choices: tuple[str, ...]) -> str:
    """Read one of the given words; the first is the default."""
    value = text(name).strip() or choices[0]
    if value in choices:
        return value
    raise ImproperlyConfigured(f"{name}: {value!r} is none of {', '.join(choices)}")


def words(name: str, default: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Read a list separated by commas."""
    value = text(name)
    return tuple(part.strip() for part in value.split(",") if part.strip()) if value else default


def origins(name: str) -> list[str]:
    """Read a list of origins as browsers send them: in small letters, with no slash at the end."""
    found = [word.lower().rstrip("/") for word in words(name)]
    for origin in found:
        if not re.fullmatch(r"https?://[^/\s]+", origin):
            raise ImproperlyConfigured(
                f"{name}: {origin!r} is no origin such as https://chat.example.org"
            )
    return found


def list_languages(folder: Path) -> list[tuple[str, str]]:
    """Return code and own name of the languages with a catalogue in the folder, English first."""
    found = sorted(path.parent.parent.name for path in folder.glob("*/LC_MESSAGES/django.mo"))
    codes = [to_language(name) for name in found]
    return [(code, get_language_info(code)["name_local"]) for code in dict.fromkeys(["en", *codes])]


def typed(name: str, default: Any) -> Any:
    """Read a value of the type of the default."""
    readers: dict[type, Callable[[str, Any], Any]] = {
        bool: flag,
        int: number,
        str: text,
        tuple: words,
    }
    return readers[type(default)](name, default)


def threshold(name: str, default: int) -> int | str:
    """Read a number, or a share of a window such as 60%."""
    value = text(name).strip()
    return value if parse_share(value) else number(name, default)


def database(
    url: str, *, pool: int = 16, prepares: bool = True, name: str = "DATABASE_URL"
) -> dict[str, Any]:
    """Convert a URL to Django's form; SQLite with WAL and IMMEDIATE, PostgreSQL pooled."""
    try:
        parts = urlsplit(url)
        host, _, path = parts.hostname or "", parts.port, unquote(parts.path)
    except ValueError:
        # Neither Python's message nor its cause: they may quote the password.
        raise ImproperlyConfigured(
            f"{name}: it is no URL; in user and password write / as %2F, : as %3A, @ as %40"
        ) from None
    if parts.scheme == "sqlite" and not host and path.strip("/"):
        return sqlite(Path("/" + path.lstrip("/")))
    if parts.scheme not in {"postgres", "postgresql"} or not path.strip("/"):
        raise ImproperlyConfigured(f"{name}: use sqlite:///path or postgresql://user@host/name")
    return _postgresql(parts, path.lstrip("/"), pool, prepares=prepares)


def owner_database(url: str, *, name: str = "AGENTWEB_MIGRATE_DATABASE_URL") -> dict[str, Any]:
    """Return the connection of the tables' owner: PostgreSQL without a pool, for one command."""
    found = database(url, name=name)
    if found["ENGINE"] != "django.db.backends.postgresql":
        raise ImproperlyConfigured(f"{name}: it is for PostgreSQL alone")
    # What one command repeats needs no preparing.
    del found["OPTIONS"]["pool"], found["OPTIONS"]["prepare_threshold"]
    return found


def _postgresql(parts: SplitResult, name: str, pool: int, *, prepares: bool) -> dict[str, Any]:
    from agentweb import postgres_timeouts

    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": name,
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": parts.hostname or "",
        "PORT": str(parts.port or ""),
        "CONN_MAX_AGE": 0,
        "OPTIONS": {
            "pool": postgres_timeouts.make_pool(pool),
            # Planning the statements of a turn takes the server longer than executing them, so
            # what a connection repeats is prepared. That needs parameters bound by the server.
            "server_side_binding": True,
            "prepare_threshold": _PREPARED_AFTER if prepares else None,
            **postgres_timeouts.make_options(),
            **dict(parse_qsl(parts.query)),
        },
    }


def api_address(name: str) -> str:
    """Read the address of an HTTP API, to which a client adds its paths; "" for the API's own."""
    value = text(name).strip()
    try:
        parts = urlsplit(value)
        is_sound = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_sound = False
    if value and not (is_sound and re.fullmatch(r"[^\s?#]+", value)):
        # It is not quoted: it may have a password.
        raise ImproperlyConfigured(
            f"{name}: use https://host or http://host:port, also with a path"
        ) from None
    return value


def redis(name: str) -> str:
    """Read the address of Redis (`conversations/operations/redis_address.py`); "" for none."""
    value = text(name).strip()
    if not value:
        return value
    if redis_address.is_address(value):
        wrong = redis_address.find_wrong_option(value)
        if not wrong:
            return value
        known = ", ".join(redis_address.OPTIONS[urlsplit(value).scheme])
        raise ImproperlyConfigured(
            f"{name}: {wrong} is no option of such an address, or not with this value; there are"
            f" {known}"
        )
    raise ImproperlyConfigured(
        f"{name}: use redis://host:6379/0 (rediss:// for TLS), or for sentinels"
        f" {redis_address.SENTINEL}://host:26379,host:26379/name/0"
    )


def mail_server(name: str) -> dict[str, Any]:
    """Read the address of a mail server as Django's settings; {} for none."""
    value = text(name).strip()
    if not value:
        return {}
    ports = {"smtp": 587, "smtps": 465, "smtp+plain": 25}
    try:
        parts = urlsplit(value)
        host, port = parts.hostname or "", parts.port or ports[parts.scheme]
    except (ValueError, KeyError):
        host = ""
    if not host:
        # Neither Python's message nor its cause: they may quote the password.
        raise ImproperlyConfigured(
            f"{name}: use smtp://user:password@host:587; in user and password write / as %2F,"
            " : as %3A, @ as %40"
        ) from None
    return {
        "EMAIL_HOST": host,
        "EMAIL_PORT": port,
        "EMAIL_HOST_USER": unquote(parts.username or ""),
        "EMAIL_HOST_PASSWORD": unquote(parts.password or ""),
        "EMAIL_USE_TLS": parts.scheme == "smtp",
        "EMAIL_USE_SSL": parts.scheme == "smtps",
    }


def log_in_providers(name: str) -> list[dict[str, Any]]:
    """Read the OpenID providers as keyword arguments of `OpenIdProvider`."""
    # Errors never quote the value: it has secrets.
    try:
        found = json.loads(text(name).strip() or "[]")
    except ValueError:
        raise ImproperlyConfigured(f"{name}: not JSON") from None
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise ImproperlyConfigured(f"{name}: use a list of objects")
    for number, each in enumerate(found, 1):
        if problem := _find_provider_problem(each):
            raise ImproperlyConfigured(f"{name}: provider {number}: {problem}")
    if len({each["id"] for each in found}) < len(found):
        raise ImproperlyConfigured(f"{name}: two providers have the same id")
    return found


def _find_provider_problem(provider: dict[str, Any]) -> str:
    kinds: dict[str, type] = dict.fromkeys(("id", "name", "server", "client_id"), str)
    missing = [key for key in kinds if not provider.get(key)]
    if missing:
        return f"{', '.join(missing)} missing"
    kinds |= {"client_secret": str, "groups_claim": str, "groups": dict, "required": list}
    kinds |= {"scopes": list, "new_accounts": bool, "links_verified_email": bool}
    wrong = [key for key, value in provider.items() if not isinstance(value, kinds.get(key, ()))]
    if wrong:
        return f"{', '.join(wrong)} unknown, or of another type"
    if not re.fullmatch(r"[a-z0-9-]{1,40}", provider["id"]):
        return "id: use small letters, digits and -"
    parts = urlsplit(provider["server"])
    is_here = parts.hostname in {"localhost", "127.0.0.1", "::1"}
    return "" if parts.scheme == "https" or is_here else "server: use https://"


def storage(name: str) -> dict[str, Any]:
    """Read a Django storage as JSON, {"BACKEND": "dotted.Class", "OPTIONS": {...}}; {} for none."""
    value = text(name).strip()
    if not value:
        return {}
    try:
        found = json.loads(value)
    except ValueError as error:
        raise ImproperlyConfigured(f"{name}: not JSON: {error}") from error
    is_storage = isinstance(found, dict) and isinstance(found.get("BACKEND"), str)
    if not is_storage or not isinstance(found.get("OPTIONS", {}), dict) or len(found) > 2:
        raise ImproperlyConfigured(f'{name}: use {{"BACKEND": "dotted.Class", "OPTIONS": {{}}}}')
    return dict(found)


def sqlite(path: Path) -> dict[str, Any]:
    """Return the only SQLite configuration: deferred transactions fail under several writers."""
    return {
        "ENGINE": "agentweb.sqlite",
        "NAME": path,
        "CONN_MAX_AGE": 600,
        "OPTIONS": {
            "transaction_mode": "IMMEDIATE",
            "timeout": 20,
            # Deleted bytes are overwritten, so that what is erased is not left in free pages. Each
            # connection caches few pages: it would forget them with the next write of another, and
            # the system caches the file.
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
            " PRAGMA secure_delete=ON; PRAGMA cache_size=-256;",
        },
    }


def describe_unwritable(folder: Path, error: OSError) -> str:
    """Return the error text for a data folder that cannot be used."""
    return (
        f"nothing can be written to {folder}: {error.strerror or error}; set AGENTWEB_DATA_DIR to a"
        " folder that this user may write to"
    )


def make_namespace(redis_url: str, secret: str) -> str:
    """Return the prefix for the Redis channels of one installation.

    Redis delivers a published message in all databases of a server, so without a prefix an
    installation would receive the messages of others on the same server.
    """
    number = redis_address.find_number(redis_url)
    return f"agentweb.{number}.{sha256(f'relay:{secret}'.encode()).hexdigest()[:16]}."
