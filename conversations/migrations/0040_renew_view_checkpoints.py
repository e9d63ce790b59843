"""Checkpoints hold the size of the view at a rejected summary, no longer the figure of its trigger.

They are copies of what the log says: without one a turn folds the log and saves another.
"""

from typing import Any

from django.db import migrations


def delete_checkpoints(apps: Any, schema_editor: Any) -> None:
    apps.get_model('conversations', 'ViewCheckpoint').objects.all().delete()


class Migration(migrations.Migration):

    dependencies = [
        ('conversations', '0039_retention'),
    ]

    operations = [
        migrations.RunPython(delete_checkpoints, migrations.RunPython.noop),
    ]
