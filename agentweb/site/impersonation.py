"""A superuser's requests as another person: some pages, by safe methods, and nothing is written.

Three things make it so. Only views named here are shown, and a new one is not among them; a method
that is not safe is refused whatever its view; and while a page is made, the database takes no
statement that writes. Before each page an entry of the reading log says what was looked at, and
why. Sockets are refused (live/consumer.py).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db import connection
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import render
from django.urls import Resolver404, ResolverMatch, resolve
from django.utils.decorators import sync_only_middleware
from django.utils.translation import gettext as _

from conversations.library.impersonations import (
    IMPERSONATION,
    end_impersonation,
    find_impersonation,
    record_look,
)
from conversations.web.responses import send_elsewhere

#: The pages of a person that are shown: nothing of log-ins, factors, addresses, mail or downloads.
SHOWN = frozenset({
    "home", "new_chat", "chat", "reduction", "tool_output", "largest", "list", "folder", "search",
    "trash", "tools", "settings", "workspace", "workspace_file", "files", "file", "usage", "data",
    "appearance_settings", "chat_settings", "shortcuts_settings", "context_settings", "favicon",
})  # fmt: skip
#: Reached as oneself.
OWN = frozenset({"stop_impersonation", "logout", "live", "ready", "metrics"})
#: PostgreSQL gets the parts of a union in brackets.
_READS = re.compile(
    r"[\s(]*(SELECT|SAVEPOINT|RELEASE|ROLLBACK|BEGIN|SET LOCAL|WITH)\b", re.IGNORECASE
)
_WRITES = re.compile(r"\b(INSERT\s+INTO|UPDATE\s+\S+\s+SET|DELETE\s+FROM)\b", re.IGNORECASE)


class WriteRefused(PermissionDenied):
    """A page that is looked at as another person would have written something."""


@sync_only_middleware
def impersonate(
    get_response: Callable[[HttpRequest], HttpResponseBase],
) -> Callable[[HttpRequest], HttpResponseBase]:
    """Answer as the impersonated person, or refuse; without an impersonation do nothing."""

    def answer(request: HttpRequest) -> HttpResponseBase:
        key = request.session.get(IMPERSONATION) if request.session.session_key else None
        if key is None or not request.user.is_authenticated:
            return get_response(request)
        match = _resolve(request)
        name = "" if match is None or match.namespaces else str(match.url_name)
        row = find_impersonation(key=key, actor_id=request.user.pk)
        if name == "logout" or row is None:
            end_impersonation(key=key)
            del request.session[IMPERSONATION]
        if name in OWN:
            return get_response(request)
        if row is None:
            # What was sent was meant for another account.
            messages.warning(request, _("You look at the site as yourself again."))
            return send_elsewhere(request, "home")
        request.impersonation = row  # type: ignore[attr-defined]
        if request.method not in ("GET", "HEAD") or match is None or name not in SHOWN:
            return render(request, "impersonation_refused.html", status=403)
        record_look(row, path=request.path, public_id=match.kwargs.get("public_id"))
        request.user = row.person
        with connection.execute_wrapper(refuse_writes):
            return get_response(request)

    return answer


def _resolve(request: HttpRequest) -> ResolverMatch | None:
    try:
        return resolve(request.path_info)
    except Resolver404:
        return None


def refuse_writes(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
    """Run a statement that only reads; raises WriteRefused for any other."""
    if not _READS.match(sql) or _WRITES.search(sql):
        raise WriteRefused("nothing is written for somebody who looks as another person")
    return execute(sql, params, many, context)
