"""Invitations: links with which one person makes an account, and the record of each decision.

Of a link only the digest is stored, so whoever reads the database cannot use it.
"""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth.models import Group
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from conversations.models.log import Chained
from conversations.models.people import User


class Invitation(models.Model):
    #: Known only where it has just been made.
    link = ""

    digest = models.CharField(max_length=64, unique=True, editable=False)
    email = models.EmailField(
        _("e-mail address"),
        blank=True,
        help_text=_(
            "The account gets this address. Where the site sends mail, the link goes there."
        ),
    )
    groups = models.ManyToManyField(Group, blank=True, related_name="+")
    #: None: an operator, by a command.
    made_by = models.ForeignKey(
        User, on_delete=models.PROTECT, null=True, editable=False, related_name="+"
    )
    created_at = models.DateTimeField(_("made"), default=timezone.now, editable=False)
    expires_at = models.DateTimeField(_("works until"))
    used_by = models.OneToOneField(
        User, on_delete=models.PROTECT, null=True, editable=False, related_name="invitation"
    )
    used_at = models.DateTimeField(_("used"), null=True, editable=False)
    withdrawn_at = models.DateTimeField(_("withdrawn"), null=True, editable=False)

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"invitation {self.pk}"


class InvitationDecision(Chained):
    """That an invitation was made, used or withdrawn."""

    class Kind(models.TextChoices):
        MADE = "made", _("made")
        USED = "used", _("used")
        WITHDRAWN = "withdrawn", _("withdrawn")

    invitation = models.ForeignKey(Invitation, on_delete=models.PROTECT, related_name="decisions")
    kind = models.CharField(max_length=9, choices=Kind.choices)
    #: Who made or withdrew it, or the new account; None: an operator, by a command.
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+"
    )
    #: The names of the groups that the account gets.
    note = models.TextField(blank=True)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"{self.get_kind_display()} {self.pk}"
