"""A new password by a link from a mail: asked for, sent, set.

Whoever asks gets the same page, whether an account has the address or not, and the mail leaves in a
thread. Asking is counted like a log-in, and so is a link that does not work; an account is sent few
links an hour. A new password ends all sessions and, where there is no second factor, forgets the
guesses at the old one; second factors are still asked for.
"""

from __future__ import annotations

from typing import Any

from django.contrib.auth.views import PasswordResetConfirmView, PasswordResetView
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.urls import reverse_lazy
from django.views.decorators.http import require_safe

from conversations.accounts.account_mail import can_send_mail
from conversations.accounts.second_factors import has_factor
from conversations.accounts.throttle import LogInThrottled, admit_log_in, refund_attempt
from conversations.conf import conf
from conversations.web.forms.log_in import read_peer
from conversations.web.forms.password_reset import AskForm, ResetForm
from conversations.web.log_in import answer_throttled


class Ask(PasswordResetView):
    http_method_names = ["get", "head", "post"]
    template_name = "registration/reset.html"
    form_class = AskForm
    success_url = reverse_lazy("password_reset_sent")

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(**kwargs) | {"sends_mail": can_send_mail()}

    def form_valid(self, form: Any) -> HttpResponse:
        form.peer = read_peer(self.request)
        try:
            admit_log_in(peer=form.peer)
        except LogInThrottled as error:
            return answer_throttled(self.request, error.seconds)
        return super().form_valid(form)


@require_safe
def sent(request: HttpRequest) -> HttpResponse:
    context = {"sends_mail": can_send_mail(), "hours": conf.mailed_link_hours}
    return render(request, "registration/reset_sent.html", context)


class Confirm(PasswordResetConfirmView):
    http_method_names = ["get", "head", "post"]
    template_name = "registration/reset_confirm.html"
    form_class = ResetForm
    success_url = reverse_lazy("login")

    def dispatch(self, *args: Any, **kwargs: Any) -> HttpResponseBase:
        peer = read_peer(self.request)
        try:
            admit_log_in(peer=peer)
        except LogInThrottled as error:
            return answer_throttled(self.request, error.seconds)
        response = super().dispatch(*args, **kwargs)
        if self.validlink:
            refund_attempt(peer=peer)
        return response

    def form_valid(self, form: Any) -> HttpResponse:
        form.peer = read_peer(self.request)
        if not has_factor(form.user):
            # Strangers may still be guessing: this browser gets in all the same.
            self.request.logged_in = form.user  # type: ignore[attr-defined]
        return super().form_valid(form)
