"""Failed log-ins, and what ends every session of a person."""

from __future__ import annotations

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("conversations", "0021_anchors")]

    operations = [
        # With a default in the database: what ran before goes on adding people.
        migrations.AddField(
            model_name="user",
            name="session_epoch",
            field=models.PositiveIntegerField(db_default=0, default=0, editable=False),
        ),
        migrations.CreateModel(
            name="FailedLogIns",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("peer", models.CharField(max_length=64, verbose_name="address")),
                ("name_digest", models.CharField(blank=True, editable=False, max_length=64)),
                ("count", models.PositiveIntegerField(default=0, verbose_name="failed log-ins")),
                ("began_at", models.DateTimeField()),
                ("waits", models.PositiveIntegerField(default=0)),
                ("until", models.DateTimeField(blank=True, null=True, verbose_name="refused until")),
                ("user", models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, to=settings.AUTH_USER_MODEL)),
            ],
            options={
                "verbose_name": "failed log-ins",
                "verbose_name_plural": "failed log-ins",
                "constraints": [models.UniqueConstraint(fields=("peer", "name_digest"), name="one_count_of_failures")],
            },
        ),
    ]
