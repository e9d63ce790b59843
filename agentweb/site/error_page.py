"""Error pages: the request's id for the staff, and whether trying again helps.

Nothing here reads the form that was sent: reading it may be what failed.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from urllib.parse import urljoin

from django.core.exceptions import RequestDataTooBig
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template import loader
from django.urls import Resolver404, resolve
from django.utils.translation import gettext as _

from conversations.operations.db_damage import DatabaseDamaged
from conversations.web.api.problems import ApiRefused, render_problem
from tools.framework.errors import is_of_full_disk

#: Seconds after which a browser or a proxy may retry.
RETRY_SECONDS = 5


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Respond with 400, or with 413 for a body over a limit: a fragment for htmx, else a page."""
    if not isinstance(exception, RequestDataTooBig):
        return render(request, "400.html", status=400)
    if request.headers.get("HX-Request"):
        context = {"error": _("This is longer than the server takes at once.")}
        return render(request, "conversations/_partials/send_error.html", context, status=413)
    return render(request, "413.html", status=413)


def not_a_page(request: HttpRequest) -> HttpResponse:
    """Respond with 405 to who opens the address of a form; lead to the page with the form."""
    return render(request, "405.html", {"back": _find_page_above(request)}, status=405)


def _find_page_above(request: HttpRequest) -> str:
    """Return the relative way to the nearest page above; the page that says it names no id."""
    path = request.path_info
    way = "../" if path.endswith("/") else "./"
    while (above := urljoin(path, way)) != "/":
        with suppress(Resolver404):
            resolve(above)
            return way
        way += "../"
    return way


def server_error(request: HttpRequest) -> HttpResponse:
    """Respond with 500, or 503 while the database does not answer; both show the request's id."""
    error = sys.exc_info()[1]
    is_full = is_of_full_disk(error)
    is_down = is_full or isinstance(error, OperationalError | InterfaceError)
    if request.path_info.startswith("/api/"):
        words = "The database does not answer." if is_down else "The server failed at this."
        waits = {"Retry_After": str(RETRY_SECONDS)} if is_down else {}
        return render_problem(ApiRefused(503 if is_down else 500, words, **waits))
    # Rendered without the request's context: reading that may be what failed.
    html = loader.get_template("503.html" if is_down else "500.html").render(
        {
            "request_id": getattr(request, "request_id", ""),
            "is_damaged": isinstance(error, DatabaseDamaged),
            "is_full": is_full or (is_down and _is_of_full_database(error)),
        }
    )
    response = HttpResponse(html, status=503 if is_down else 500)
    if is_down:
        response.headers["Retry-After"] = str(RETRY_SECONDS)
    return response


def _is_of_full_database(error: BaseException | None) -> bool:
    """Detect it by SQLite's message, or by PostgreSQL's code 53100."""
    code = getattr(getattr(error, "__cause__", None), "sqlstate", "")
    return "disk is full" in str(error) or code == "53100"
