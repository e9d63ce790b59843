"""The page of a person's mail accounts: added once the connection works, changed, removed."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

from asgiref.sync import async_to_sync
from django.contrib.auth.decorators import login_required
from django.forms import Form
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

import conversations.toolbox.mail_words  # noqa: F401 - `translated` knows its sentences
from conversations.templatetags.recorded import translated
from conversations.toolbox.mail_accounts import (
    AccountRefused,
    add_mail_account,
    change_mail_account,
    list_mail_accounts,
    read_mail_account,
    remove_mail_account,
)
from conversations.toolbox.mail_port import build_mail_access
from conversations.web.forms.mail_account import ChangeMailForm, MailAccountForm
from conversations.web.page_shell import add_notice, build_page_context
from conversations.web.responses import require_user
from tools.framework.errors import ToolError
from tools.mail.accounts import Account
from tools.mail.trial import try_account

#: Seconds to wait for each of the two servers.
PATIENCE = 15.0


@login_required
@sensitive_post_parameters("secret")
@require_http_methods(["GET", "HEAD", "POST"])
def page(request: HttpRequest) -> HttpResponse:
    """Show the accounts, or add one."""
    form = MailAccountForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        account = form.account()
        try:
            account = _try_account(account)
            add_mail_account(owner_id=require_user(request).pk, account=account)
        except (ToolError, AccountRefused) as error:
            form.add_error(None, translated(str(error)))
        else:
            add_notice(request, _("The account works and was added."))
            return redirect("mail_settings")
    return _render_page(request, form, 400 if form.is_bound else 200)


@login_required
@sensitive_post_parameters("secret")
@require_POST
def change(request: HttpRequest, account_id: UUID) -> HttpResponse:
    """Change an account's name, usual folder or secret, if the connection works with it."""
    owner = require_user(request).pk
    form = ChangeMailForm(request.POST, auto_id=f"id_{account_id}_%s")
    present = read_mail_account(owner, account_id)
    if present is None:
        raise Http404("no such account")
    if form.is_valid():
        data = form.cleaned_data
        wanted = replace(present, name=data["name"], folder=data["folder"])
        wanted = replace(wanted, secret=data["secret"] or present.secret)
        try:
            wanted = _try_account(wanted)
            if not change_mail_account(owner_id=owner, public_id=account_id, account=wanted):
                raise Http404("no such account")
        except (ToolError, AccountRefused) as error:
            form.add_error(None, translated(str(error)))
        else:
            add_notice(request, _("The account works and was changed."))
            return redirect("mail_settings")
    return _render_page(request, MailAccountForm(), 400, (account_id, form))


@login_required
@require_POST
def remove(request: HttpRequest, account_id: UUID) -> HttpResponse:
    """Delete an account and its secret."""
    try:
        if not remove_mail_account(owner_id=require_user(request).pk, public_id=account_id):
            raise Http404("no such account")
    except AccountRefused as error:
        add_notice(request, str(error))
        return redirect("mail_settings")
    add_notice(request, _("The account was removed, and its password erased."))
    return redirect("mail_settings")


def _render_page(
    request: HttpRequest,
    form: MailAccountForm,
    status: int,
    changed: tuple[UUID, Form] | None = None,
) -> HttpResponse:
    rows = []
    for row in list_mail_accounts(require_user(request).pk):
        own = ChangeMailForm(
            initial={"name": row.name, "folder": row.folder}, auto_id=f"id_{row.public_id}_%s"
        )
        is_changed = changed is not None and changed[0] == row.public_id
        rows.append((row, changed[1] if changed and is_changed else own))
    context = build_page_context(request) | {"tab": "mail", "form": form, "rows": rows}
    return render(request, "conversations/settings/mail_accounts.html", context, status=status)


def _try_account(account: Account) -> Account:
    return async_to_sync(try_account)(account, replace(build_mail_access(), deadline=PATIENCE))
