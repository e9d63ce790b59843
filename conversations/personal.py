"""The pages of a person's own settings: how pages look, how the chat acts, keys, the account.

What is chosen is stored with the person and rendered by the server, so no page flashes and every
device is the same. Here too is the log-in that comes to a page whose session is over, so that
nothing of the page is lost.
"""

from __future__ import annotations

from typing import Any

from django.contrib.auth.decorators import login_required
from django.contrib.auth.views import LoginView, PasswordChangeView
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse_lazy
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_safe

from conversations.history.frame import frame, notice
from conversations.preference_forms import (
    AppearanceForm,
    ChatForm,
    PreferenceForm,
    ShortcutsForm,
)
from conversations.preferences import preferences
from conversations.queries.policies import policy_of_person
from conversations.services.people import keep_preferences
from conversations.views import person

changing = require_http_methods(["GET", "HEAD", "POST"])


@login_required
@require_safe
def first(request: HttpRequest) -> HttpResponse:
    return redirect("appearance_settings")


@login_required
@changing
def appearance(request: HttpRequest) -> HttpResponse:
    return _page(request, "appearance", AppearanceForm)


@login_required
@changing
def chat(request: HttpRequest) -> HttpResponse:
    return _page(request, "chat", ChatForm)


@login_required
@changing
def shortcuts(request: HttpRequest) -> HttpResponse:
    return _page(request, "shortcuts", ShortcutsForm)


@login_required
@require_safe
def context(request: HttpRequest) -> HttpResponse:
    """Show the person's context policy as it counts, and what a chat may choose of it."""
    found, problem = policy_of_person(person(request))
    shown = frame(request) | {"tab": "context", "numbers": found, "problem": problem}
    return render(request, "conversations/settings/context.html", shown)


def _page(request: HttpRequest, name: str, kind: type[PreferenceForm]) -> HttpResponse:
    """Show a form of preferences, or store what was sent."""
    user = person(request)
    present = preferences(user.preferences)
    form = kind(present, request.POST if request.method == "POST" else None)
    if form.is_valid():
        keep_preferences(user_id=user.pk, changes=form.cleaned_data)
        if request.htmx:  # type: ignore[attr-defined]
            return HttpResponse(status=204)
        notice(request, _("Saved."))
        return redirect(f"{name}_settings")
    shown = frame(request) | {"form": form, "tab": name}
    status = 400 if form.is_bound else 200
    return render(request, f"conversations/settings/{name}.html", shown, status=status)


class Account(PasswordChangeView):
    """The password, and what a new one does to the other sessions."""

    http_method_names = ["get", "head", "post"]
    template_name = "conversations/settings/account.html"
    success_url = reverse_lazy("account_settings")

    def form_valid(self, form: Any) -> HttpResponse:
        notice(self.request, _("The password was changed. Other devices are logged out."))
        return super().form_valid(form)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(**kwargs) | frame(self.request) | {"tab": "account"}


class LogInAgain(LoginView):
    """A log-in without leaving the page; who is logged in already only gets a new token."""

    http_method_names = ["get", "head", "post"]
    template_name = "registration/again.html"

    def form_valid(self, form: Any) -> HttpResponse:
        super().form_valid(form)
        return render(self.request, self.template_name)
