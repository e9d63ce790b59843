"""What a load balancer asks: whether the process lives, and whether it can serve requests."""

from __future__ import annotations

import logging

from django.db import DatabaseError, connection
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from conversations.queries.drift import has_drift

logger = logging.getLogger("agentweb.views")


@require_safe
def live(request: HttpRequest) -> HttpResponse:
    return HttpResponse("ok", content_type="text/plain")


@require_safe
def ready(request: HttpRequest) -> HttpResponse:
    """Say whether requests can be served: 503 while the database does not answer."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        is_drifting = has_drift()
    except DatabaseError as error:
        logger.warning("not ready: %s", error)
        return HttpResponse("no database", content_type="text/plain", status=503)
    if is_drifting:
        # Requests can be served all the same.
        logger.warning("budget windows differ from their ledger: run manage.py ledger")
        return HttpResponse("ok, but the ledger differs", content_type="text/plain")
    return HttpResponse("ok", content_type="text/plain")
