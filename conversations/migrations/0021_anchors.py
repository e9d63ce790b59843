"""Anchors of the chains."""

from __future__ import annotations

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("conversations", "0020_web_search")]

    operations = []
