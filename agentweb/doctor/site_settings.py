"""Checks of the settings: each alone, as at start-up, and in combination."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

from django.conf import settings
from django.core import checks
from django.http.request import validate_host

from agentweb import env
from agentweb.doctor.report_lines import Line, failed, ok, warn
from agentweb.serving.checks import is_weak
from conversations.conf import conf

_LOCAL = ("localhost", "127.0.0.1", "[::1]")


def check_start() -> Iterator[Line]:
    """Report what the start of the server would report."""
    found = checks.run_checks(include_deployment_checks=settings.HTTPS)
    for one in found:
        say = failed if one.level >= checks.ERROR else warn
        yield say("settings", str(one.msg), str(one.hint or one.id))
    if not found:
        yield ok("settings", "nothing to say against them")


def check_secret() -> Iterator[Line]:
    if is_weak(settings.SECRET_KEY):
        hint = "Set it to the output of `openssl rand -hex 32`; everybody logs in again."
        yield failed("SECRET_KEY", "weak: sessions could be forged", hint)
    else:
        yield ok("SECRET_KEY", "strong")


def check_address() -> Iterator[Line]:
    """Check hosts, origins and HTTPS, which must be set together."""
    public = [host for host in settings.ALLOWED_HOSTS if host not in _LOCAL]
    if settings.DEBUG:
        yield warn("AGENTWEB_DEBUG", "on", "Unset it, unless this is a developer's machine.")
    if not public:
        text = "the site answers by local names alone"
        if settings.HTTPS:
            yield failed("address", text, "Set AGENTWEB_HOSTS to the name of the site.")
        else:
            yield ok("address", text)
        return
    yield ok("address", ", ".join(public))
    if not settings.HTTPS:
        text = "passwords and sessions travel in the clear"
        hint = "Put a proxy with TLS in front, and set AGENTWEB_HTTPS=true."
        yield warn("AGENTWEB_HTTPS", text, hint)
    if not settings.CSRF_TRUSTED_ORIGINS and settings.HTTPS:
        text = "empty: behind a proxy that changes the Host header forms would be refused"
        yield warn("AGENTWEB_ORIGINS", text, f"Set it to https://{public[0]}.")
    if settings.HTTPS and not conf.trusted_proxies:
        text = "empty: all visitors have the proxy's address, and share its limit of log-ins"
        yield warn("AGENTWEB_TRUSTED_PROXIES", text, "Set it to the address of the proxy.")
    yield from _origins()


def _origins() -> Iterator[Line]:
    for origin in settings.CSRF_TRUSTED_ORIGINS:
        parts = urlsplit(origin)
        if settings.HTTPS and parts.scheme != "https":
            text = f"{origin} is not https although AGENTWEB_HTTPS is set"
            yield failed("AGENTWEB_ORIGINS", text, f"Use https://{parts.netloc}.")
        elif not validate_host(parts.hostname or "", settings.ALLOWED_HOSTS):
            text = f"{origin} is none of the hosts"
            hint = f"Add {parts.hostname} to AGENTWEB_HOSTS."
            yield failed("AGENTWEB_ORIGINS", text, hint)
    if env.text("AGENTWEB_METRICS") and not settings.METRICS_TOKEN:
        yield ok("metrics", "shown to this machine alone; AGENTWEB_METRICS_TOKEN lets others in")


CHECKS = (check_start, check_secret, check_address)
