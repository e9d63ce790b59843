"""Groups whose members must have a second factor."""

from __future__ import annotations

from django.contrib.auth.models import Group
from django.db import models
from django.utils.translation import gettext_lazy as _


class SecondFactorRule(models.Model):
    """A group with a row must; its members without a factor see only the page to add one."""

    group = models.OneToOneField(Group, on_delete=models.CASCADE, related_name="second_factor_rule")

    class Meta:
        verbose_name = _("required second factor")
        ordering = ["group_id"]

    def __str__(self) -> str:
        return "required"
