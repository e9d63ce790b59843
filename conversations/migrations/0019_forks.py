from __future__ import annotations

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("conversations", "0018_corrections")]

    operations = [
        migrations.AddField(
            model_name="conversation",
            name="forked_from",
            field=models.ForeignKey(
                blank=True,
                editable=False,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="forks",
                to="conversations.turn",
            ),
        ),
    ]
