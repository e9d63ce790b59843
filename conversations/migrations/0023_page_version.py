"""The page version of a conversation, and the one that the prompt of a turn made."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("conversations", "0022_log_ins")]

    operations = [
        # With defaults in the database: what ran before goes on adding rows.
        migrations.AddField(
            model_name="conversation",
            name="version",
            field=models.PositiveBigIntegerField(db_default=0, default=0, editable=False),
        ),
        migrations.AddField(
            model_name="turn",
            name="version",
            field=models.PositiveBigIntegerField(db_default=0, default=0, editable=False),
        ),
    ]
