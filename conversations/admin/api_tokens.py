"""Tokens of the API: each makes and revokes their own; the secret is shown once, when it is made.

Superusers see and revoke those of everybody.
"""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_noop

from conversations.accounts.api_tokens import (
    MOST_DAYS,
    USUAL_DAYS,
    TokenState,
    find_token_state,
    list_own_scopes,
    make_token,
    revoke_token,
)
from conversations.admin.base import SecretShownOnce, is_superuser, link_row
from conversations.context.translation import mark_recorded
from conversations.models import ApiToken, User
from conversations.web.forms.log_in import read_peer

if TYPE_CHECKING:
    _ModelForm = forms.ModelForm[ApiToken]
else:
    _ModelForm = forms.ModelForm

_REVOKED = mark_recorded(gettext_noop("Revoked."))
_SCOPES = {
    "spending": _("budgets with what is spent, held and left"),
    "usage": _("calls, tokens and cost by day, model and person"),
    "ledger": _("every movement of money"),
    "reductions": _("figures of reductions"),
}
_STATES = {
    TokenState.ACTIVE: _("active"),
    TokenState.EXPIRED: _("expired"),
    TokenState.REVOKED: _("revoked"),
}


class ApiTokenForm(_ModelForm):
    chosen = forms.MultipleChoiceField(
        label=_("May read"), choices=list(_SCOPES.items()), widget=forms.CheckboxSelectMultiple
    )
    days = forms.IntegerField(
        label=_("Days that it works"), min_value=1, max_value=MOST_DAYS, initial=USUAL_DAYS
    )

    class Meta:
        model = ApiToken
        fields = ("name",)


@admin.register(ApiToken)
class ApiTokenAdmin(SecretShownOnce):
    form = ApiTokenForm
    list_display = ("name", "whose", "scopes", "state", "created_at", "expires_at", "last_used_at")
    list_select_related = ("owner",)
    search_fields = ("name", "owner__username")
    show_full_result_count = False
    actions = ("revoke",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows = super().get_queryset(request)
        return rows if is_superuser(request) else rows.filter(owner=request.user.pk)

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any
    ) -> Any:
        form: Any = super().get_form(request, obj, change, **kwargs)
        if obj is None and isinstance(request.user, User):
            own = [(name, _SCOPES[name]) for name in list_own_scopes(request.user)]
            # A form's class shares its fields with those of other requests.
            form.base_fields["chosen"] = deepcopy(form.base_fields["chosen"])
            form.base_fields["chosen"].choices = own
        return form

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        if obj is None:
            return ("name", "chosen", "days")
        return (
            "name", "whose", "scopes", "state", "created_at", "expires_at", "last_used_at",
            "revoked_at",
        )  # fmt: skip

    def save_model(self, request: HttpRequest, obj: ApiToken, form: Any, change: bool) -> None:
        assert isinstance(request.user, User)  # noqa: S101 - it is the admin
        made, obj.secret = make_token(
            owner=request.user,
            name=form.cleaned_data["name"],
            scopes=form.cleaned_data["chosen"],
            days=form.cleaned_data["days"],
            peer=read_peer(request),
        )
        obj.pk, obj.owner, obj.expires_at = made.pk, made.owner, made.expires_at

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        """Nothing: a token has no rows of its own."""

    def response_add(
        self, request: HttpRequest, obj: ApiToken, post_url_continue: str | None = None
    ) -> HttpResponse:
        context = self.admin_site.each_context(request) | {
            "title": _("New token: %(name)s") % {"name": obj.name},
            "opts": self.opts,
            "words": _("Programs send it as Authorization: Bearer. It is not shown again."),
            "link": obj.secret,
            "shown_name": _("The token"),
            "until": obj.expires_at,
            "back": reverse("admin:conversations_apitoken_changelist"),
        }
        return TemplateResponse(request, "admin/conversations/link.html", context)

    @admin.action(description=_("Revoke the chosen tokens"), permissions=["change"])
    def revoke(self, request: HttpRequest, rows: Any) -> None:
        peer = read_peer(request)
        count = 0
        for row in rows:
            if revoke_token(token=row, peer=peer):
                self.log_change(request, row, _REVOKED)
                count += 1
        told = _("Revoked: %(count)d. Others had been before.") % {"count": count}
        messages.success(request, told)

    @admin.display(description=_("state"))
    def state(self, row: ApiToken) -> str:
        return str(_STATES[find_token_state(row, timezone.now())])

    @admin.display(description=_("whose"), ordering="owner__username")
    def whose(self, row: ApiToken) -> str:
        return link_row(row.owner)
