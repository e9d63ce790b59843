"""Middleware of every page: no caching, UTF-8 forms, ends of sessions, zone, language, log-in."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from functools import cache
from http import HTTPStatus
from typing import cast
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, available_timezones

from csp.middleware import CSPMiddleware
from django.conf import settings
from django.contrib.auth import SESSION_KEY, logout
from django.contrib.auth.views import redirect_to_login
from django.http import (
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    HttpResponsePermanentRedirect,
    QueryDict,
)
from django.middleware.clickjacking import XFrameOptionsMiddleware
from django.middleware.common import CommonMiddleware
from django.middleware.security import SecurityMiddleware
from django.shortcuts import redirect, resolve_url
from django.urls import reverse
from django.utils import timezone, translation
from django.utils.decorators import sync_only_middleware
from django.utils.deprecation import MiddlewareMixin
from django.utils.http import url_has_allowed_host_and_scheme, urlencode
from django_htmx.http import HttpResponseClientRedirect

from agentweb.site.error_page import not_a_page
from conversations.accounts.devices import shorten_address
from conversations.accounts.preferences import read_preferences
from conversations.accounts.reading_reasons import ReasonNeeded
from conversations.accounts.session_ends import renew_session
from conversations.web.after_log_in import is_held_back, keep_device
from conversations.web.forms.log_in import read_peer
from conversations.web.responses import send_elsewhere


class _WithoutThread(MiddlewareMixin):
    """Middleware that only sets headers, so it runs where it is called.

    Django would switch to the request's thread and back for each of these, before and after it.
    """

    async def __acall__(self, request: HttpRequest) -> HttpResponseBase:
        before, after = (getattr(self, f"process_{name}", None) for name in ("request", "response"))
        found: HttpResponseBase | None = before(request) if before else None
        if found is None:
            found = await cast("Awaitable[HttpResponseBase]", self.get_response(request))
        answer: HttpResponseBase = after(request, found) if after else found
        return answer


class ContentPolicy(_WithoutThread, CSPMiddleware):
    """The Content-Security-Policy of every response."""


class Security(_WithoutThread, SecurityMiddleware):
    """Django's security headers, and the redirect to HTTPS."""


class NoFrames(_WithoutThread, XFrameOptionsMiddleware):
    """The header against being framed."""


class HostNames(CommonMiddleware):
    """Django's check of the host, but for what calls the process itself, by whatever address.

    Load balancers and collectors of figures ask each process at an address of its own, which is no
    name of the site, and many of them cannot send another.
    """

    def process_request(self, request: HttpRequest) -> HttpResponsePermanentRedirect | None:
        path = request.path_info.removeprefix("/")
        if any(re.match(pattern, path) for pattern in settings.SECURE_REDIRECT_EXEMPT):
            return None
        return super().process_request(request)


class TokensAlone(_WithoutThread, MiddlewareMixin):
    """Take no cookie at the addresses of the API: who asks there is who has the token."""

    def process_request(self, request: HttpRequest) -> None:
        if request.path_info.startswith("/api/"):
            request.META.pop("HTTP_COOKIE", None)
            request.COOKIES = {}


class NotStored(MiddlewareMixin):
    """Forbid browsers and proxies to store personal pages; a file sets its own header."""

    def process_response(
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        response.headers.setdefault("Cache-Control", "private, no-store")
        return response


class FormsInUtf8(MiddlewareMixin):
    """Read a form that names its charset as UTF-8, of which Django takes one name only.

    The server has refused all other charsets (agentweb/edge/charsets.py).
    """

    def process_request(self, request: HttpRequest) -> None:
        if "charset" in (request.content_params or {}):
            request.encoding = "utf-8"


@sync_only_middleware
def use_browser_zone(
    get_response: Callable[[HttpRequest], HttpResponseBase],
) -> Callable[[HttpRequest], HttpResponseBase]:
    """Name days and times in the zone of the browser (static/zone.js); in UTC where it names none.

    For this response alone, and not for what is streamed after it, such as exports.
    """

    def answer(request: HttpRequest) -> HttpResponseBase:
        with timezone.override(_find_zone(request)):
            return get_response(request)

    return answer


def _find_zone(request: HttpRequest) -> ZoneInfo | None:
    """Return the zone that the cookie names; None: UTC, as everywhere in the admin.

    Its days are those of the figures, the filters and the files that staff compare.
    """
    name = request.COOKIES.get("time-zone", "")
    is_used = name in _list_zones() and not request.path_info.startswith("/admin/")
    return ZoneInfo(name) if is_used else None


@cache
def _list_zones() -> frozenset[str]:
    """Return the names of all zones, so that no other text is ever taken for the name of a file."""
    return frozenset(available_timezones())


class SessionEnds(MiddlewareMixin):
    """End a session that has lasted its time; hold back one that needs a second factor first."""

    def process_request(self, request: HttpRequest) -> HttpResponse | None:
        session = request.session
        if session.session_key and SESSION_KEY in session:
            network = shorten_address(read_peer(request))
            if not renew_session(session, network=network):
                logout(request)
        is_held = is_held_back(request, request.path)
        return send_elsewhere(request, "mfa_index") if is_held else None

    def process_response(
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        keep_device(request, response)
        return response


class PersonLanguage(MiddlewareMixin):
    """Use the person's chosen language; without a choice that of the browser."""

    def process_request(self, request: HttpRequest) -> None:
        chosen = read_preferences(getattr(request.user, "preferences", None)).language
        if chosen in dict(settings.LANGUAGES):
            translation.activate(chosen)
            request.LANGUAGE_CODE = chosen


class ReasonFirst(MiddlewareMixin):
    """Ask staff why they read another person's conversation, and bring them back afterwards."""

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        if not isinstance(exception, ReasonNeeded):
            return None
        page = reverse("review_reason", args=[exception.public_id])
        shown = request.headers.get("HX-Current-URL") or request.get_full_path()
        parts = urlsplit(shown)
        back = parts.path + (f"?{parts.query}" if parts.query else "")
        url = f"{page}?{urlencode({'next': back})}"
        if request.headers.get("HX-Request"):
            return HttpResponseClientRedirect(url)
        return redirect(url)


class FormsAreNoPages(MiddlewareMixin):
    """Answer who opens the address of a form with a page; Django's answer is blank."""

    def process_response(
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        if response.status_code != HTTPStatus.METHOD_NOT_ALLOWED or request.method != "GET":
            return response
        page = not_a_page(request)
        page.headers["Allow"] = response.headers["Allow"]
        return page


class LogInFirst(MiddlewareMixin):
    """Respond with 401 to a fragment's request without a session: its page shows the log-in.

    The browser would follow a redirect invisibly and take the log-in page for the fragment. Who
    sent a form comes back to the page with the form: many addresses of forms are no pages.
    """

    def process_response(
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        sent_on = urlsplit(response.headers.get("Location", ""))
        if sent_on.path != resolve_url(settings.LOGIN_URL):
            return response
        if request.headers.get("HX-Request"):
            return HttpResponse(status=401)
        # Logging out leads there too, and back to nowhere.
        is_to_return = QueryDict(sent_on.query).get("next") == request.get_full_path()
        if request.method == "POST" and is_to_return:
            return redirect_to_login(_read_page_of_form(request))
        return response


def _read_page_of_form(request: HttpRequest) -> str:
    """Return the page of this site that the form was sent from, or the first page."""
    sender = request.headers.get("Referer", "")
    if not url_has_allowed_host_and_scheme(sender, {request.get_host()}):
        return "/"
    parts = urlsplit(sender)
    return parts.path + (f"?{parts.query}" if parts.query else "")
