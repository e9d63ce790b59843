"""Pins: what a person wants sent in full, as append-only rows.

The latest row of a target says whether it is pinned. A target is the id of a tool call or the
number of a message, as in the context engine.
"""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils import timezone

from conversations.models.log import Chained, Conversation


class Pin(Chained):
    conversation = models.ForeignKey(Conversation, on_delete=models.PROTECT, related_name="pins")
    #: One of the two: a tool_use id, or a message's number.
    tool_use_id = models.CharField(max_length=200, blank=True)
    seq = models.PositiveBigIntegerField(null=True)
    is_pinned = models.BooleanField()
    actor = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(tool_use_id="", seq__isnull=False)
                | (~models.Q(tool_use_id="") & models.Q(seq=None)),
                name="pin_of_one_target",
            ),
        ]

    def __str__(self) -> str:
        what = self.tool_use_id if self.seq is None else f"message {self.seq}"
        return f"{what} {'pinned' if self.is_pinned else 'not pinned'}"

    @property
    def target(self) -> str | int:
        """The pinned target, as the context engine identifies it."""
        return self.tool_use_id if self.seq is None else self.seq
