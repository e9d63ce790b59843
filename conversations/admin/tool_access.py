"""Tool rules for everybody and for groups; changes are in Django's own log."""

from __future__ import annotations

from django.contrib import admin

from conversations.admin.base import ShownLookups
from conversations.models import ToolRule


@admin.register(ToolRule)
class ToolRuleAdmin(ShownLookups):
    list_display = ("tool", "group", "is_allowed")
    list_filter = ("is_allowed", "group")
    list_select_related = ("group",)
    search_fields = ("tool",)
    show_full_result_count = False
