from __future__ import annotations

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("conversations", "0014_tool_access")]

    operations = []
