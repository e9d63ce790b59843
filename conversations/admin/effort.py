"""The default effort of groups; changes are in Django's own log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import admin

from conversations.models import EffortRule

if TYPE_CHECKING:
    _RuleAdmin = admin.ModelAdmin[EffortRule]
else:
    _RuleAdmin = admin.ModelAdmin


@admin.register(EffortRule)
class EffortRuleAdmin(_RuleAdmin):
    list_display = ("group", "effort")
    list_filter = ("effort",)
    list_select_related = ("group",)
    search_fields = ("group__name",)
    show_full_result_count = False
