"""Budgets of the site, of groups and of people, in money, tokens or turns, with what belongs to them.

What there was, a limit in money for one person, is that person's own allowance, and its windows are
that person's. Going back works while no budget is in use that the older tables cannot hold.
"""

import conversations.models.validators
import django.core.validators
import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models
from django.db.models import F, OuterRef, Q, Subquery
from django.db.models.functions import Greatest, Least

MOST = 10**15
OLD_PERIODS = ("day", "month", "lifetime")


def take_over(apps, schema_editor):
    budgets = apps.get_model("conversations", "Budget").objects
    windows = apps.get_model("conversations", "BudgetWindow").objects
    budgets.update(limit=Least(F("limit"), MOST))
    mine = budgets.filter(pk=OuterRef("budget"))
    windows.update(user_id=Subquery(mine.values("user")[:1]))
    windows.update(limit=Greatest(Subquery(mine.values("limit")[:1]), F("spent") + F("held")))
    settle(schema_editor)


def give_back(apps, schema_editor):
    budgets = apps.get_model("conversations", "Budget").objects
    foreign = budgets.exclude(scope="user", unit="money", time_zone="UTC", period__in=OLD_PERIODS)
    if foreign.exclude(Q(windows=None) & Q(grants=None)).exists():
        raise RuntimeError(
            "There are budgets in use that the older tables cannot hold: of the site or a group, in"
            " tokens or turns, by the hour or week, or in another time zone than UTC."
        )
    foreign.delete()
    settle(schema_editor)


def settle(schema_editor):
    """Check what waits for the end of the transaction, so that the tables may be altered."""
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        schema_editor.execute("SET CONSTRAINTS ALL DEFERRED")


def choice(length, default, *values):
    return models.CharField(choices=[(v, label) for v, label in values], default=default, max_length=length)


def subject(**fields):
    return models.ForeignKey(blank=True, null=True, **fields)


FITS = [django.core.validators.MaxValueValidator(MOST)]


class Migration(migrations.Migration):

    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
        ("conversations", "0010_continued"),
    ]

    operations = [
        migrations.RemoveConstraint("budget", "one_active_budget_per_period"),
        migrations.RemoveConstraint("budgetwindow", "window_start"),
        migrations.RemoveConstraint("budgetwindow", "window_not_negative"),
        migrations.RenameField("budget", "limit_micros", "limit"),
        migrations.RenameField("budgetwindow", "spent_micros", "spent"),
        migrations.RenameField("budgetwindow", "held_micros", "held"),
        migrations.RenameField("budgetwindow", "overrun_micros", "overrun"),
        migrations.RenameField("reservation", "micros", "amount"),
        migrations.RenameField("ledgerentry", "micros", "amount"),
        migrations.AddField(
            "budget", "scope", choice(5, "user", ("site", "the site"), ("group", "a group"), ("user", "a user"))
        ),
        migrations.AddField(
            "budget",
            "group",
            subject(on_delete=django.db.models.deletion.CASCADE, related_name="budgets", to="auth.group"),
        ),
        migrations.AlterField(
            "budget",
            "user",
            subject(
                on_delete=django.db.models.deletion.CASCADE, related_name="budgets", to=settings.AUTH_USER_MODEL
            ),
        ),
        migrations.AddField(
            "budget",
            "kind",
            choice(10, "per_member", ("pool", "shared by all"), ("per_member", "for each member")),
        ),
        migrations.AddField(
            "budget",
            "unit",
            choice(6, "money", ("money", "money"), ("tokens", "tokens"), ("turns", "turns")),
        ),
        migrations.AlterField(
            "budget",
            "period",
            choice(
                10, "month", ("hour", "Hour"), ("day", "Day"), ("week", "Week"), ("month", "Month"),
                ("lifetime", "Lifetime"),
            ),
        ),
        migrations.AddField(
            "budget",
            "time_zone",
            models.CharField(
                default="UTC",
                help_text="Where its days begin at midnight, such as Europe/Vienna.",
                max_length=64,
                validators=[conversations.models.validators.demand_zone],
            ),
        ),
        migrations.AddField(
            "budget",
            "soft_percents",
            models.CharField(
                blank=True,
                default="50,80,95",
                help_text="At these shares of the limit people are told, once in each window.",
                max_length=40,
                validators=[conversations.models.validators.demand_percents],
            ),
        ),
        migrations.AlterField(
            "budget",
            "limit",
            models.PositiveBigIntegerField(
                help_text="Of money in dollars.", validators=FITS
            ),
        ),
        migrations.AddField(
            "budgetwindow",
            "user",
            models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="windows",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField("budgetwindow", "limit", models.PositiveBigIntegerField(default=0)),
        migrations.CreateModel(
            name="Grant",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("amount", models.PositiveBigIntegerField(validators=FITS)),
                ("starts_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("expires_at", models.DateTimeField(blank=True, null=True)),
                ("reason", models.CharField(max_length=200)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "actor",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "budget",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="grants",
                        to="conversations.budget",
                    ),
                ),
                (
                    "user",
                    subject(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="grants",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
        ),
        migrations.RunPython(take_over, give_back),
        migrations.AddConstraint(
            "budget",
            models.CheckConstraint(
                name="budget_subject",
                condition=Q(("group__isnull", True), ("scope", "site"), ("user__isnull", True))
                | Q(("group__isnull", False), ("scope", "group"), ("user__isnull", True))
                | Q(("group__isnull", True), ("scope", "user"), ("user__isnull", False)),
                violation_error_message="Name the group or the user of the scope, and no other.",
            ),
        ),
        migrations.AddConstraint(
            "budget",
            models.CheckConstraint(
                name="budget_kind",
                condition=~Q(scope="user") | Q(kind="per_member"),
                violation_error_message="What is set for one person is no pool.",
            ),
        ),
        migrations.AddConstraint(
            "budget",
            models.CheckConstraint(
                name="budget_choices",
                condition=Q(
                    kind__in=("pool", "per_member"),
                    unit__in=("money", "tokens", "turns"),
                    period__in=("hour", "day", "week", "month", "lifetime"),
                ),
            ),
        ),
        migrations.AddConstraint(
            "budget", models.CheckConstraint(name="budget_limit", condition=Q(limit__lte=MOST))
        ),
        migrations.AddConstraint(
            "budget",
            models.UniqueConstraint(
                fields=("kind", "unit", "period"),
                condition=Q(scope="site", is_active=True),
                name="one_active_site_budget",
                violation_error_message="There is an active budget of this kind, unit and period.",
            ),
        ),
        migrations.AddConstraint(
            "budget",
            models.UniqueConstraint(
                fields=("group", "kind", "unit", "period"),
                condition=Q(scope="group", is_active=True),
                name="one_active_group_budget",
                violation_error_message="There is an active budget of this kind, unit and period.",
            ),
        ),
        migrations.AddConstraint(
            "budget",
            models.UniqueConstraint(
                fields=("user", "kind", "unit", "period"),
                condition=Q(scope="user", is_active=True),
                name="one_active_user_budget",
                violation_error_message="There is an active budget of this kind, unit and period.",
            ),
        ),
        migrations.AddConstraint(
            "budgetwindow",
            models.UniqueConstraint(
                fields=("budget", "starts_at"), condition=Q(user__isnull=True), name="window_of_pool"
            ),
        ),
        migrations.AddConstraint(
            "budgetwindow",
            models.UniqueConstraint(fields=("user", "budget", "starts_at"), name="window_of_user"),
        ),
        migrations.AddConstraint(
            "budgetwindow",
            models.CheckConstraint(
                name="window_not_negative", condition=Q(spent__gte=0, held__gte=0, overrun__gte=0)
            ),
        ),
        migrations.AddConstraint(
            "budgetwindow",
            models.CheckConstraint(
                name="window_within_limit", condition=Q(limit__gte=F("spent") + F("held"))
            ),
        ),
        migrations.AddIndex(
            "budgetwindow", models.Index(fields=["held"], condition=Q(held__gt=0), name="window_holds")
        ),
        migrations.AddIndex(
            "reservation",
            models.Index(fields=["window"], condition=Q(is_open=True), name="reservation_open"),
        ),
        migrations.AddConstraint(
            "ledgerentry",
            models.CheckConstraint(name="ledger_amount", condition=Q(amount__gte=0) | Q(kind="adjust")),
        ),
        migrations.AddConstraint(
            "ledgerentry",
            models.CheckConstraint(
                name="ledger_reason",
                condition=Q(call__isnull=False) | (Q(kind="adjust") & ~Q(reason="")),
            ),
        ),
        migrations.AddConstraint(
            "grant",
            models.CheckConstraint(name="grant_amount", condition=Q(amount__gte=1, amount__lte=MOST)),
        ),
        migrations.AddConstraint(
            "grant",
            models.CheckConstraint(
                name="grant_ends", condition=Q(expires_at=None) | Q(expires_at__gt=F("starts_at"))
            ),
        ),
        migrations.AddConstraint(
            "grant", models.CheckConstraint(name="grant_reason", condition=~Q(reason=""))
        ),
        migrations.AddIndex(
            "grant", models.Index(fields=["budget", "expires_at"], name="grant_running")
        ),
        migrations.CreateModel(
            name="Crossing",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("percent", models.PositiveSmallIntegerField()),
                ("spent", models.PositiveBigIntegerField()),
                ("limit", models.PositiveBigIntegerField()),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "window",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="crossings",
                        to="conversations.budgetwindow",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("window", "percent"), name="crossing_once")
                ],
            },
        ),
        migrations.CreateModel(
            name="TurnCap",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "micros",
                    models.PositiveBigIntegerField(
                        blank=True,
                        help_text="In dollars; 0: no cap.",
                        null=True,
                        validators=FITS,
                        verbose_name="money",
                    ),
                ),
                (
                    "rounds",
                    models.PositiveIntegerField(
                        blank=True,
                        null=True,
                        validators=[django.core.validators.MinValueValidator(1)],
                        verbose_name="model calls",
                    ),
                ),
                ("tool_calls", models.PositiveIntegerField(blank=True, null=True)),
                (
                    "seconds",
                    models.PositiveIntegerField(
                        blank=True, null=True, validators=[django.core.validators.MinValueValidator(1)]
                    ),
                ),
                (
                    "group",
                    models.OneToOneField(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="turn_cap",
                        to="auth.group",
                    ),
                ),
                (
                    "user",
                    models.OneToOneField(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="turn_cap",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        name="turn_cap_subject",
                        condition=Q(group__isnull=False, user__isnull=True)
                        | Q(group__isnull=True, user__isnull=False),
                    )
                ],
            },
        ),
        migrations.AddField(
            "user",
            "is_exempt",
            models.BooleanField(
                default=False,
                help_text="Nothing is held or refused; what calls cost is recorded all the same.",
                verbose_name="exempt from budgets",
            ),
        ),
        migrations.AddField("apimodel", "lifecycle", models.CharField(blank=True, max_length=12)),
        migrations.AddField("apimodel", "retires_at", models.DateTimeField(blank=True, null=True)),
    ]
