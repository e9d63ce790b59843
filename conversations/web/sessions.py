"""Where a person is logged in: each browser, with ways to log it out."""

from __future__ import annotations

from django.contrib.auth import logout, update_session_auth_hash
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from conversations.accounts import sessions
from conversations.web.page_shell import add_notice, build_page_context
from conversations.web.responses import require_user


@login_required
@require_safe
def page(request: HttpRequest) -> HttpResponse:
    user, current = require_user(request), request.session.session_key
    rows = sessions.list_own_sessions(user=user, current=current)
    context = build_page_context(request) | {"tab": "account", "rows": rows}
    return render(request, "conversations/settings/sessions.html", context)


@login_required
@require_POST
def log_out_one(request: HttpRequest) -> HttpResponse:
    """End the named session of the person; its sockets are closed by the session check."""
    owner_id = require_user(request).pk
    key = sessions.find_own_session(user_id=owner_id, name=request.POST.get("name", ""))
    if key and key == request.session.session_key:
        logout(request)
        return redirect("login")
    is_ended = bool(key) and sessions.end_session(user_id=owner_id, key=key)
    add_notice(request, _("Logged out there.") if is_ended else _("That log-in had ended already."))
    return redirect("sessions")


@login_required
@require_POST
def log_out_elsewhere(request: HttpRequest) -> HttpResponse:
    """End all sessions of the person but this one."""
    user = sessions.end_sessions(user_id=require_user(request).pk)
    update_session_auth_hash(request, user)
    add_notice(request, _("Other devices are logged out."))
    return redirect("account_settings")


@login_required
@require_POST
def log_out_everywhere(request: HttpRequest) -> HttpResponse:
    """End all sessions of the person, this one too."""
    sessions.end_sessions(user_id=require_user(request).pk)
    logout(request)
    return redirect("login")
