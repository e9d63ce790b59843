"""Budgets: what the site, a group or a person may use, in money, tokens, turns or requests.

Windows are rows created on first use, so nothing has to reset them. `spent` and `held` change in
the transaction of the call or correction that changes them (models/ledger.py records the same as
entries that never change), and `limit` is the limit at the last hold, or before the first of when
the window was made. The database refuses a window in which spent plus held would exceed it. A
lowered limit or an expired grant changes no window; it refuses the next call.
"""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth.models import Group
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from conversations.models.catalogue import ApiModel, is_model_in
from conversations.models.log import Chained
from conversations.models.periods import load_zone
from conversations.models.validators import demand_percents, demand_zone
from conversations.rendering.model_names import name_scope

#: The largest limit; sums of such limits still fit the database's integers.
MOST = 10**15
_FITS = (MaxValueValidator(MOST),)


def _subject(scope: str) -> models.Q:
    return models.Q(scope=scope, group__isnull=scope != "group", user__isnull=scope != "user")


def _one_active(scope: str, subject: str = "") -> models.UniqueConstraint:
    names = (*((subject,) if subject else ()), "kind", "unit", "period", "model")
    return models.UniqueConstraint(
        fields=names,
        condition=models.Q(scope=scope, is_active=True),
        name=f"one_active_{scope}_budget",
        violation_error_message=_(
            "There is an active budget of this kind, unit, period and model."
        ),
    )


class BudgetUnit(models.TextChoices):
    """What a budget counts; every member has a row in budgets/units.py."""

    MONEY = "money", _("money")
    TOKENS = "tokens", _("tokens")
    TURNS = "turns", _("turns")
    REQUESTS = "requests", _("requests")

    def write(self, amount: int) -> str:
        """Write an amount with all its digits; only money is stored in a fraction of its unit."""
        if self is not BudgetUnit.MONEY:
            return f"{amount:,} {self.value}"
        whole, rest = divmod(amount, 1_000_000)
        return f"${whole:,}.{f'{rest:06d}'.rstrip('0').ljust(2, '0')}"


class Budget(models.Model):
    class Scope(models.TextChoices):
        SITE = "site", _("the site")
        GROUP = "group", _("a group")
        USER = "user", _("a user")

    class Kind(models.TextChoices):
        POOL = "pool", _("shared by all")
        PER_MEMBER = "per_member", _("for each member")
        #: A person's limit for themselves: it applies beside the others and replaces none.
        OWN = "own", _("set by the person")

    Unit = BudgetUnit

    class Period(models.TextChoices):
        MINUTE = "minute", _("Minute")
        HOUR = "hour", _("Hour")
        DAY = "day", _("Day")
        WEEK = "week", _("Week")
        MONTH = "month", _("Month")
        LIFETIME = "lifetime", _("Lifetime")

    scope = models.CharField(max_length=5, choices=Scope.choices, default=Scope.USER)
    group = models.ForeignKey(
        Group, null=True, blank=True, on_delete=models.CASCADE, related_name="budgets"
    )
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="budgets",
    )
    kind = models.CharField(max_length=10, choices=Kind.choices, default=Kind.PER_MEMBER)
    unit = models.CharField(max_length=8, choices=BudgetUnit.choices, default=BudgetUnit.MONEY)
    period = models.CharField(max_length=10, choices=Period.choices, default=Period.MONTH)
    time_zone = models.CharField(
        max_length=64,
        default="UTC",
        validators=[demand_zone],
        help_text=_("Where its days begin at midnight, such as Europe/Vienna."),
    )
    model = models.CharField(
        max_length=100,
        default="",
        db_default="",
        blank=True,
        help_text=_(
            "Only calls of this model count: its id, or a family such as opus. Empty: all."
        ),
    )
    limit = models.PositiveBigIntegerField(validators=_FITS, help_text=_("Of money in dollars."))
    soft_percents = models.CharField(
        max_length=40,
        default="50,80,95",
        blank=True,
        validators=[demand_percents],
        help_text=_("At these shares of the limit people are told, once in each window."),
    )
    is_active = models.BooleanField(default=True)
    note = models.CharField(max_length=200, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="budget_subject",
                condition=_subject("site") | _subject("group") | _subject("user"),
                violation_error_message=_("Name the group or the user of the scope, and no other."),
            ),
            # A budget of one person is that person's allowance, or the limit they set themselves.
            models.CheckConstraint(
                name="budget_kind",
                condition=models.Q(scope="user", kind__in=("per_member", "own"))
                | (~models.Q(scope="user") & ~models.Q(kind="own")),
                violation_error_message=_(
                    "What is set for one person is no pool, and only a person sets a limit for"
                    " themselves."
                ),
            ),
            models.CheckConstraint(
                name="budget_choices",
                condition=models.Q(
                    kind__in=("pool", "per_member", "own"),
                    unit__in=tuple(BudgetUnit.values),
                    period__in=("minute", "hour", "day", "week", "month", "lifetime"),
                ),
            ),
            models.CheckConstraint(name="budget_limit", condition=models.Q(limit__lte=MOST)),
            _one_active("site"),
            _one_active("group", "group"),
            _one_active("user", "user"),
        ]

    def __str__(self) -> str:
        words = f"{self.amount} a {self.period}"
        return f"{words} for {name_scope(self.model)}" if self.model else words

    def clean(self) -> None:
        # A name that no model has would limit nothing, and nobody would see it.
        self.model = self.model.strip().lower()
        known = ApiModel.objects.values_list("pk", flat=True)
        if self.model and not any(is_model_in(self.model, key) for key in known):
            raise ValidationError({"model": _("No model of the catalogue has this id or family.")})

    @property
    def amount(self) -> str:
        """The limit in its unit, with all its digits."""
        return BudgetUnit(self.unit).write(self.limit)


class BudgetWindow(models.Model):
    """What one budget, or one member under it, has used between two moments."""

    budget = models.ForeignKey(Budget, on_delete=models.PROTECT, related_name="windows")
    #: The member, under an allowance; None for a pool.
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="windows"
    )
    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField(null=True)
    #: The limit when something was last held or corrected; before that, when it was made.
    limit = models.PositiveBigIntegerField(default=0)
    spent = models.PositiveBigIntegerField(default=0)
    held = models.PositiveBigIntegerField(default=0)
    #: What calls used beyond their holds.
    overrun = models.PositiveBigIntegerField(default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["budget", "starts_at"],
                condition=models.Q(user__isnull=True),
                name="window_of_pool",
            ),
            models.UniqueConstraint(fields=["user", "budget", "starts_at"], name="window_of_user"),
            models.CheckConstraint(
                condition=models.Q(spent__gte=0, held__gte=0, overrun__gte=0),
                name="window_not_negative",
            ),
            models.CheckConstraint(
                condition=models.Q(limit__gte=models.F("spent") + models.F("held")),
                name="window_within_limit",
            ),
        ]
        indexes = [
            models.Index(fields=["held"], condition=models.Q(held__gt=0), name="window_holds"),
            # A person with a limit a minute has many windows; a call looks for those of now.
            models.Index(fields=["user", "starts_at"], name="window_of_moment"),
        ]

    def __str__(self) -> str:
        there = self.starts_at.astimezone(load_zone(self.budget.time_zone))
        return f"{self.budget} from {there:%Y-%m-%d %H:%M}"


class Grant(Chained):
    """An addition to the limit of a budget, for everybody or one person, until it expires."""

    budget = models.ForeignKey(Budget, on_delete=models.PROTECT, related_name="grants")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="grants",
    )
    amount = models.PositiveBigIntegerField(validators=_FITS)
    starts_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField(null=True, blank=True)
    reason = models.CharField(max_length=200)
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+"
    )
    created_at = models.DateTimeField(default=timezone.now)
    #: Identifies the submitted form, so that submitting it twice grants once.
    form = models.UUIDField(null=True, unique=True, editable=False)

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="grant_amount", condition=models.Q(amount__gte=1, amount__lte=MOST)
            ),
            models.CheckConstraint(
                name="grant_ends",
                condition=models.Q(expires_at=None)
                | models.Q(expires_at__gt=models.F("starts_at")),
            ),
            models.CheckConstraint(name="grant_reason", condition=~models.Q(reason="")),
        ]
        indexes = [models.Index(fields=["budget", "expires_at"], name="grant_running")]

    def __str__(self) -> str:
        return f"{self.amount:,} more"
