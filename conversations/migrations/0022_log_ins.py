"""Failed log-ins."""

from __future__ import annotations

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("conversations", "0021_anchors")]

    operations = []
