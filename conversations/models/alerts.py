"""Alerts of budgets: who is told what, and the outbox of what they are told."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.contrib.auth.models import Group
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from conversations.models.budgets import Budget
from conversations.models.ledger import Crossing


class BudgetAlert(models.Model):
    """Who is told when budgets pass a percent: people by mail, a receiver by webhook."""

    name = models.CharField(max_length=100, unique=True)
    budget = models.ForeignKey(
        Budget, null=True, blank=True, on_delete=models.CASCADE, related_name="alerts",
        help_text=_("Only this one; none chosen: those of the group, else all."),
    )  # fmt: skip
    group = models.ForeignKey(
        Group, null=True, blank=True, on_delete=models.CASCADE, related_name="budget_alerts",
        help_text=_("Only the budgets that are set for this group."),
    )  # fmt: skip
    from_percent = models.PositiveSmallIntegerField(
        _("from percent"),
        default=80,
        validators=[MinValueValidator(1), MaxValueValidator(100)],
        help_text=_(
            "Tells of each percent that a budget names from this one on, and of 100: all of"
            " it is spent."
        ),
    )
    people = models.ManyToManyField(
        settings.AUTH_USER_MODEL, blank=True, related_name="budget_alerts",
        help_text=_("They get a mail. Each needs an e-mail address."),
    )  # fmt: skip
    url = models.CharField(_("webhook URL"), max_length=2_000, blank=True)
    #: Signs what is sent to the URL (toolbox/secrets.py).
    sealed_secret = models.TextField(blank=True, editable=False)
    #: Where the site was when this was last saved: links in what is sent begin with it.
    origin = models.CharField(max_length=200, blank=True, editable=False)
    is_active = models.BooleanField(_("active"), default=True)
    #: Percents that were passed before are not told of.
    active_since = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ["name"]
        constraints = [
            models.CheckConstraint(
                name="alert_of_one_kind",
                condition=models.Q(budget=None) | models.Q(group=None),
                violation_error_message=_("Choose a budget or a group, not both."),
            ),
            models.CheckConstraint(
                name="alert_percent",
                condition=models.Q(from_percent__gte=1, from_percent__lte=100),
            ),
        ]

    def __str__(self) -> str:
        return self.name


class AlertDelivery(models.Model):
    """What one receiver is told of one crossing; a test is of no crossing."""

    class State(models.TextChoices):
        WAITING = "waiting", _("waiting")
        SENT = "sent", _("sent")
        GIVEN_UP = "given_up", _("given up")

    #: The same for every attempt, so that a receiver knows a repeat.
    public_id = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    alert = models.ForeignKey(
        BudgetAlert, null=True, on_delete=models.SET_NULL, related_name="deliveries"
    )
    crossing = models.ForeignKey(
        Crossing, null=True, on_delete=models.PROTECT, related_name="deliveries"
    )
    #: Who gets a mail; None: it goes to the webhook.
    person = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.CASCADE, related_name="+"
    )
    state = models.CharField(max_length=8, choices=State.choices, default=State.WAITING)
    attempts = models.PositiveSmallIntegerField(default=0)
    next_try_at = models.DateTimeField(default=timezone.now)
    last_error = models.CharField(max_length=200, blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    sent_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name_plural = _("alert deliveries")
        constraints = [
            models.UniqueConstraint(
                fields=["crossing", "person"],
                condition=models.Q(person__isnull=False),
                name="mail_of_crossing",
            ),
            models.UniqueConstraint(
                fields=["alert", "crossing"],
                condition=models.Q(person__isnull=True),
                name="webhook_of_crossing",
            ),
        ]
        indexes = [
            models.Index(
                fields=["next_try_at"], condition=models.Q(state="waiting"), name="delivery_due"
            ),
            models.Index(fields=["created_at"], name="delivery_created"),
        ]

    def __str__(self) -> str:
        return f"alert delivery {self.pk}"
