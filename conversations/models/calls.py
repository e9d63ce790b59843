"""Calls: every request that was sent, stored so that it can be rebuilt byte for byte.

The body of a reply call is its envelope and the view at its `tip`; other purposes store their
messages as a blob. A call without a result is in doubt.
"""

from __future__ import annotations

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from conversations.models.log import AppendOnly, Blob, Chained, Conversation, Message
from conversations.models.turns import Turn


class Envelope(AppendOnly):
    """Every request parameter but `messages`, as wire text, and the beta headers."""

    digest = models.CharField(max_length=80, primary_key=True)
    text = models.TextField()
    headers = models.TextField(default="{}")

    def __str__(self) -> str:
        return self.digest


class ApiCall(Chained):
    class Purpose(models.TextChoices):
        REPLY = "reply", _("Reply")
        SUMMARY = "summary", _("Summary")
        TITLE = "title", _("Title")

    conversation = models.ForeignKey(Conversation, on_delete=models.PROTECT, related_name="calls")
    turn = models.ForeignKey(Turn, on_delete=models.PROTECT, related_name="calls")
    #: Increases within the turn; each attempt is a call of its own.
    number = models.PositiveIntegerField()
    purpose = models.CharField(max_length=10, choices=Purpose.choices)
    model = models.CharField(max_length=100)
    envelope = models.ForeignKey(Envelope, on_delete=models.PROTECT, related_name="+")
    tip = models.PositiveBigIntegerField()
    messages = models.ForeignKey(Blob, null=True, on_delete=models.PROTECT, related_name="+")
    body_digest = models.CharField(max_length=80)
    body_bytes = models.PositiveBigIntegerField()
    estimated_tokens = models.PositiveIntegerField()
    #: The estimates on which the next gauge is anchored.
    view_tokens = models.PositiveIntegerField(default=0)
    overhead_tokens = models.PositiveIntegerField(default=0)
    view_edits = models.PositiveIntegerField(default=0)
    #: Identifies what the answer's thinking is signed over: model, system prompt and tools.
    binding = models.CharField(max_length=80)
    max_tokens = models.PositiveIntegerField()
    #: For which it counts, as of then (budgets/cost_centres.py).
    cost_centre = models.ForeignKey(
        "conversations.CostCentre",
        null=True,
        on_delete=models.PROTECT,
        related_name="+",
        db_index=False,
    )
    sent_at = models.DateTimeField(default=timezone.now)

    class Meta:
        verbose_name = _("call")
        constraints = [models.UniqueConstraint(fields=["turn", "number"], name="apicall_number")]
        indexes = [
            models.Index(fields=["conversation", "tip"]),
            models.Index(fields=["sent_at", "id"], name="call_sent_at"),
        ]

    def __str__(self) -> str:
        return f"{self.purpose} call {self.pk}"


class ApiResult(Chained):
    class Status(models.TextChoices):
        COMPLETE = "complete", _("Complete")
        STOPPED = "stopped", _("Stopped")
        TRUNCATED = "truncated", _("Truncated")
        REFUSED = "refused", _("Refused")
        ERROR = "error", _("Error")
        LOST = "lost", _("Lost")

    call = models.OneToOneField(ApiCall, on_delete=models.PROTECT, related_name="result")
    answer = models.OneToOneField(
        Message, null=True, on_delete=models.PROTECT, related_name="result"
    )
    status = models.CharField(max_length=10, choices=Status.choices)
    request_id = models.CharField(max_length=100, blank=True)
    http_status = models.PositiveSmallIntegerField(null=True)
    error_type = models.CharField(max_length=60, blank=True)
    error_message = models.TextField(blank=True)
    stop_reason = models.CharField(max_length=40, blank=True)
    #: The reported usage as text; the four counts are what was billed, None if nothing was
    #: reported.
    usage = models.TextField(default="{}")
    input_tokens = models.PositiveBigIntegerField(null=True)
    output_tokens = models.PositiveBigIntegerField(null=True)
    cache_read_tokens = models.PositiveBigIntegerField(null=True)
    cache_write_tokens = models.PositiveBigIntegerField(null=True)
    cost_micros = models.PositiveBigIntegerField()
    #: exact, estimated (cut stream, lost call, no figures), clamped (an impossible figure was
    #: replaced by the nearest possible one) or none (released).
    cost_basis = models.CharField(max_length=10)
    #: What was charged, and the ids of the price rows in force (agent/bill.py); "" of older results
    #: and of those that cost nothing.
    bill = models.TextField(blank=True, default="", db_default="")
    first_event_ms = models.PositiveIntegerField(null=True)
    duration_ms = models.PositiveIntegerField()
    ended_at = models.DateTimeField(default=timezone.now)

    class Meta:
        indexes = [
            # All that the cost of a conversation is added up from, without its rows.
            models.Index(fields=["call", "cost_micros"], name="result_cost"),
        ]

    def __str__(self) -> str:
        return f"{self.status} {self.call_id}"
