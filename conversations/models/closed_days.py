"""Days that are over, added up: derived from calls, turns and transformations, never the record."""

from __future__ import annotations

from django.conf import settings
from django.db import models


class ClosedDay(models.Model):
    """A day (UTC) in which nothing new will happen any more; budgets/usage/closed_days.py."""

    day = models.DateField(unique=True)
    #: False: rows of it came or went since, so that it is to be added up again.
    is_current = models.BooleanField(default=True)
    #: Calls by model and purpose, and by cost centre; transformations by kind and by model; turns
    #: by state.
    sums = models.JSONField(default=dict)

    def __str__(self) -> str:
        return f"sums of {self.day}"


class PersonDay(models.Model):
    """What one person's calls and transformations of a closed day come to; money in micros."""

    closed = models.ForeignKey(ClosedDay, on_delete=models.CASCADE, related_name="people")
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    calls = models.PositiveIntegerField()
    input = models.PositiveBigIntegerField()
    output = models.PositiveBigIntegerField()
    cache_read = models.PositiveBigIntegerField()
    cache_write = models.PositiveBigIntegerField()
    micros = models.PositiveBigIntegerField()
    #: The part of the cost that summaries caused.
    compacting = models.PositiveBigIntegerField()
    applied = models.PositiveIntegerField()
    saved = models.BigIntegerField()
    requested = models.PositiveIntegerField()
    rejected = models.PositiveIntegerField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["closed", "owner"], name="person_day_once")]

    def __str__(self) -> str:
        return f"sums of {self.owner_id} on {self.closed}"
