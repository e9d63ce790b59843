from __future__ import annotations

import uuid

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [("conversations", "0016_mcp")]

    operations = [
        migrations.CreateModel(
            name="WorkspaceFile",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("public_id", models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("pending", "Pending"), ("live", "Live"), ("trash", "Trash"), ("gone", "Gone"),
                        ],
                        default="pending",
                        max_length=8,
                    ),
                ),
                ("path", models.CharField(max_length=1024)),
                ("object", models.CharField(max_length=200, unique=True)),
                ("bytes", models.PositiveBigIntegerField()),
                ("digest", models.CharField(max_length=71)),
                ("done_by", models.CharField(blank=True, max_length=200)),
                ("batch", models.UUIDField(null=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("changed_at", models.DateTimeField()),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="workspace_files",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["owner", "state"], name="workspace_file_owner"),
                    models.Index(
                        condition=~Q(state="live"), fields=["changed_at"], name="workspace_file_sweep"
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=Q(state="live"), fields=("owner", "path"), name="one_live_file_of_a_path"
                    ),
                    models.CheckConstraint(
                        condition=Q(state__in=("pending", "live", "trash", "gone")), name="workspace_file_states"
                    ),
                    models.CheckConstraint(
                        condition=~Q(state="trash") | Q(batch__isnull=False), name="workspace_file_batch"
                    ),
                ],
            },
        ),
    ]
