"""Moves of the site from one kind of database to the other, as the site's chain has them."""

from __future__ import annotations

from django.contrib import admin
from django.utils.translation import gettext_lazy as _

from conversations.admin.base import ReadOnly
from conversations.models import DatabaseMove
from conversations.rendering.numbers import write_number


@admin.register(DatabaseMove)
class DatabaseMoveAdmin(ReadOnly):
    list_display = ("created_at", "source", "target", "moved", "digest")
    date_hierarchy = "created_at"
    ordering = ("-pk",)
    fields = ("begun_at", "created_at", "source", "target", "moved", "digest", "link", "chain")

    @admin.display(description=_("rows"), ordering="rows")
    def moved(self, row: DatabaseMove) -> str:
        return write_number(row.rows)
