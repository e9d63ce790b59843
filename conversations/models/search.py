"""The search index: terms of titles and messages, beside the text they are shown in.

It is a table of our own on both databases, indexed by each in its own way (log/search_index.py).
Rows contain only text from the log, so they can be rebuilt, and are deleted with their
conversation.
"""

from __future__ import annotations

from django.conf import settings
from django.db import models

from conversations.models.fields import TermsField
from conversations.models.log import Conversation, Message


class SearchText(models.Model):
    """A part of a message's text, or a title, with its owner, so that one index suffices."""

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="+")
    #: None: the text is the title.
    message = models.ForeignKey(Message, null=True, on_delete=models.CASCADE, related_name="+")
    seq = models.PositiveBigIntegerField(default=0)
    kind = models.CharField(max_length=10)
    part = models.PositiveIntegerField(default=0)
    text = models.TextField()
    words = TermsField()
    at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["conversation", "seq", "part"], name="searchtext_part")
        ]
        indexes = [models.Index(fields=["owner", "-at", "-id"], name="searchtext_newest")]

    def __str__(self) -> str:
        return f"{self.kind} {self.seq}"
