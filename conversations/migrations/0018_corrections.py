"""Grants and corrections name their form, people have limits of their policy, prices are possible."""

from __future__ import annotations

from django.core.validators import MaxValueValidator
from django.db import migrations, models

MOST_RATE = 10**12


def form():
    return models.UUIDField(editable=False, null=True, unique=True)


class Migration(migrations.Migration):
    dependencies = [("conversations", "0017_files")]

    operations = [
        migrations.AddField("grant", "form", form()),
        migrations.AddField("ledgerentry", "form", form()),
        migrations.AddField("user", "policy_limits", models.JSONField(blank=True, default=dict)),
        migrations.AlterField(
            "modelprice",
            "micros_per_million",
            models.PositiveBigIntegerField(validators=[MaxValueValidator(MOST_RATE)]),
        ),
        migrations.AddConstraint(
            "modelprice",
            models.CheckConstraint(
                condition=models.Q(micros_per_million__gte=0, micros_per_million__lte=MOST_RATE),
                name="price_possible",
            ),
        ),
    ]
