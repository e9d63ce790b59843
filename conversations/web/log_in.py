"""Logging in: the page, and the dialog on a page whose session has ended.

The admin has no log-in of its own (agentweb/site/admin_site.py). Throttled attempts get a 429 that
says how long to wait.
"""

from __future__ import annotations

from typing import Any, TypeVar

from allauth.account.internal.flows.login import perform_password_login
from allauth.account.models import Login
from django.contrib.auth.views import LoginView
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from conversations.accounts.openid_providers import list_openid_providers
from conversations.web.after_log_in import is_held_back
from conversations.web.forms.log_in import CountedForm, LogInForm, describe_wait

_Answer = TypeVar("_Answer", bound=HttpResponse)


def set_throttle_status(response: _Answer) -> _Answer:
    """Set status 429 on the response of a throttled log-in, and return it."""
    form = (getattr(response, "context_data", None) or {}).get("form")
    if isinstance(form, CountedForm) and form.wait:
        response.status_code = 429
        response.headers["Retry-After"] = str(form.wait)
    return response


def answer_throttled(request: HttpRequest, seconds: int, words: str = "") -> HttpResponse:
    """Answer a throttled attempt, of a log-in or of what `words` say, with a page of its own."""
    context = {"words": words or describe_wait(seconds)}
    response = render(request, "429.html", context, status=429)
    response.headers["Retry-After"] = str(seconds)
    return response


class LogIn(LoginView):
    http_method_names = ["get", "head", "post"]
    form_class = LogInForm
    redirect_authenticated_user = True

    def form_valid(self, form: Any) -> HttpResponse:
        """Log in, or go on to the second step of somebody who has one."""
        user = form.get_user()
        login = Login(user=user, redirect_url=self.get_success_url())
        name = {"username": user.get_username()}
        response: HttpResponse = perform_password_login(self.request, name, login)
        return response

    def form_invalid(self, form: Any) -> HttpResponse:
        return set_throttle_status(super().form_invalid(form))

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(**kwargs) | {"providers": list_openid_providers()}


class LogInAgain(LogIn):
    """A log-in without leaving the page; someone already logged in only gets a new token."""

    redirect_authenticated_user = False
    template_name = "registration/again.html"

    def form_valid(self, form: Any) -> HttpResponse:
        super().form_valid(form)
        is_half = not self.request.user.is_authenticated
        context = {"is_half": is_half, "is_lacking": self._is_lacking()}
        return render(self.request, self.template_name, context)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(**kwargs) | {"is_lacking": self._is_lacking()}

    def _is_lacking(self) -> bool:
        """Return whether the page that asks needs a second factor that the person must add."""
        return is_held_back(self.request, self.request.GET.get("next", ""))
