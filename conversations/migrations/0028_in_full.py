"""Whether a person wants a chat, or its next turn, sent in full."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("conversations", "0027_effort_of_groups")]

    operations = [
        # With defaults in the database: what ran before goes on adding rows.
        migrations.AddField(
            model_name="conversation",
            name="in_full_always",
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.AddField(
            model_name="conversation",
            name="in_full_turn",
            field=models.PositiveIntegerField(db_default=0, default=0),
        ),
    ]
