"""The log: conversations, and the append-only entries that form their paths.

Messages and transformations share one counter (`Conversation.head`); each references its `parent`
entry, so a path of the log is a state and a branch is a new path. Rows of classes marked
`AppendOnly` are never changed or deleted; database triggers enforce that too (log/triggers.py).
Wire text is in TextFields, because `jsonb` would rewrite it.
"""

from __future__ import annotations

import uuid
from functools import reduce
from operator import or_
from typing import Any

from django.conf import settings
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from conversations.context.steps import kinds


class AppendOnly(models.Model):
    """Refuses in Python what the triggers refuse in the database."""

    class Meta:
        abstract = True

    def save(self, *args: Any, **kwargs: Any) -> None:
        if not self._state.adding:
            raise TypeError(f"{type(self).__name__} is append-only")
        super().save(*args, **kwargs)

    def delete(self, *args: Any, **kwargs: Any) -> tuple[int, dict[str, int]]:
        raise TypeError(f"{type(self).__name__} is append-only")


class Chained(AppendOnly):
    """A row of a hash chain, its conversation's or the site's (log/chain.py)."""

    link = models.PositiveBigIntegerField(default=0)
    chain = models.CharField(max_length=80)

    class Meta:
        abstract = True


class WebSearch(models.TextChoices):
    """Whether the API may search the web here; single searches cannot be approved."""

    OFF = "", _("off")
    ALONE = "alone", _("on, and nothing private is read")
    BESIDE = "beside", _("on, beside private data")


class Effort(models.TextChoices):
    LOW = "low", _("low")
    MEDIUM = "medium", _("medium")
    HIGH = "high", _("high")
    XHIGH = "xhigh", _("very high")
    MAX = "max", _("maximum")


class Conversation(models.Model):
    public_id = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="conversations"
    )
    title = models.CharField(max_length=200, blank=True)
    #: Source of the title: the first words, the model, or a person, whose title is never replaced.
    titled_by = models.CharField(max_length=6, default="words")
    model = models.CharField(max_length=100)
    instructions = models.TextField(blank=True)
    #: How much the model thinks and writes; "": the group's or site's level.
    effort = models.CharField(max_length=6, choices=Effort, default="", db_default="", blank=True)
    policy = models.JSONField(default=dict, blank=True)
    #: Whether every turn is sent in full; the number of the one turn sent in full (0: none).
    in_full_always = models.BooleanField(default=False, db_default=False)
    in_full_turn = models.PositiveIntegerField(default=0, db_default=0)
    #: None: that of its owner.
    cost_centre = models.ForeignKey(
        "conversations.CostCentre",
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="+",
        db_index=False,
    )
    web_search = models.CharField(
        max_length=6, choices=WebSearch, default=WebSearch.OFF, blank=True
    )
    #: Whether every tool that reaches outside asks first.
    asks_before_egress = models.BooleanField(default=False, db_default=False)
    #: The number of the newest entry, and the entry at the end of the shown path (0: none).
    head = models.PositiveBigIntegerField(default=0)
    tip = models.PositiveBigIntegerField(default=0)
    #: The number of the last turn of the shown path (0: none).
    leaf = models.PositiveIntegerField(default=0)
    #: Raised by each transaction that changes what a page shows (log/page_version.py).
    version = models.PositiveBigIntegerField(default=0, db_default=0, editable=False)
    #: The turn of another conversation from which this one continues; None once that was erased.
    forked_from = models.ForeignKey(
        "conversations.Turn",
        null=True,
        blank=True,
        editable=False,
        on_delete=models.SET_NULL,
        related_name="forks",
    )
    #: The end of the hash chain over this conversation's append-only rows.
    links = models.PositiveBigIntegerField(default=0)
    chain = models.CharField(max_length=80, blank=True)
    #: The number of its links that are anchored outside the database.
    anchored = models.PositiveBigIntegerField(default=0, db_default=0, editable=False)
    #: How many of its calls have ended, and what they have cost, added up with each result.
    ended_calls = models.PositiveIntegerField(default=0, db_default=0, editable=False)
    cost_micros = models.PositiveBigIntegerField(default=0, db_default=0, editable=False)
    pinned_at = models.DateTimeField(null=True, blank=True)
    #: Of the same owner. It stays while the chat is archived or in the trash.
    folder = models.ForeignKey(
        "conversations.Folder",
        null=True,
        blank=True,
        editable=False,
        on_delete=models.SET_NULL,
        related_name="conversations",
        db_index=False,
    )
    archived_at = models.DateTimeField(null=True, blank=True)
    #: When it was moved to the trash, and when it is due for erasure; of a temporary conversation
    #: the second is set from its start.
    deleted_at = models.DateTimeField(null=True, blank=True)
    erase_at = models.DateTimeField(null=True, blank=True)
    #: The rule that moved it there, in words; "": its owner did.
    removed_by_rule = models.CharField(max_length=250, blank=True, default="", db_default="")
    #: When its owner last brought it back, from the trash or from a file with its dates: rules
    #: count from then, too.
    restored_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        indexes = [
            models.Index(fields=["owner", "-updated_at"]),
            models.Index(
                fields=["erase_at"],
                condition=models.Q(erase_at__isnull=False),
                name="conversation_erase_at",
            ),
            models.Index(
                fields=["id"],
                condition=models.Q(links__gt=models.F("anchored")),
                name="conversation_unanchored",
            ),
            models.Index(
                fields=["folder", "-updated_at"],
                condition=models.Q(folder__isnull=False),
                name="conversation_folder",
            ),
        ]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(folder=None)
                | models.Q(erase_at=None)
                | models.Q(deleted_at__isnull=False),
                name="conversation_temporary_no_folder",
            ),
        ]

    def __str__(self) -> str:
        return f"conversation {self.public_id}"

    @property
    def is_temporary(self) -> bool:
        """Whether it is in no list and goes at a set time; in the trash it is like any other."""
        return self.deleted_at is None and self.erase_at is not None


class Blob(AppendOnly):
    """Text stored under its digest: full tool outputs, attachments, messages that are no view."""

    digest = models.CharField(max_length=80, primary_key=True)
    text = models.TextField()

    def __str__(self) -> str:
        return self.digest


class Message(Chained):
    class Kind(models.TextChoices):
        PROMPT = "prompt", _("prompt")
        ANSWER = "answer", _("answer")
        RESULTS = "results", _("results")

    conversation = models.ForeignKey(
        Conversation, on_delete=models.PROTECT, related_name="messages"
    )
    seq = models.PositiveBigIntegerField()
    parent = models.PositiveBigIntegerField()
    turn = models.ForeignKey(
        "conversations.Turn", null=True, on_delete=models.PROTECT, related_name="messages"
    )
    kind = models.CharField(max_length=10, choices=Kind.choices)
    #: Wire text of the array of content blocks, and its estimated tokens.
    content = models.TextField()
    estimate = models.PositiveIntegerField()
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["conversation", "seq"], name="message_seq"),
            models.CheckConstraint(
                condition=models.Q(parent__lt=models.F("seq")), name="message_parent"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.seq}"


def _growing() -> list[models.Q]:
    """Return the conditions for kinds that may make the view larger."""
    by_person = (models.Q(kind=name, actor__isnull=False) for name in kinds.GROWING_BY_PERSON)
    return [*(models.Q(kind=name) for name in kinds.GROWING), *by_person]


class Transformation(Chained):
    class Outcome(models.TextChoices):
        APPLIED = "applied", _("applied")
        REJECTED = "rejected", _("rejected")
        VETOED = "vetoed", _("vetoed")
        EXPECTED = "expected", _("expected of the API")

    conversation = models.ForeignKey(
        Conversation, on_delete=models.PROTECT, related_name="transformations"
    )
    seq = models.PositiveBigIntegerField()
    parent = models.PositiveBigIntegerField()
    turn = models.ForeignKey(
        "conversations.Turn", null=True, on_delete=models.PROTECT, related_name="transformations"
    )
    kind = models.CharField(
        max_length=12, choices=[(name, _(label)) for name, label in kinds.CHOICES]
    )
    outcome = models.CharField(max_length=10, choices=Outcome.choices)
    #: The trigger: the number, the threshold it passed, the source of the number, the policy's
    #: field.
    number = models.BigIntegerField()
    threshold = models.BigIntegerField()
    source = models.CharField(max_length=10)
    setting = models.CharField(max_length=40, blank=True)
    edits = models.TextField()
    policy = models.TextField()
    tokens_before = models.PositiveIntegerField()
    tokens_after = models.PositiveIntegerField()
    bytes_before = models.PositiveBigIntegerField()
    bytes_after = models.PositiveBigIntegerField()
    note = models.TextField()
    reason = models.TextField(blank=True)
    #: The numbers behind the decision of a step that weighs costs, as JSON; "" for other steps.
    decision = models.TextField(blank=True, default="")
    summary_call = models.ForeignKey(
        "conversations.ApiCall", null=True, on_delete=models.PROTECT, related_name="summaries"
    )
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+"
    )
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        indexes = [
            # In time, and filtered so without reading the rows.
            models.Index(
                fields=["created_at", "id", "kind", "outcome"], name="transformation_created_at"
            ),
            # All that the figures of a conversation are added up from, without its rows.
            models.Index(
                fields=["conversation", "outcome", "kind", "tokens_before", "tokens_after"],
                name="transformation_figures",
            ),
        ]
        constraints = [
            models.UniqueConstraint(fields=["conversation", "seq"], name="transformation_seq"),
            models.CheckConstraint(
                name="transformation_shrinks",
                # A person may restore an original, and reword a summary.
                condition=reduce(or_, _growing())
                | models.Q(outcome="applied", bytes_after__lt=models.F("bytes_before"))
                | models.Q(~models.Q(outcome="applied"), edits="[]"),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.seq}"
