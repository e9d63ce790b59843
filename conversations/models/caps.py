"""Caps of a turn, independent of budgets, so that a runaway turn ends."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth.models import Group
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.utils.translation import gettext_lazy as _

from conversations.models.budgets import MOST


class TurnCap(models.Model):
    """What one turn may use, for a group's members or a person; an empty field inherits.

    The person's number applies, else the largest of the groups', else the site's setting. 0 means
    no cap on money.
    """

    group = models.OneToOneField(
        Group, null=True, blank=True, on_delete=models.CASCADE, related_name="turn_cap"
    )
    user = models.OneToOneField(
        settings.AUTH_USER_MODEL,
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="turn_cap",
    )
    micros = models.PositiveBigIntegerField(
        "money",
        null=True,
        blank=True,
        validators=[MaxValueValidator(MOST)],
        help_text=_("In dollars; 0: no cap."),
    )
    rounds = models.PositiveIntegerField(
        _("model calls"), null=True, blank=True, validators=[MinValueValidator(1)]
    )
    tool_calls = models.PositiveIntegerField(null=True, blank=True)
    seconds = models.PositiveIntegerField(null=True, blank=True, validators=[MinValueValidator(1)])

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="turn_cap_subject",
                condition=models.Q(group__isnull=False, user__isnull=True)
                | models.Q(group__isnull=True, user__isnull=False),
            )
        ]

    def __str__(self) -> str:
        return f"cap {self.pk}"
