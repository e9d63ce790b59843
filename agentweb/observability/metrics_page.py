"""`/metrics`: the metrics of this process for Prometheus, for permitted clients only.

Off unless `AGENTWEB_METRICS` is set. Then it is served to clients that send the token or, if there
is none, to requests from this machine: by a local name and not through a proxy, whose local address
every visitor would share. For all others the page does not exist. A worker has no site, so it
serves the same on a port of its own.
"""

from __future__ import annotations

import hmac
import ipaddress
import logging
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from django.conf import settings
from django.core.management import CommandError
from django.db import DatabaseError, InterfaceError, connection, connections
from django.http import Http404, HttpRequest, HttpResponse
from django.http.request import split_domain_port
from django.views.decorators.http import require_safe

from conversations.telemetry import metrics
from conversations.turns.worker_queue import count_waiting_turns

logger = logging.getLogger("agentweb.metrics")
#: Headers that only a proxy sets; the edge drops most of them and records that they were there.
_PROXIED = ("X-Forwarded-For", "X-Forwarded-Proto", "Via")


@require_safe
def figures(request: HttpRequest) -> HttpResponse:
    if not metrics.is_on() or not may_see(request):
        raise Http404
    text, kind = gather_figures()
    return HttpResponse(text, content_type=kind)


def may_see(request: HttpRequest) -> bool:
    if settings.METRICS_TOKEN:
        return is_bearer(request.headers.get("Authorization", ""))
    is_direct = not any(name in request.headers for name in _PROXIED)
    is_direct = is_direct and not getattr(request, "scope", {}).get("is_forwarded")
    is_direct = is_direct and is_local(_host(request.get_host()))
    return is_direct and is_local(request.META.get("REMOTE_ADDR", ""))


def _host(header: str) -> str:
    return split_domain_port(header)[0].strip("[]")


def is_bearer(header: str) -> bool:
    return hmac.compare_digest(header.encode(), f"Bearer {settings.METRICS_TOKEN}".encode())


def is_local(address: str) -> bool:
    try:
        return address == "localhost" or ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


def gather_figures() -> tuple[bytes, str]:
    """Return the figures, including those that are computed on request."""
    try:
        waiting = count_waiting_turns()
    except (DatabaseError, InterfaceError) as error:
        # The other figures still show what is wrong.
        logger.warning("the queue could not be counted: %s", type(error).__name__)
        metrics.DATABASE_UP.set(0)
    else:
        metrics.DATABASE_UP.set(1)
        metrics.TURNS_WAITING.set(waiting.count)
        metrics.QUEUE_AGE.set(waiting.oldest_seconds)
    if (pool := getattr(connection, "pool", None)) is not None:
        stats = pool.get_stats()
        size, idle = stats.get("pool_size", 0), stats.get("pool_available", 0)
        metrics.POOL.set(size - idle, state="used")
        metrics.POOL.set(idle, state="idle")
        metrics.POOL.set(stats.get("requests_waiting", 0), state="awaited")
    return metrics.render_exposition()


class _Handler(BaseHTTPRequestHandler):
    timeout = 5

    def do_GET(self) -> None:
        if settings.METRICS_TOKEN:
            is_allowed = is_bearer(self.headers.get("Authorization", ""))
        else:
            # A page in a local browser may have its own name resolve to this machine (DNS
            # rebinding).
            is_allowed = is_local(_host(self.headers.get("Host", "")))
        if self.path != "/metrics" or not is_allowed:
            self.send_error(404)
            return
        try:
            text, kind = gather_figures()
        finally:
            connections.close_all()
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: each scrape would be a line."""


def serve_figures() -> ThreadingHTTPServer | None:
    """Serve a worker's figures on its port, if one is set; without a token on loopback only.

    Raises CommandError where it cannot listen there.
    """
    if not metrics.is_on() or not settings.METRICS_PORT:
        return None
    host = "0.0.0.0" if settings.METRICS_TOKEN else "127.0.0.1"  # noqa: S104
    try:
        server = ThreadingHTTPServer((host, settings.METRICS_PORT), _Handler)
    except (OSError, OverflowError) as error:
        raise CommandError(
            f"AGENTWEB_METRICS_PORT: cannot listen on port {settings.METRICS_PORT}:"
            f" {getattr(error, 'strerror', None) or error}; each worker of a machine needs its own"
        ) from error
    threading.Thread(target=server.serve_forever, name="metrics", daemon=True).start()
    return server
