"""Second factors on their pages: the app, passkeys, recovery codes, and the step after a password.

The ceremonies are django-allauth's; pages, counting of guesses and events are ours. What changes a
factor asks for the password or a code again, unless that was done a few minutes ago.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from allauth.account.internal.flows import reauthentication
from allauth.account.internal.flows.login import record_authentication
from allauth.account.models import Login
from allauth.mfa import signals
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.mfa.base.views import AuthenticateView
from allauth.mfa.recovery_codes.views import GenerateRecoveryCodesView, ViewRecoveryCodesView
from allauth.mfa.totp.views import ActivateTOTPView, DeactivateTOTPView
from allauth.mfa.webauthn.forms import LoginWebAuthnForm
from allauth.mfa.webauthn.internal import auth, flows
from allauth.mfa.webauthn.views import AddWebAuthnView, RemoveWebAuthnView
from django.contrib.auth.decorators import login_required
from django.contrib.auth.mixins import LoginRequiredMixin
from django.dispatch import receiver
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse_lazy
from django.utils.translation import gettext as _
from django.views import View
from django.views.decorators.http import require_http_methods, require_safe

from conversations.accounts.account_events import Kind, record_event
from conversations.accounts.second_factors import list_second_factors, may_remove_factor
from conversations.accounts.throttle import LogInThrottled, admit_log_in, refund_attempt
from conversations.library.impersonations import list_impersonations
from conversations.toolbox.secrets import seal, unseal
from conversations.web.forms.log_in import OwnSecretForm, read_peer
from conversations.web.log_in import answer_throttled, set_throttle_status
from conversations.web.page_shell import build_page_context
from conversations.web.responses import read_next, require_user

changing = require_http_methods(["GET", "HEAD", "POST"])


class FactorAdapter(DefaultMFAAdapter):
    """Keeps secrets sealed, and the last factor of those who must have one."""

    def encrypt(self, text: str) -> str:
        return seal(text)

    def decrypt(self, encrypted_text: str) -> str:
        return unseal(encrypted_text)

    def generate_authenticator_name(self, user: Any, type: Any) -> str:
        number = len(list_second_factors(user).passkeys) + 1
        return _("Passkey %(number)d") % {"number": number}

    def can_delete_authenticator(self, authenticator: Any) -> bool:
        return may_remove_factor(authenticator.user, authenticator.pk)


@receiver(
    (signals.authenticator_added, signals.authenticator_reset, signals.authenticator_removed),
    dispatch_uid="factors",
)
def note_change(sender: Any, signal: Any, request: HttpRequest, user: Any, **_kwargs: Any) -> None:
    """Record the change for the person; what is reset are recovery codes, which are new ones."""
    is_removed = signal is signals.authenticator_removed
    kind = Kind.FACTOR_REMOVED if is_removed else Kind.FACTOR_ADDED
    record_event(user=user, kind=kind, peer=read_peer(request))


class Page(LoginRequiredMixin, View):
    """A page of the tab *Security*; it needs a session whoever it is of."""

    http_method_names: Sequence[str] = ("get", "head", "post")

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        shown: dict[str, Any] = super().get_context_data(**kwargs)  # type: ignore[misc]
        return shown | build_page_context(self.request) | {"tab": "security"}


@login_required
@require_safe
def overview(request: HttpRequest) -> HttpResponse:
    context = build_page_context(request) | {
        "tab": "security",
        "factors": list_second_factors(require_user(request)),
        "looks": list_impersonations(require_user(request).pk),
    }
    return render(request, "conversations/settings/security.html", context)


class AddApp(Page, ActivateTOTPView):
    template_name = "conversations/settings/security_app.html"


class RemoveApp(Page, DeactivateTOTPView):
    template_name = "conversations/settings/security_remove.html"


class AddPasskey(Page, AddWebAuthnView):
    template_name = "conversations/settings/security_passkey.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        shown = super().get_context_data(**kwargs)
        # After the library's own, which is for keys that let nobody in alone: the last one counts.
        options = auth.begin_registration(require_user(self.request), passwordless=True)
        return shown | {"options": json.dumps(options)}


class RemovePasskey(Page, RemoveWebAuthnView):
    template_name = "conversations/settings/security_remove.html"
    success_url = reverse_lazy("mfa_index")

    def form_valid(self, form: Any) -> HttpResponse:
        if not may_remove_factor(require_user(self.request), self.get_object().pk):
            form.add_error(None, _("You must have a second factor: add another one first."))
            return self.render_to_response(self.get_context_data(form=form))
        response: HttpResponse = super().form_valid(form)
        return response


class Codes(Page, ViewRecoveryCodesView):
    http_method_names = ("get", "head")
    template_name = "conversations/settings/security_codes.html"


class NewCodes(Page, GenerateRecoveryCodesView):
    template_name = "conversations/settings/security_new_codes.html"


class SecondStep(AuthenticateView):
    """The step after the password: a code or a passkey."""

    http_method_names = ["get", "head", "post"]
    template_name = "registration/second_step.html"

    def form_invalid(self, form: Any) -> HttpResponse:
        response = self.render_to_response(self.get_context_data() | {"wrong": form})
        return set_throttle_status(response)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        shown = super().get_context_data(**kwargs)
        factors = list_second_factors(self.stage.login.user)
        has_codes = factors.has_app or bool(factors.codes)
        options = json.dumps(shown["js_data"]["request_options"]) if factors.passkeys else ""
        return shown | {"options": options, "has_codes": has_codes}


@login_required
@changing
def confirm_identity(request: HttpRequest) -> HttpResponse:
    """Ask for the password or a code again, then go on with what was asked for."""
    form = OwnSecretForm(request, request.POST if request.method == "POST" else None)
    if form.is_valid():
        user = require_user(request)
        record_authentication(request, user, method="password", reauthenticated=True)
        return reauthentication.resume_request(request) or redirect("mfa_index")
    context = build_page_context(request) | {
        "tab": "security",
        "form": form,
        "next": request.POST.get("next", request.GET.get("next", "")),
    }
    status = 429 if form.wait else 400 if form.is_bound else 200
    page = "conversations/settings/security_identity.html"
    return render(request, page, context, status=status)


@changing
def log_in_with_passkey(request: HttpRequest) -> HttpResponse:
    """Give the browser a challenge, and take its answer; who answers is known from the passkey."""
    if request.method != "POST":
        return JsonResponse(auth.begin_authentication(user=None))
    peer, form = read_peer(request), LoginWebAuthnForm(data=request.POST)
    try:
        if request.POST.get("credential"):
            admit_log_in(peer=peer)
    except LogInThrottled as error:
        return answer_throttled(request, error.seconds)
    if not form.is_valid():
        words = _("This passkey is not known here. Log in with your password.")
        return render(request, "registration/refused.html", {"words": words}, status=403)
    refund_attempt(peer=peer)
    authenticator = form.cleaned_data["credential"]
    login = Login(user=authenticator.user, redirect_url=read_next(request.POST) or None)
    response: HttpResponse = flows.perform_passwordless_login(request, authenticator, login)
    return response
