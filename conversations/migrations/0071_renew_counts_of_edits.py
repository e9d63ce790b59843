"""Checkpoints count only the transformations that have edits.

They are copies of what the log says: without one a turn folds the log and saves another.
"""

from typing import Any

from django.db import migrations


def delete_checkpoints(apps: Any, schema_editor: Any) -> None:
    apps.get_model('conversations', 'ViewCheckpoint').objects.all().delete()


class Migration(migrations.Migration):

    dependencies = [
        ('conversations', '0070_rule_of_the_site_asks'),
    ]

    operations = [
        migrations.RunPython(delete_checkpoints, migrations.RunPython.noop),
    ]
