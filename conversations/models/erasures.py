"""Erasures: that a conversation was erased, whose and when, without its content.

The row keeps what accounting needs, which is the cost of the erased calls by day and model, and the
end of the hash chain, so that a copy of the erased log can still be recognized. Proofs that
nothing of the erased text is left are rows of their own, because a record is never changed.
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
    #: The retention rule by which it was deleted, in words; "": its owner deleted it.
    rule = models.CharField(max_length=250, blank=True, default="", db_default="")
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


class ErasedDigests(models.Model):
    """Keyed digests of phrases and words that were erased, until a proof has found none of them.

    The text cannot be read from them (operations/leftovers/phrases.py).
    """

    erasure = models.OneToOneField(Erasure, on_delete=models.PROTECT, related_name="digests")
    phrases = models.BinaryField()
    words = models.BinaryField()
    #: The fingerprint of the key they were made with; empty: not known, so they are not searched.
    key = models.BinaryField(max_length=8, default=bytes)
    #: When cleaning was last begun by the sweep, whether or not it came to its end.
    tried_at = models.DateTimeField(null=True, db_index=True)
    #: When files and index of the database were cleaned of what was erased.
    purged_at = models.DateTimeField(null=True, db_index=True)

    def __str__(self) -> str:
        return f"digests of {self.erasure}"


class ErasureProof(Chained):
    """A search for what was erased: the places, and how many of the digests were found in each."""

    erasure = models.ForeignKey(Erasure, on_delete=models.PROTECT, related_name="proofs")
    #: How many phrases and words were searched for.
    phrases = models.PositiveIntegerField()
    words = models.PositiveIntegerField()
    #: A row for each place: its name, bytes read, digests found (null: unreadable), a note.
    places = models.JSONField(default=list)
    found = models.PositiveIntegerField()
    #: The backup that was searched, by the name of its file; "": none.
    backup = models.CharField(max_length=255, blank=True)
    proven_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return f"proof of the {self.erasure}"
