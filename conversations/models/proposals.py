"""Proposals: a summary that a person requested from the model and has not decided on.

A conversation has one at a time: the row is the claim under which the model is called, and then
waits for the person's decision. It is not part of the log: nothing is applied before the decision,
and the row is deleted with it.
"""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils import timezone

from conversations.models.calls import ApiCall
from conversations.models.log import Conversation


class Proposal(models.Model):
    conversation = models.OneToOneField(
        Conversation, on_delete=models.PROTECT, related_name="proposal"
    )
    #: The tip it was made for, and the summary whose text it would replace (0: none).
    tip = models.PositiveBigIntegerField()
    target = models.PositiveBigIntegerField(default=0)
    actor = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    #: The last call for it; its text once accepted, or the reason for failure.
    call = models.ForeignKey(ApiCall, null=True, on_delete=models.PROTECT, related_name="+")
    text = models.TextField(blank=True)
    reason = models.TextField(blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    #: When a process claimed it, then when that last renewed its claim; before, as `created_at`.
    asked_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return f"proposal for entry {self.tip}"

    @property
    def is_asking(self) -> bool:
        return not (self.text or self.reason)
