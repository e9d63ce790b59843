"""Invitations: made and withdrawn here; the link is shown once, right after it was made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin, messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html_join
from django.utils.translation import gettext_lazy as _

from conversations.accounts.account_mail import can_send_mail, send_account_mail
from conversations.admin.base import SecretShownOnce, is_superuser, link_row
from conversations.invitations.invitations import (
    MOST_DAYS,
    USUAL_DAYS,
    find_invitation_state,
    has_account,
    make_invitation,
    withdraw_invitation,
)
from conversations.models import Invitation, User

if TYPE_CHECKING:
    _ModelForm = forms.ModelForm[Invitation]
else:
    _ModelForm = forms.ModelForm


class InvitationForm(_ModelForm):
    days = forms.IntegerField(
        label=_("Days that the link works"), min_value=1, max_value=MOST_DAYS, initial=USUAL_DAYS
    )

    class Meta:
        model = Invitation
        fields = ("email", "groups")
        widgets = {"groups": forms.CheckboxSelectMultiple}

    def clean_email(self) -> str:
        email = str(self.cleaned_data["email"])
        if has_account(email):
            raise forms.ValidationError(_("An account has this address already."))
        return email


@admin.register(Invitation)
class InvitationAdmin(SecretShownOnce):
    form = InvitationForm
    list_display = ("created_at", "email", "state", "maker", "expires_at", "account")
    list_select_related = ("made_by", "used_by")
    search_fields = ("email", "used_by__username")
    show_full_result_count = False
    actions = ("withdraw",)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        if obj is None:
            return ("email", *(("groups",) if is_superuser(request) else ()), "days")
        return (
            "email", "groups", "state", "maker", "created_at", "expires_at", "account", "record",
        )  # fmt: skip

    def save_model(self, request: HttpRequest, obj: Invitation, form: Any, change: bool) -> None:
        assert isinstance(request.user, User)  # noqa: S101 - it is the admin
        made, token = make_invitation(
            made_by=request.user,
            email=form.cleaned_data["email"],
            groups=list(form.cleaned_data.get("groups", ())),
            days=form.cleaned_data["days"],
        )
        obj.pk, obj.digest, obj.expires_at = made.pk, made.digest, made.expires_at
        obj.link = request.build_absolute_uri(reverse("invitation", args=[token]))
        if obj.email and can_send_mail():
            subject, text = str(_("Your invitation")), _describe(obj)
            transaction.on_commit(
                lambda: send_account_mail(to=obj.email, subject=subject, text=text)
            )

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        """Nothing: the groups were saved with the invitation."""

    def response_add(
        self, request: HttpRequest, obj: Invitation, post_url_continue: str | None = None
    ) -> HttpResponse:
        context = self.admin_site.each_context(request) | {
            "title": _("Invitation"),
            "opts": self.opts,
            "link": obj.link,
            "words": _("This link makes one account, once. It is not shown again."),
            "until": obj.expires_at,
            "mailed_to": obj.email if can_send_mail() else "",
            "back": reverse("admin:conversations_invitation_changelist"),
        }
        return TemplateResponse(request, "admin/conversations/link.html", context)

    @admin.action(description=_("Withdraw the chosen invitations"), permissions=["change"])
    def withdraw(self, request: HttpRequest, rows: Any) -> None:
        assert isinstance(request.user, User)  # noqa: S101 - it is the admin
        count = sum(withdraw_invitation(invitation=row, actor=request.user) for row in rows)
        told = _("Withdrawn: %(count)d. Others had ended before.") % {"count": count}
        messages.success(request, told)

    @admin.display(description=_("state"))
    def state(self, row: Invitation) -> str:
        return find_invitation_state(row).value

    @admin.display(description=_("made by"), ordering="made_by__username")
    def maker(self, row: Invitation) -> str:
        return link_row(row.made_by) if row.made_by else str(_("a command"))

    @admin.display(description=_("account"), ordering="used_by__username")
    def account(self, row: Invitation) -> str:
        return link_row(row.used_by)

    @admin.display(description=_("decisions"))
    def record(self, row: Invitation) -> str:
        lines = (
            (f"{timezone.localtime(each.created_at):%Y-%m-%d %H:%M}", each.get_kind_display(),
             each.actor or _("a command"), f" ({each.note})" if each.note else "")
            for each in row.decisions.select_related("actor").order_by("pk")
        )  # fmt: skip
        return format_html_join("", "<div>{} {} · {}{}</div>", lines)


def _describe(row: Invitation) -> str:
    return str(
        _(
            "You are invited to make an account. Open this link and choose a name and a"
            " password:\n\n%(link)s\n\nIt works once, until %(until)s."
        )
        % {
            "link": row.link,
            "until": row.expires_at.strftime("%Y-%m-%d %H:%M UTC"),
        }
    )
