"""The button that stops looking at the site as another person."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from conversations.library.impersonations import IMPERSONATION, end_impersonation


@login_required
@require_POST
def stop(request: HttpRequest) -> HttpResponse:
    key = request.session.pop(IMPERSONATION, None)
    if key is not None:
        end_impersonation(key=key)
    return redirect("home")
