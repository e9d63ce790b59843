"""The audit log: who read other people's content, and what was changed in this admin."""

from __future__ import annotations

from django.contrib import admin
from django.contrib.admin.models import LogEntry

from conversations.admin.base import ReadOnly
from conversations.services.readings import READ


@admin.register(LogEntry)
class LogEntryAdmin(ReadOnly):
    list_display = ("action_time", "user", "action", "content_type", "object_repr", "message")
    list_filter = ("action_flag", "action_time")
    list_select_related = ("user", "content_type")
    date_hierarchy = "action_time"
    search_fields = ("user__username", "object_repr", "change_message")
    fields = (
        "action_time",
        "user",
        "action",
        "content_type",
        "object_id",
        "object_repr",
        "message",
    )

    @admin.display(description="action", ordering="action_flag")
    def action(self, row: LogEntry) -> str:
        return "Read" if row.action_flag == READ else row.get_action_flag_display()

    @admin.display(description="what")
    def message(self, row: LogEntry) -> str:
        return row.get_change_message()
