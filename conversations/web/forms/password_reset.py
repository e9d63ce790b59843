"""Forms of a forgotten password: the address that a link is sent to, and the new password."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib.auth.forms import PasswordResetForm, SetPasswordForm
from django.template.loader import render_to_string
from django.utils.translation import gettext as _

from conversations.accounts.account_events import Kind, admit_link
from conversations.accounts.account_mail import send_account_mail
from conversations.accounts.people import save_password
from conversations.accounts.second_factors import has_factor
from conversations.accounts.throttle import forget_guesses
from conversations.conf import conf
from conversations.models import User

if TYPE_CHECKING:
    _SetPasswordForm = SetPasswordForm[User]
else:
    _SetPasswordForm = SetPasswordForm


class AskForm(PasswordResetForm):
    """The address; Django finds the accounts that have it and makes their links."""

    peer = ""

    def send_mail(
        self,
        subject_template_name: Any,
        email_template_name: Any,
        context: dict[str, Any],
        from_email: Any,
        to_email: str,
        html_email_template_name: Any = None,
    ) -> None:
        user = context["user"]
        if not admit_link(user=user, kind=Kind.RESET_ASKED, peer=self.peer):
            return
        context |= {"hours": conf.mailed_link_hours, "peer": self.peer}
        text = render_to_string("registration/reset_mail.txt", context)
        send_account_mail(to=to_email, subject=_("Set a new password"), text=text)


class ResetForm(_SetPasswordForm):
    """The new password of somebody who has the link."""

    peer = ""

    def save(self, commit: bool = True) -> User:
        user = super().save(commit=False)
        save_password(user=user, kind=Kind.PASSWORD_RESET, peer=self.peer)
        if not has_factor(user):
            # The guesses may be at the codes of a factor, which stay what they are.
            forget_guesses(name=user.get_username())
        return user
