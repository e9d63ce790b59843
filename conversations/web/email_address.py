"""A person's e-mail address: changed with the password, and only once a link to it was opened."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from conversations.accounts.account_mail import can_send_mail, send_account_mail
from conversations.accounts.people import change_email, make_email_token, read_email_token
from conversations.conf import conf
from conversations.web.forms.email_address import EmailAddressForm
from conversations.web.forms.log_in import read_peer
from conversations.web.page_shell import add_notice, build_page_context
from conversations.web.responses import require_user

changing = require_http_methods(["GET", "HEAD", "POST"])


@login_required
@changing
def page(request: HttpRequest) -> HttpResponse:
    user = require_user(request)
    form = EmailAddressForm(request, request.POST if request.method == "POST" else None)
    if form.is_valid():
        address = form.cleaned_data["email"]
        link = reverse("confirm_email", args=[make_email_token(user, address)])
        text = _(
            "Open this link in the browser in which you are logged in, to make this address"
            " that of your account %(name)s:\n\n%(link)s\n\nThe link works for %(hours)d hours."
        ) % {
            "name": user.get_username(),
            "link": request.build_absolute_uri(link),
            "hours": conf.mailed_link_hours,
        }
        send_account_mail(to=address, subject=_("Confirm your e-mail address"), text=text)
        add_notice(request, _("Open the link that was sent to the new address."))
        return redirect("account_settings")
    status = 429 if form.wait else 400 if form.is_bound else 200
    return _show(request, "email_address", {"form": form, "sends_mail": can_send_mail()}, status)


@login_required
@changing
def confirm(request: HttpRequest, token: str) -> HttpResponse:
    user = require_user(request)
    address = read_email_token(user, token)
    if not address:
        raise Http404("no such link, or it is too old")
    if request.method == "POST":
        change_email(user_id=user.pk, address=address, peer=read_peer(request))
        add_notice(request, _("The e-mail address was changed."))
        return redirect("account_settings")
    return _show(request, "email_confirm", {"address": address})


def _show(request: HttpRequest, name: str, more: dict[str, Any], status: int = 200) -> HttpResponse:
    context = build_page_context(request) | {"tab": "account"} | more
    return render(request, f"conversations/settings/{name}.html", context, status=status)
