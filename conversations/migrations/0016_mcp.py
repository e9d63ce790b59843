from __future__ import annotations

import django.core.validators
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("conversations", "0015_mail")]

    operations = [
        migrations.CreateModel(
            name="McpServer",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "name",
                    models.CharField(
                        max_length=32,
                        unique=True,
                        validators=[
                            django.core.validators.RegexValidator(
                                "\\A[a-z][a-z0-9-]{0,31}\\Z",
                                "Use lower case letters, digits and hyphens, a letter first, 32 at most.",
                            )
                        ],
                    ),
                ),
                ("note", models.CharField(blank=True, max_length=200)),
                (
                    "transport",
                    models.CharField(
                        choices=[
                            ("stdio", "a command on this machine (stdio)"),
                            ("http", "a URL (streamable HTTP)"),
                        ],
                        max_length=5,
                    ),
                ),
                ("command", models.CharField(blank=True, max_length=1000)),
                ("arguments", models.JSONField(blank=True, default=list)),
                ("url", models.CharField(blank=True, max_length=2000, verbose_name="URL")),
                ("sealed_environment", models.TextField(blank=True, editable=False)),
                ("sealed_headers", models.TextField(blank=True, editable=False)),
                ("is_enabled", models.BooleanField(default=False, verbose_name="enabled")),
                (
                    "is_private",
                    models.BooleanField(default=False, verbose_name="results are private"),
                ),
                ("allowed_tools", models.JSONField(blank=True, default=list)),
                (
                    "deadline",
                    models.PositiveSmallIntegerField(
                        default=60,
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(600),
                        ],
                        verbose_name="seconds a call may take",
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("idle", "not started"),
                            ("connecting", "Connecting"),
                            ("connected", "Connected"),
                            ("failed", "Failed"),
                        ],
                        default="idle",
                        editable=False,
                        max_length=10,
                    ),
                ),
                ("state_since", models.DateTimeField(editable=False, null=True)),
                ("last_seen_at", models.DateTimeField(editable=False, null=True)),
                ("last_error", models.TextField(blank=True, editable=False)),
                ("last_error_at", models.DateTimeField(editable=False, null=True)),
                ("says", models.CharField(blank=True, editable=False, max_length=200)),
                ("check_asked_at", models.DateTimeField(editable=False, null=True)),
            ],
            options={
                "verbose_name": "MCP server",
                "ordering": ["name"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("transport", "stdio"),
                                ("url", ""),
                                models.Q(("command", ""), _negated=True),
                            ),
                            models.Q(
                                ("command", ""),
                                ("transport", "http"),
                                models.Q(("url", ""), _negated=True),
                            ),
                            _connector="OR",
                        ),
                        name="mcpserver_one_place",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("deadline__gte", 1), ("deadline__lte", 600)),
                        name="mcpserver_deadline",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="McpDecision",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("tool", models.CharField(blank=True, max_length=200)),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("added", "server added"),
                            ("changed", "server changed"),
                            ("approved", "tool approved"),
                            ("rejected", "tool rejected"),
                            ("withdrawn", "approval withdrawn"),
                            ("differs", "definition changed by the server"),
                            ("gone", "tool no longer listed"),
                        ],
                        max_length=9,
                    ),
                ),
                ("note", models.CharField(blank=True, max_length=300)),
                ("definition", models.TextField(blank=True)),
                ("digest", models.CharField(blank=True, max_length=80)),
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
                    "server",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="decisions",
                        to="conversations.mcpserver",
                    ),
                ),
            ],
            options={
                "verbose_name": "MCP decision",
                "ordering": ["-pk"],
            },
        ),
        migrations.CreateModel(
            name="McpTool",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=200)),
                ("call_name", models.CharField(max_length=128)),
                ("approved", models.TextField(blank=True)),
                ("approved_digest", models.CharField(blank=True, max_length=80)),
                (
                    "effect",
                    models.CharField(
                        choices=[
                            ("write", "changes things"),
                            ("keyed", "a repeat changes nothing more"),
                            ("read", "only reads"),
                        ],
                        default="write",
                        max_length=5,
                    ),
                ),
                ("listed", models.TextField(blank=True)),
                ("listed_digest", models.CharField(blank=True, max_length=80)),
                ("rejected_digest", models.CharField(blank=True, max_length=80)),
                ("flaw", models.CharField(blank=True, max_length=300)),
                ("listed_at", models.DateTimeField(null=True)),
                (
                    "server",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="tools",
                        to="conversations.mcpserver",
                    ),
                ),
            ],
            options={
                "verbose_name": "MCP tool",
                "ordering": ["server", "name"],
                "constraints": [
                    models.UniqueConstraint(fields=("server", "name"), name="mcptool_name"),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("approved", ""), ("approved_digest", "")),
                            models.Q(
                                models.Q(("approved", ""), _negated=True),
                                models.Q(("approved_digest", ""), _negated=True),
                            ),
                            _connector="OR",
                        ),
                        name="mcptool_approved",
                    ),
                ],
            },
        ),
    ]
