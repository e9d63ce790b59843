"""Effort of groups: how much a model thinks and writes if a conversation chooses no level."""

from __future__ import annotations

from django.contrib.auth.models import Group
from django.db import models
from django.utils.translation import gettext_lazy as _

from conversations.models.log import Effort


class EffortRule(models.Model):
    """The level of a group's members; for a group without a row the site's level applies.

    If a person's groups differ, the highest applies. A conversation's own choice takes precedence.
    """

    group = models.OneToOneField(Group, on_delete=models.CASCADE, related_name="effort_rule")
    effort = models.CharField(
        max_length=6,
        choices=Effort,
        help_text=_(
            "More thinks longer and costs more; a model without the level uses its nearest."
        ),
    )

    class Meta:
        verbose_name = _("default effort")
        ordering = ["group_id"]

    def __str__(self) -> str:
        return self.effort
