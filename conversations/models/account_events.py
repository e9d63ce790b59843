"""What happened to an account, for the person to check: shown on its page and sent by mail."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from conversations.models.people import User


class AccountEvent(models.Model):
    class Kind(models.TextChoices):
        GUESSED = "guessed", _("Somebody guessed at your password; further attempts were refused")
        RESET_ASKED = "reset_asked", _("A link to a new password was asked for")
        RESET_MADE = "reset_made", _("An administrator made a link to a new password")
        PASSWORD_RESET = "password_reset", _("A new password was set with a link from a mail")
        PASSWORD_CHANGED = "password_changed", _("The password was changed")
        FACTOR_ADDED = "factor_added", _("A second factor or recovery codes were added")
        FACTOR_REMOVED = "factor_removed", _("A second factor was removed")
        EMAIL_ASKED = "email_asked", _("A link to a new e-mail address was asked for")
        EMAIL_CHANGED = "email_changed", _("The e-mail address was changed")
        TOKEN_MADE = "token_made", _("A token of the API was made")
        TOKEN_REVOKED = "token_revoked", _("A token of the API was revoked")
        LINK_MADE = "link_made", _("A link to a chat was made")
        LINK_PUBLIC = "link_public", _("A link to a chat was made that needs no log-in")
        LINK_REVOKED = "link_revoked", _("A link to a chat was revoked")
        LINK_STOPPED = "link_stopped", _("An administrator revoked a link to a chat")

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="account_events")
    kind = models.CharField(max_length=24, choices=Kind)
    #: The address it came from, as the server saw it.
    peer = models.CharField(_("address"), max_length=64, blank=True)
    at = models.DateTimeField()
    #: The person was told on a page.
    is_shown = models.BooleanField(default=False)

    class Meta:
        ordering = ["-at", "-id"]
        indexes = [models.Index(fields=["user", "-at"], name="events_of_an_account")]

    def __str__(self) -> str:
        return self.kind
