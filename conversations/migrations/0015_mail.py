from __future__ import annotations

import uuid

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

SECURITY = [("tls", "TLS"), ("starttls", "STARTTLS")]


class Migration(migrations.Migration):
    dependencies = [("conversations", "0014_tool_access")]

    operations = [
        migrations.CreateModel(
            name="MailAccount",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("public_id", models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                ("name", models.CharField(max_length=60)),
                ("address", models.CharField(max_length=254)),
                ("login", models.CharField(max_length=254)),
                (
                    "auth",
                    models.CharField(
                        choices=[
                            ("password", "App password"),
                            ("token", "OAuth access token"),
                            ("refresh", "OAuth refresh token"),
                        ],
                        default="password",
                        max_length=10,
                    ),
                ),
                ("provider", models.CharField(blank=True, max_length=60)),
                ("sealed_secret", models.TextField(editable=False)),
                ("imap_host", models.CharField(max_length=253)),
                ("imap_port", models.PositiveIntegerField(default=993)),
                ("imap_security", models.CharField(choices=SECURITY, default="tls", max_length=10)),
                ("smtp_host", models.CharField(blank=True, max_length=253)),
                ("smtp_port", models.PositiveIntegerField(default=465)),
                ("smtp_security", models.CharField(choices=SECURITY, default="tls", max_length=10)),
                ("folder", models.CharField(default="INBOX", max_length=250)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("used_at", models.DateTimeField(null=True)),
                ("problem", models.CharField(blank=True, max_length=400)),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="mail_accounts",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("owner", "name"), name="mail_account_name"),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("auth__in", ("password", "token", "refresh")),
                            ("imap_security__in", ("tls", "starttls")),
                            ("smtp_security__in", ("tls", "starttls")),
                        ),
                        name="mail_account_choices",
                    ),
                ],
            },
        ),
    ]
