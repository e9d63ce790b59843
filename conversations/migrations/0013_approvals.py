from __future__ import annotations

import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("conversations", "0012_budgets")]

    operations = [
        migrations.CreateModel(
            name="ApprovalRule",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "tool",
                    models.CharField(
                        help_text="The name of the tool, as the model calls it.",
                        max_length=128,
                        unique=True,
                    ),
                ),
                (
                    "rule",
                    models.CharField(
                        choices=[
                            ("ask", "ask the person"),
                            ("allow", "always allow"),
                            ("never", "never allow"),
                        ],
                        default="ask",
                        max_length=5,
                    ),
                ),
            ],
            options={
                "ordering": ["tool"],
            },
        ),
        migrations.AddField(
            model_name="toolcall",
            name="flaw",
            field=models.TextField(blank=True),
        ),
        migrations.AddField(
            model_name="toolcall",
            name="is_private",
            field=models.BooleanField(default=False),
        ),
        migrations.AddField(
            model_name="turn",
            name="claimed_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="turn",
            name="ran_ms",
            field=models.PositiveBigIntegerField(default=0),
        ),
        migrations.AddField(
            model_name="turn",
            name="takeovers",
            field=models.PositiveSmallIntegerField(default=0),
        ),
        migrations.CreateModel(
            name="Approval",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("link", models.PositiveBigIntegerField(default=0)),
                ("chain", models.CharField(max_length=80)),
                ("arguments_digest", models.CharField(max_length=80)),
                ("destination", models.TextField(blank=True)),
                (
                    "reason",
                    models.CharField(
                        choices=[
                            ("write", "it changes something"),
                            ("private", "it tells others, and private data was read before"),
                        ],
                        max_length=8,
                    ),
                ),
                ("sources", models.CharField(blank=True, max_length=400)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("expires_at", models.DateTimeField()),
                (
                    "call",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="approval",
                        to="conversations.toolcall",
                    ),
                ),
                (
                    "conversation",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="approvals",
                        to="conversations.conversation",
                    ),
                ),
            ],
            options={
                "abstract": False,
            },
        ),
        migrations.CreateModel(
            name="Decision",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("link", models.PositiveBigIntegerField(default=0)),
                ("chain", models.CharField(max_length=80)),
                (
                    "verdict",
                    models.CharField(
                        choices=[
                            ("once", "allowed once"),
                            ("chat", "allowed in this conversation"),
                            ("denied", "denied"),
                            ("expired", "not answered in time"),
                        ],
                        max_length=8,
                    ),
                ),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
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
                    "approval",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="decision",
                        to="conversations.approval",
                    ),
                ),
                (
                    "conversation",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="conversations.conversation",
                    ),
                ),
            ],
            options={
                "abstract": False,
            },
        ),
    ]
