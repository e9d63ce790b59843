"""Looking at the site as another person: asked for with a reason, by superusers alone."""

from __future__ import annotations

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.translation import gettext as _

from conversations.admin.base import parse_key
from conversations.conf import conf
from conversations.library.impersonations import (
    IMPERSONATION,
    ImpersonationError,
    is_impersonation_allowed,
    start_impersonation,
)
from conversations.models import User
from conversations.web.forms.reading_reason import ReasonForm


def start(request: HttpRequest, object_id: str) -> HttpResponse:
    """Ask why, then go to the site as the person."""
    actor = request.user
    if not isinstance(actor, User) or not is_impersonation_allowed(actor):
        raise PermissionDenied
    person = get_object_or_404(User, pk=parse_key(object_id))
    form = ReasonForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            row = start_impersonation(
                actor=actor, person=person, reason=form.cleaned_data["reason"]
            )
        except ImpersonationError as error:
            form.add_error(None, str(error))
        else:
            request.session[IMPERSONATION] = row.pk
            return redirect("home")
    context = admin.site.each_context(request) | {
        "title": _("Look at the site as this person"),
        "opts": User._meta,
        "person": person,
        "form": form,
        "minutes": conf.impersonation_minutes,
        "back": reverse("admin:conversations_user_change", args=[person.pk]),
    }
    status = 400 if form.errors else 200
    page = "admin/conversations/user/impersonate.html"
    return TemplateResponse(request, page, context, status=status)
