"""A link to a new password, made by a superuser: mailed, or shown once where no mail is sent."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.translation import gettext as _

from conversations.accounts.account_mail import can_send_mail, send_account_mail
from conversations.accounts.reset_links import make_reset_link, may_have_reset_link
from conversations.admin.base import is_superuser, parse_key
from conversations.conf import conf
from conversations.models import User
from conversations.web.forms.log_in import read_peer


def make(request: HttpRequest, object_id: str) -> HttpResponse:
    """Say what the link is, then make it."""
    if not is_superuser(request):
        raise PermissionDenied
    user = get_object_or_404(User, pk=parse_key(object_id))
    is_mailed = bool(user.email) and can_send_mail()
    context = admin.site.each_context(request) | {
        "title": _("Link to a new password"),
        "opts": User._meta,
        "person": user,
        "is_possible": may_have_reset_link(user),
        "is_mailed": is_mailed,
        "hours": conf.mailed_link_hours,
        "back": reverse("admin:conversations_user_change", args=[user.pk]),
    }
    if request.method != "POST" or not context["is_possible"]:
        page = "admin/conversations/user/reset_link.html"
        return TemplateResponse(request, page, context)
    return TemplateResponse(
        request, "admin/conversations/link.html", context | _make(request, user, is_mailed)
    )


def _make(request: HttpRequest, user: User, is_mailed: bool) -> dict[str, Any]:
    assert isinstance(request.user, User)  # noqa: S101 - it is the admin
    parts = make_reset_link(user=user, actor=request.user, peer=read_peer(request))
    link = request.build_absolute_uri(reverse("password_reset_confirm", kwargs=parts))
    if not is_mailed:
        words = _("The link works once. It is not shown again: give it to the person themselves.")
        return {"words": words, "link": link}
    text = _(
        "An administrator sends you this link to a new password of the account %(name)s:\n\n"
        "%(link)s\n\nIt works once, for %(hours)d hours."
    ) % {"name": user.get_username(), "link": link, "hours": conf.mailed_link_hours}
    send_account_mail(to=user.email, subject=_("Set a new password"), text=text)
    return {"words": _("The link is on its way, and is shown to nobody."), "mailed_to": user.email}
