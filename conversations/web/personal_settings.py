"""A person's settings: appearance, chat, shortcuts, context policy, account.

Preferences are stored with the person and rendered by the server, so no page flickers and every
device is the same.
"""

from __future__ import annotations

from typing import Any

from django.contrib.auth.decorators import login_required
from django.contrib.auth.views import PasswordChangeView
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse_lazy
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_safe

from conversations.accounts.account_events import list_account_events
from conversations.accounts.people import save_preferences
from conversations.accounts.preferences import read_preferences
from conversations.reductions.policy import list_numbers_or_problem, preset_of
from conversations.reductions.words import describe_preset
from conversations.web.forms.log_in import NewPasswordForm
from conversations.web.forms.personal_settings import (
    AppearanceForm,
    ChatForm,
    PreferenceForm,
    ShortcutsForm,
)
from conversations.web.log_in import set_throttle_status
from conversations.web.page_shell import add_notice, build_page_context
from conversations.web.responses import require_user

changing = require_http_methods(["GET", "HEAD", "POST"])


@login_required
@require_safe
def first(request: HttpRequest) -> HttpResponse:
    return redirect("appearance_settings")


@login_required
@changing
def appearance(request: HttpRequest) -> HttpResponse:
    return _handle_form(request, "appearance", AppearanceForm)


@login_required
@changing
def chat(request: HttpRequest) -> HttpResponse:
    return _handle_form(request, "chat", ChatForm)


@login_required
@changing
def shortcuts(request: HttpRequest) -> HttpResponse:
    return _handle_form(request, "shortcuts", ShortcutsForm)


@login_required
@require_safe
def context(request: HttpRequest) -> HttpResponse:
    """Show the person's effective context policy, and the ranges a chat may choose from."""
    user = require_user(request)
    numbers, problem = list_numbers_or_problem(user)
    shown = build_page_context(request) | {
        "tab": "context",
        "problem": problem,
        "preset": "" if problem else describe_preset(preset_of(user.policy)),
        "main": [number for number in numbers if number.is_main],
        "others": [number for number in numbers if not number.is_main],
    }
    return render(request, "conversations/settings/context.html", shown)


def _handle_form(request: HttpRequest, name: str, kind: type[PreferenceForm]) -> HttpResponse:
    """Show a form of preferences, or store the sent ones."""
    user = require_user(request)
    present = read_preferences(user.preferences)
    form = kind(present, request.POST if request.method == "POST" else None, user.pk)
    if form.is_valid():
        save_preferences(user_id=user.pk, changes=form.cleaned_data)
        if request.htmx:  # type: ignore[attr-defined]
            return HttpResponse(status=204)
        add_notice(request, _("Saved."))
        return redirect(f"{name}_settings")
    shown = build_page_context(request) | {"form": form, "tab": name}
    status = 400 if form.is_bound else 200
    return render(request, f"conversations/settings/{name}.html", shown, status=status)


class Account(PasswordChangeView):
    """The password page; a new password ends the other sessions."""

    http_method_names = ["get", "head", "post"]
    template_name = "conversations/settings/account.html"
    success_url = reverse_lazy("account_settings")
    form_class = NewPasswordForm

    def get_form_kwargs(self) -> dict[str, Any]:
        return super().get_form_kwargs() | {"request": self.request}

    def form_invalid(self, form: Any) -> HttpResponse:
        return set_throttle_status(super().form_invalid(form))

    def form_valid(self, form: Any) -> HttpResponse:
        response = super().form_valid(form)
        add_notice(self.request, _("The password was changed. Other devices are logged out."))
        return response

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return (
            super().get_context_data(**kwargs)
            | build_page_context(self.request)
            | {"tab": "account", "events": list_account_events(require_user(self.request).pk)}
        )
