"""Groups whose members must have a second factor; changes are in Django's own log."""

from __future__ import annotations

from django.contrib import admin

from conversations.admin.base import ShownLookups
from conversations.models import SecondFactorRule


@admin.register(SecondFactorRule)
class SecondFactorRuleAdmin(ShownLookups):
    list_display = ("group",)
    list_select_related = ("group",)
    search_fields = ("group__name",)
    show_full_result_count = False
