"""The default effort of groups; changes are in Django's own log."""

from __future__ import annotations

from django.contrib import admin

from conversations.admin.base import ShownLookups
from conversations.models import EffortRule


@admin.register(EffortRule)
class EffortRuleAdmin(ShownLookups):
    list_display = ("group", "effort")
    list_filter = ("effort",)
    list_select_related = ("group",)
    search_fields = ("group__name",)
    show_full_result_count = False
