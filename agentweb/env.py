"""The environment, read in one place and loudly: a bad value stops the start with its name."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured
from django.utils.translation import get_language_info, to_language

#: Digits of a number that means anything.
_MOST_DIGITS = 18
_TRUE, _FALSE = {"1", "true", "yes", "on"}, {"0", "false", "no", "off"}


def text(name: str, default: str = "") -> str:
    """Read a text; `<name>_FILE` names a file to read it from instead."""
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


def number(name: str, default: int = 0) -> int:
    value = text(name).strip()
    if not value:
        return default
    if re.fullmatch(r"-?[0-9]+(_[0-9]+)*", value) and len(value) <= _MOST_DIGITS:
        return int(value)
    raise ImproperlyConfigured(f"{name}: {value!r} is not a whole number")


def words(name: str, default: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Read a list separated by commas."""
    value = text(name)
    return tuple(part.strip() for part in value.split(",") if part.strip()) if value else default


def languages(folder: Path) -> list[tuple[str, str]]:
    """Give the languages that have a catalogue in the folder, English first, by their own names."""
    found = sorted(path.parent.parent.name for path in folder.glob("*/LC_MESSAGES/django.mo"))
    codes = [to_language(name) for name in found]
    return [(code, get_language_info(code)["name_local"]) for code in dict.fromkeys(["en", *codes])]


def typed(name: str, default: Any) -> Any:
    """Read a value of the default's type."""
    readers: dict[type, Callable[[str, Any], Any]] = {
        bool: flag,
        int: number,
        str: text,
        tuple: words,
    }
    return readers[type(default)](name, default)


def database(url: str) -> dict[str, Any]:
    """Turn DATABASE_URL into Django's form; SQLite with WAL and IMMEDIATE, PostgreSQL pooled."""
    try:
        parts = urlsplit(url)
        host, port, path = parts.hostname or "", parts.port, unquote(parts.path)
    except ValueError as error:
        raise ImproperlyConfigured(f"DATABASE_URL: {error}") from error
    if parts.scheme == "sqlite" and not host and path.strip("/"):
        return sqlite(Path("/" + path.lstrip("/")))
    if parts.scheme not in {"postgres", "postgresql"} or not path.strip("/"):
        raise ImproperlyConfigured(
            "DATABASE_URL: use sqlite:///path or postgresql://user@host/name"
        )
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": path.lstrip("/"),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": host,
        "PORT": str(port or ""),
        "CONN_MAX_AGE": 0,
        "OPTIONS": {
            "pool": {"min_size": 1, "max_size": 16, "timeout": 10},
            "connect_timeout": 3,
            "options": "-c statement_timeout=30s -c lock_timeout=5s"
            " -c idle_in_transaction_session_timeout=15s",
            **dict(parse_qsl(parts.query)),
        },
    }


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
    """Give the one SQLite configuration: deferred transactions would fail under writers."""
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": path,
        "CONN_MAX_AGE": 600,
        "OPTIONS": {
            "transaction_mode": "IMMEDIATE",
            "timeout": 20,
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;",
        },
    }
