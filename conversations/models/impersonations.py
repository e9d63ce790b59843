"""Who looked at the site as another person: when, why, until when; rows of the site's chain."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils import timezone

from conversations.models.log import Chained


class Impersonation(Chained):
    person = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="impersonations"
    )
    actor = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    reason = models.CharField(max_length=300)
    until = models.DateTimeField()
    created_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return f"impersonation {self.pk}"


class ImpersonationEnd(Chained):
    impersonation = models.OneToOneField(
        Impersonation, on_delete=models.PROTECT, related_name="end"
    )
    created_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return f"end of {self.impersonation}"
