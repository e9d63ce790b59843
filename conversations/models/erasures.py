"""Erasures: that a conversation was erased, whose and when, without its content.

The row keeps what accounting needs, which is the cost of the erased calls by day and model, and the
end of the hash chain, so that a copy of the erased log can still be recognized.
"""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils import timezone

from conversations.models.log import Chained


class Erasure(Chained):
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="erasures"
    )
    #: The public id of the erased conversation.
    conversation = models.UUIDField(db_index=True)
    begun_at = models.DateTimeField()
    #: When its owner deleted it, and when it became due for erasure; equal if the owner requested
    #: immediate erasure.
    deleted_at = models.DateTimeField()
    due_at = models.DateTimeField()
    messages = models.PositiveIntegerField()
    transformations = models.PositiveIntegerField()
    calls = models.PositiveIntegerField()
    #: The length and the end of its hash chain.
    links = models.PositiveBigIntegerField()
    tail = models.CharField(max_length=80, blank=True)
    cost_micros = models.PositiveBigIntegerField()
    #: A row for each day and model: calls, the four token counts and the cost.
    usage = models.JSONField(default=list)
    erased_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return f"erasure of {self.conversation}"
