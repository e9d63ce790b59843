"""The page of an invitation: whoever has the link chooses a name and a password, once.

A link that is not known here is counted like a wrong password.
"""

from __future__ import annotations

from django.contrib.auth import login
from django.contrib.auth.hashers import make_password
from django.db import IntegrityError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from conversations.accounts.throttle import LogInThrottled, admit_log_in, refund_attempt
from conversations.invitations.invitations import (
    InvitationRefused,
    InvitationState,
    find_invitation,
    has_account,
    use_invitation,
)
from conversations.web.forms.log_in import read_peer
from conversations.web.forms.new_accounts import NewPersonForm
from conversations.web.log_in import answer_throttled


@sensitive_post_parameters()
@require_http_methods(["GET", "HEAD", "POST"])
def page(request: HttpRequest, token: str) -> HttpResponse:
    peer = read_peer(request)
    try:
        admit_log_in(peer=peer)
    except LogInThrottled as error:
        return answer_throttled(request, error.seconds)
    row, state = find_invitation(token)
    if row is None:
        return _refuse(request, "unknown", 404)
    refund_attempt(peer=peer)
    if state is not InvitationState.OPEN:
        return _refuse(request, state.value)
    if has_account(row.email):
        return _refuse(request, "email_taken")
    form = NewPersonForm(request.POST or None)
    if request.method == "POST" and not request.user.is_authenticated and form.is_valid():
        try:
            user = use_invitation(
                token=token,
                username=form.cleaned_data["username"],
                password_hash=make_password(form.cleaned_data["password1"]),
            )
        except InvitationRefused as refused:
            return _refuse(request, refused.code)
        except IntegrityError:
            form.add_error("username", _("Somebody has just taken this name. Choose another one."))
        else:
            login(request, user)
            return redirect("home")
    context = {"form": form, "email": row.email}
    return render(request, "invitation.html", context, status=400 if form.errors else 200)


def _refuse(request: HttpRequest, why: str, status: int = 410) -> HttpResponse:
    words = {
        "unknown": _("This link is not known here. Check that it was copied whole."),
        "used": _("This invitation was used before: it made one account. Log in with that."),
        "expired": _("This invitation is too old. Ask whoever sent it for a new one."),
        "withdrawn": _("This invitation was withdrawn. Ask whoever sent it for a new one."),
        "email_taken": _("An account has the address of this invitation already. Log in to it."),
    }
    context = {"heading": _("No account was made"), "words": words[why]}
    return render(request, "registration/refused.html", context, status=status)
