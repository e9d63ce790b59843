"""The service worker, and the page that it shows without a network; that page names nobody.

The worker is served at the root, since it may only answer for addresses below its own.
"""

from __future__ import annotations

from django.contrib.staticfiles import finders
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe


@require_safe
def offline(request: HttpRequest) -> HttpResponse:
    """Show the page without anything of the person who may be logged in."""
    return render(request, "offline.html", {"preferences": None, "impersonation": None})


@require_safe
def service_worker(request: HttpRequest) -> HttpResponse:
    path = finders.find("service_worker.js")
    if path is None:
        raise Http404("not installed")
    with open(path, "rb") as file:  # noqa: PTH123 - the finder gives a plain name
        return HttpResponse(file.read(), content_type="text/javascript; charset=utf-8")
