"""System checks that stop a start with unusable settings; each says what to change.

Because they are system checks, `serve`, `worker`, `beat` and `check` all run them. Checks that need
the address or the database are in startup.py.
"""

from __future__ import annotations

import logging
import os
import re
import sys
from difflib import get_close_matches
from email.utils import parseaddr
from importlib import metadata, util
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core import checks
from django.core.checks import CheckMessage, Error, Tags, register
from django.core.mail.message import sanitize_address
from django.http.request import split_domain_port

from agentweb import env
from agentweb.observability import tracing
from agentweb.serving.host import find_file_system, is_on_network
from conversations.conf import PREFIX, conf

#: What is checked at a start: how the site is installed and set. What depends on its code alone,
#: models, admin and commands, is checked with the code, and would cost a start a tenth of a second.
START_CHECKS = (Tags.security, Tags.compatibility, Tags.caches, Tags.files)
#: Fewest characters of a secret key, and fewest different ones among them.
KEY_LENGTH, KEY_VARIETY = 32, 8
#: The major version of the SDK whose behaviour is known: its retry rules changed between majors.
SDK_MAJOR = "2"
#: Loggers whose lines would contain whole prompts or keys.
TELLING = ("", "anthropic", "httpx2", "httpcore2", "django.db.backends")
#: Beginnings of variables that are no settings: of compose.yaml, of Kubernetes for the service
#: `agentweb`, of `manage.py demo`, and of the tests and their programs.
NOT_SETTINGS = tuple(
    PREFIX + name
    for name in ("BIND", "PORT", "SERVICE_", "DEMO", "TEST_", "RIG_", "CHROMIUM", "PG_BIN")
)


def is_weak(key: str) -> bool:
    """Return whether a key could be guessed; the key made at the first start never is."""
    is_short = len(key) < KEY_LENGTH or len(set(key)) < KEY_VARIETY
    return is_short or key.startswith("django-insecure-") or "change" in key.lower()


@register(Tags.security)
def check_secret_key(**_: Any) -> list[CheckMessage]:
    if not (settings.HTTPS and is_weak(settings.SECRET_KEY)):
        return []
    return [Error(
        f"SECRET_KEY is weak: it needs {KEY_LENGTH} random characters or more.",
        hint="Set it to the output of `openssl rand -hex 32`, or leave it out and keep the data"
        " folder: then one is made.",
        id="agentweb.E010",
    )]  # fmt: skip


@register(Tags.security)
def check_hosts(**_: Any) -> list[CheckMessage]:
    if "*" not in settings.ALLOWED_HOSTS:
        return []
    hint = "Name the hosts in AGENTWEB_HOSTS, such as chat.example.org."
    return [Error("AGENTWEB_HOSTS allows every host.", hint=hint, id="agentweb.E011")]


@register(Tags.security)
def check_host_names(**_: Any) -> list[CheckMessage]:
    """Refuse what is in no request's Host header, so that every page would be refused silently."""
    names = [name.removeprefix(".") for name in settings.ALLOWED_HOSTS if name != "*"]
    hint = "Name hosts alone, such as chat.example.org, or .example.org for it and all below it."
    return [
        Error(f"AGENTWEB_HOSTS names {name}, which is no host.", hint=hint, id="agentweb.E019")
        for name in names
        if split_domain_port(name) != (name.lower(), "")
    ]


@register(Tags.security)
def check_mail_sender(**_: Any) -> list[CheckMessage]:
    """Refuse a sender with which no mail can be written."""
    try:
        address = parseaddr(sanitize_address(settings.DEFAULT_FROM_EMAIL, "utf-8"))[1]
    except ValueError:
        address = ""
    # Django takes a name alone, such as `Chat`, which mail servers refuse mail by mail.
    if not re.fullmatch(r"[^@\s]+@[^@\s]+", address):
        hint = "Use an address such as chat@example.org, or Chat <chat@example.org>."
        return [Error("AGENTWEB_MAIL_FROM is no e-mail address.", hint=hint, id="agentweb.E021")]
    return []


@register(Tags.security)
def check_database_folder(**_: Any) -> list[CheckMessage]:
    database = settings.DATABASES["default"]
    if "sqlite" not in database["ENGINE"] or not is_on_network(Path(database["NAME"]).parent):
        return []
    kind = find_file_system(Path(database["NAME"]).parent)
    return [Error(
        f"The SQLite database {database['NAME']} is on a network file system ({kind}), where its"
        " locks do not hold.",
        hint="Set AGENTWEB_DATA_DIR to a folder of a local disk, or DATABASE_URL to PostgreSQL.",
        id="agentweb.E012",
    )]  # fmt: skip


@register(Tags.security)
def check_log_levels(**_: Any) -> list[CheckMessage]:
    loud = [
        name or "root"
        for name in TELLING
        if logging.getLogger(name).level in range(1, logging.INFO)
    ]
    hint = "Set them to INFO or higher; AGENTWEB_LOG_LEVEL=DEBUG is for the app's own lines."
    text = "Prompts would be written to the log: these loggers are at DEBUG: "
    found = [Error(f"{text}{', '.join(loud)}.", hint=hint, id="agentweb.E013")] if loud else []
    if os.environ.get("ANTHROPIC_LOG") == "debug":
        text = "Prompts would be written to the log: ANTHROPIC_LOG is debug."
        found.append(Error(text, hint="Unset ANTHROPIC_LOG.", id="agentweb.E013"))
    return list(found)


@register(Tags.compatibility)
def check_sdk_version(**_: Any) -> list[CheckMessage]:
    version = metadata.version("anthropic")
    if version.partition(".")[0] == SDK_MAJOR:
        return []
    return [Error(
        f"The anthropic SDK {version} is not one this version was tried with.",
        hint=f"Install the lock: pip install --no-deps --require-hashes -r requirements.lock"
        f" (anthropic {SDK_MAJOR}.x).",
        id="agentweb.E014",
    )]  # fmt: skip


@register(Tags.compatibility)
def check_extras(**_: Any) -> list[CheckMessage]:
    wanted = [("AGENTWEB_METRICS", settings.METRICS, "metrics", "prometheus_client",
               "prometheus-client"),
              ("OTEL_EXPORTER_OTLP_ENDPOINT", tracing.is_wanted(), "telemetry",
               "opentelemetry.exporter",
               "opentelemetry-sdk opentelemetry-exporter-otlp-proto-http")]  # fmt: skip
    # The packages of this process, which may be those of `.venv` and not the shell's.
    pip = Path(sys.prefix) / "bin" / "pip"
    return [
        Error(
            f"{name} is set and the extra `{extra}` is not installed.",
            hint=f"{pip} install {packages} (of an image: EXTRAS={extra}), or unset {name}.",
            id="agentweb.E015",
        )
        for name, is_wanted, extra, module, packages in wanted
        if is_wanted and not _is_installed(module)
    ]


def _is_installed(module: str) -> bool:
    try:
        return util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


@register(Tags.compatibility)
def check_run_turns_in(**_: Any) -> list[CheckMessage]:
    place = conf.run_turns_in
    if place == "web":
        return []
    if place != "worker":
        hint = "Use web or worker."
        return [Error(f"AGENTWEB_RUN_TURNS_IN is {place!r}.", hint=hint, id="agentweb.E016")]
    database = settings.DATABASES["default"]["ENGINE"]
    missing = [
        (not settings.REDIS_URL, "no REDIS_URL is set, by which they are told of turns",
         "Set REDIS_URL, such as redis://localhost:6379/0."),
        ("sqlite" in database, "the database is SQLite, which is for one process",
         "Set DATABASE_URL to PostgreSQL."),
        (not (settings.ANTHROPIC_API_KEY or settings.ANTHROPIC_BASE_URL),
         ("they could reach no model: there is no ANTHROPIC_API_KEY, and the built-in emulator runs"
          " in a web process alone"),
         "Set ANTHROPIC_API_KEY, or ANTHROPIC_BASE_URL to `manage.py emulator` on its own."),
    ]  # fmt: skip
    return [
        Error(f"AGENTWEB_RUN_TURNS_IN=worker: turns are to run in workers, but {why}.", hint=hint,
              id="agentweb.E017")
        for is_missing, why, hint in missing
        if is_missing
    ]  # fmt: skip


@register(Tags.security)
def check_metrics_access(**_: Any) -> list[CheckMessage]:
    if not settings.METRICS or not settings.METRICS_TOKEN or len(settings.METRICS_TOKEN) >= 16:
        return []
    hint = "Set it to the output of `openssl rand -hex 32`."
    text = "AGENTWEB_METRICS_TOKEN is shorter than 16 characters."
    return [checks.Warning(text, hint=hint, id="agentweb.W018")]


@register(Tags.compatibility)
def check_setting_names(**_: Any) -> list[CheckMessage]:
    """Warn of a variable that looks like a setting, and that nothing reads."""
    found: list[CheckMessage] = []
    for name in sorted(each for each in os.environ if each.startswith(PREFIX)):
        is_known = bool({name, name.removesuffix("_FILE")} & env.asked)
        if not is_known and not name.startswith(NOT_SETTINGS):
            meant = _find_meant(name)
            hint = f"Did you mean {meant}?" if meant else "All settings are in agentweb/README.md."
            text = f"{name} is no setting, and is ignored."
            found.append(checks.Warning(text, hint=hint, id="agentweb.W019"))
    return found


def _find_meant(name: str) -> str:
    """Return the setting that a wrong name is like; "" for none."""
    bare = name.removeprefix(PREFIX)
    like = get_close_matches(name, sorted(env.asked), n=1, cutoff=0.875)
    return bare if bare in env.asked else "".join(like)
