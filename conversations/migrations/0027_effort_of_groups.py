"""The effort that the members of a group have where their conversation chooses none."""

from __future__ import annotations

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("auth", "0012_alter_user_first_name_max_length"), ("conversations", "0026_view_checkpoint")]

    operations = [
        migrations.CreateModel(
            name="EffortRule",
            fields=[
                ("id", models.BigAutoField(
                    auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                )),
                ("effort", models.CharField(
                    choices=[
                        ("low", "low"), ("medium", "medium"), ("high", "high"),
                        ("xhigh", "very high"), ("max", "maximum"),
                    ],
                    help_text=(
                        "More thinks longer and costs more; a model without the level uses its"
                        " nearest."
                    ),
                    max_length=6,
                )),
                ("group", models.OneToOneField(
                    on_delete=django.db.models.deletion.CASCADE,
                    related_name="effort_rule",
                    to="auth.group",
                )),
            ],
            options={"verbose_name": "default effort", "ordering": ["group_id"]},
        ),
    ]  # fmt: skip
