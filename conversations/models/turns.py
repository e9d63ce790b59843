"""Turns: from a prompt to the end of its answer, and the rows of a running turn.

The allowed changes of state are one table (`ALLOWED`), which `log/leases.py` enforces and a test
checks for all pairs. A conversation has one live turn at most; a turn has a lease whose generation
fences a worker that was paused and continues.
"""

from __future__ import annotations

import uuid

from django.db import models
from django.db.models.expressions import RawSQL
from django.utils.translation import gettext_lazy as _

from conversations.models.log import Blob, Conversation, Message


class TurnState(models.TextChoices):
    QUEUED = "queued", _("Queued")
    RUNNING = "running", _("Running")
    TOOL_WAIT = "tool_wait", _("Waiting for a tool")
    APPROVAL_WAIT = "approval_wait", _("Waiting for approval")
    BACKOFF = "backoff", _("Waiting to try again")
    CANCELLING = "cancelling", _("Cancelling")
    DONE = "done", _("Done")
    FAILED = "failed", _("Failed")
    CANCELLED = "cancelled", _("Cancelled")
    INTERRUPTED = "interrupted", _("Interrupted")


LIVE = ("queued", "running", "tool_wait", "approval_wait", "backoff", "cancelling")
#: The condition of the indexes of live turns, written out: SQLite sees in a parameter no reason to
#: use them, and would read every turn there ever was.
IS_LIVE = models.Q(state__in=[RawSQL(f"'{state}'", ()) for state in LIVE])  # noqa: S611 - our words
ALLOWED: dict[str, tuple[str, ...]] = {
    "queued": ("running", "cancelled", "failed"),
    "running": ("tool_wait", "backoff", "done", "failed", "cancelling", "interrupted"),
    "tool_wait": ("approval_wait", "running", "failed", "cancelling", "interrupted"),
    "approval_wait": ("tool_wait", "cancelling", "failed"),
    "backoff": ("running", "failed", "cancelling", "interrupted"),
    "cancelling": ("cancelled", "interrupted"),
    "done": (), "failed": (), "cancelled": (), "interrupted": (),
}  # fmt: skip


class Turn(models.Model):
    public_id = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    conversation = models.ForeignKey(Conversation, on_delete=models.PROTECT, related_name="turns")
    number = models.PositiveIntegerField()
    #: The previous turn on its path (0: none); turns with the same parent are versions of each
    #: other.
    parent = models.PositiveIntegerField(default=0)
    #: The page version that its prompt made.
    version = models.PositiveBigIntegerField(default=0, db_default=0, editable=False)
    #: The end of its path when another path was chosen (0: never).
    tip = models.PositiveBigIntegerField(default=0)
    state = models.CharField(max_length=14, choices=TurnState.choices, default=TurnState.QUEUED)
    finish_reason = models.CharField(max_length=20, blank=True)
    error_code = models.CharField(max_length=40, blank=True)
    error_text = models.TextField(blank=True)
    #: Set by the client before it sends, so that a repeated send is idempotent.
    client_id = models.UUIDField(default=uuid.uuid4)
    payload_digest = models.CharField(max_length=80)
    attempt = models.PositiveSmallIntegerField(default=0)
    retry_at = models.DateTimeField(null=True, blank=True)
    #: The limit a minute that it waits for until `retry_at`: its unit, amount and model scope.
    waits_for = models.CharField(max_length=140, blank=True, default="", db_default="")
    lease_owner = models.CharField(max_length=80, blank=True)
    lease_generation = models.PositiveIntegerField(default=0)
    lease_until = models.DateTimeField(null=True, blank=True)
    #: When its worker claimed it, and the milliseconds for which earlier workers ran it.
    claimed_at = models.DateTimeField(null=True, blank=True)
    ran_ms = models.PositiveBigIntegerField(default=0)
    #: How often it was taken from a dead worker.
    takeovers = models.PositiveSmallIntegerField(default=0)
    stop_requested_at = models.DateTimeField(null=True, blank=True)
    retry_of = models.ForeignKey("self", null=True, blank=True, on_delete=models.PROTECT)
    #: The turn whose cut answer this one continues; the prompt is then ours, not a person's.
    continues = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["conversation", "number"], name="turn_number"),
            models.UniqueConstraint(fields=["conversation", "client_id"], name="turn_client_id"),
            models.UniqueConstraint(
                fields=["conversation"], condition=models.Q(state__in=LIVE), name="one_live_turn"
            ),
            models.CheckConstraint(
                condition=models.Q(state__in=TurnState.values), name="turn_state"
            ),
            models.CheckConstraint(
                condition=models.Q(parent__lt=models.F("number")), name="turn_parent"
            ),
        ]
        indexes = [
            models.Index(fields=["created_at", "id"], name="turn_created_at"),
            models.Index(fields=["conversation", "parent"], name="turn_versions"),
            models.Index(
                fields=["lease_until"], condition=models.Q(state__in=LIVE), name="turn_live_lease"
            ),
        ]

    def __str__(self) -> str:
        return f"turn {self.number}"

    @property
    def is_live(self) -> bool:
        return self.state in LIVE


class QueuedPrompt(models.Model):
    """A message sent while an answer was running; the first becomes the next turn."""

    conversation = models.ForeignKey(
        Conversation, on_delete=models.PROTECT, related_name="queued_prompts"
    )
    client_id = models.UUIDField()
    payload_digest = models.CharField(max_length=80)
    #: Wire text of the content, as of a prompt.
    content = models.TextField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["conversation", "client_id"], name="queuedprompt_client_id"
            ),
        ]

    def __str__(self) -> str:
        return f"queued {self.pk}"


class Draft(models.Model):
    """The answer so far of a running turn, so that a crash keeps what was shown."""

    turn = models.OneToOneField(Turn, on_delete=models.CASCADE, related_name="draft")
    call = models.ForeignKey("conversations.ApiCall", null=True, on_delete=models.PROTECT)
    thinking = models.TextField(blank=True)
    text = models.TextField(blank=True)
    updated_at = models.DateTimeField(auto_now=True)

    def __str__(self) -> str:
        return f"draft of {self.turn_id}"


class ToolCall(models.Model):
    class State(models.TextChoices):
        PLANNED = "planned", _("Planned")
        STARTED = "started", _("Started")
        OK = "ok", _("OK")
        ERROR = "error", _("Error")
        UNKNOWN = "unknown", _("Unknown")
        DENIED = "denied", _("Denied")
        CANCELLED = "cancelled", _("Cancelled")

    turn = models.ForeignKey(Turn, on_delete=models.PROTECT, related_name="tool_calls")
    #: The answer that requested it, and its position among the calls of that answer.
    answer = models.ForeignKey(Message, on_delete=models.PROTECT, related_name="tool_calls")
    position = models.PositiveSmallIntegerField()
    tool_use_id = models.CharField(max_length=200)
    #: The id in the API's answer if it could not be kept, because it was used already or malformed.
    given_id = models.TextField(blank=True, default="", db_default="")
    name = models.CharField(max_length=128)
    input = models.TextField()
    #: Why it cannot run, if its input was no JSON object.
    flaw = models.TextField(blank=True)
    effect = models.CharField(max_length=6)
    #: Where its result comes from (`tools.framework.tool.Origin`), and whether that is private.
    origin = models.CharField(max_length=9, blank=True, default="", db_default="")
    is_private = models.BooleanField(default=False)
    state = models.CharField(max_length=10, choices=State.choices, default=State.PLANNED)
    #: Wire text of the full original result content, and details that only people see.
    output = models.ForeignKey(Blob, null=True, on_delete=models.PROTECT, related_name="+")
    details = models.JSONField(default=dict)
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["answer_id", "position"]
        constraints = [
            models.UniqueConstraint(fields=["turn", "tool_use_id"], name="toolcall_id"),
        ]

    def __str__(self) -> str:
        return f"{self.name} {self.tool_use_id}"
