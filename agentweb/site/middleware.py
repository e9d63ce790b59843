"""Middleware of every page: no caching, UTF-8 forms, the person's language, log-in required."""

from __future__ import annotations

import codecs
from collections.abc import Callable
from urllib.parse import urlsplit

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import resolve_url
from django.template import loader
from django.utils import translation
from django.utils.decorators import sync_only_middleware
from django.utils.deprecation import MiddlewareMixin

from conversations.accounts.preferences import read_preferences


class NotStored(MiddlewareMixin):
    """Let no browser or proxy keep what was made for one person; a file says itself what may be."""

    def process_response(
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        response.headers.setdefault("Cache-Control", "private, no-store")
        return response


class FormsInUtf8(MiddlewareMixin):
    """Answer a form in another character set than UTF-8 by 415, before anything reads it.

    Its reading fails wherever it is first needed, which may be while the page of an error is made.
    """

    def process_request(self, request: HttpRequest) -> HttpResponse | None:
        charset = (request.content_params or {}).get("charset")
        if charset is None:
            return None
        if _is_utf8(charset):
            # By the one of its names that Django takes.
            request.encoding = "utf-8"
            return None
        return HttpResponse(loader.get_template("415.html").render(), status=415)


def _is_utf8(charset: str) -> bool:
    try:
        return codecs.lookup(charset).name == "utf-8"
    except (LookupError, ValueError):
        return False


class PersonLanguage(MiddlewareMixin):
    """Speak the language the person has chosen; without a choice it is the browser's."""

    def process_request(self, request: HttpRequest) -> None:
        chosen = read_preferences(getattr(request.user, "preferences", None)).language
        if chosen in dict(settings.LANGUAGES):
            translation.activate(chosen)
            request.LANGUAGE_CODE = chosen


class LogInFirst(MiddlewareMixin):
    """Answer a fragment's request without a session by 401: its page asks for the log-in itself.

    The browser would follow a redirect unseen and take the log-in page for the fragment.
    """

    def process_response(
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        sent_on = urlsplit(response.headers.get("Location", "")).path
        if request.headers.get("HX-Request") and sent_on == resolve_url(settings.LOGIN_URL):
            return HttpResponse(status=401)
        return response


@sync_only_middleware
def run_in_one_thread(
    get_response: Callable[[HttpRequest], HttpResponseBase],
) -> Callable[[HttpRequest], HttpResponseBase]:
    """Have all middleware from the static files on run in the thread of the view, in one go.

    On a server each of them would go to that thread and come back by itself, before the view and
    behind it. It is the last one: Django puts what is around it in the place where it is itself.
    """
    return get_response
