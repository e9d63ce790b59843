"""Checkpoints of the folded view: derived from the log, never a part of the record."""

from __future__ import annotations

from django.db import models

from conversations.models.log import Conversation


class ViewCheckpoint(models.Model):
    """The view after entry `seq` of the path that was loaded last."""

    conversation = models.OneToOneField(
        Conversation, on_delete=models.CASCADE, related_name="view_checkpoint"
    )
    seq = models.PositiveBigIntegerField()
    #: Answers on the path up to there; the entry that inserted the compaction block (0: none).
    answers = models.PositiveIntegerField()
    compaction = models.PositiveBigIntegerField(default=0)
    #: The summaries among the last entries: distance, outcome, person, tokens of the view.
    summaries = models.JSONField(default=list)
    #: As `write_view` of context/view/stored_view.py wrote it.
    view = models.TextField()
    made_at = models.DateTimeField(auto_now=True)

    def __str__(self) -> str:
        return f"view at {self.seq}"
