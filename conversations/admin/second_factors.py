"""Groups whose members must have a second factor, and a person who has lost theirs.

A superuser removes them all, so that the password alone lets the person in again: on record in the
admin's log, and told to the person. Changes of the rules are in Django's own log.
"""

from __future__ import annotations

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.translation import gettext as _

from conversations.accounts.second_factors import list_second_factors, remove_lost_factors
from conversations.admin.base import ShownLookups, is_key, is_superuser
from conversations.models import SecondFactorRule, User
from conversations.web.forms.log_in import read_peer


@admin.register(SecondFactorRule)
class SecondFactorRuleAdmin(ShownLookups):
    list_display = ("group",)
    list_select_related = ("group",)
    search_fields = ("group__name",)
    show_full_result_count = False


def remove_lost(request: HttpRequest, object_id: str) -> HttpResponse:
    """Say what the person has, then remove all of it."""
    if not is_superuser(request):
        raise PermissionDenied
    user = get_object_or_404(User, pk=int(object_id) if is_key(object_id) else 0)
    back = reverse("admin:conversations_user_change", args=[user.pk])
    if request.method == "POST":
        assert isinstance(request.user, User)  # noqa: S101 - it is the admin
        if remove_lost_factors(user=user, actor=request.user, peer=read_peer(request)):
            messages.success(request, _("The second factors were removed."))
        return redirect(back)
    context = admin.site.each_context(request) | {
        "title": _("Lost second factors"),
        "opts": User._meta,
        "person": user,
        "factors": list_second_factors(user),
        "back": back,
    }
    return TemplateResponse(request, "admin/conversations/user/lost_factors.html", context)
