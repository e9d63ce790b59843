"""Words for a summary that a person asked the model for and has not decided on.

One at a time in a conversation: the row is the claim under which the model is asked, and then what
waits for the person's word. It is no part of the log: nothing is applied before that word, and the
row goes with it.
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
    #: The end of the path it is made for, and the summary whose words it would replace (0: none).
    tip = models.PositiveBigIntegerField()
    target = models.PositiveBigIntegerField(default=0)
    actor = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    #: The last call for it; its words once they are accepted, or why there are none.
    call = models.ForeignKey(ApiCall, null=True, on_delete=models.PROTECT, related_name="+")
    text = models.TextField(blank=True)
    reason = models.TextField(blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    #: When the model was last asked.
    asked_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return f"proposal for entry {self.tip}"

    @property
    def is_asking(self) -> bool:
        return not (self.text or self.reason)
