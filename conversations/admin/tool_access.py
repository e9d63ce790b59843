"""Tool rules for everybody and for groups; changes are in Django's own log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import admin

from conversations.models import ToolRule

if TYPE_CHECKING:
    _RuleAdmin = admin.ModelAdmin[ToolRule]
else:
    _RuleAdmin = admin.ModelAdmin


@admin.register(ToolRule)
class ToolRuleAdmin(_RuleAdmin):
    list_display = ("tool", "group", "is_allowed")
    list_filter = ("is_allowed", "group")
    list_select_related = ("group",)
    search_fields = ("tool",)
    show_full_result_count = False
