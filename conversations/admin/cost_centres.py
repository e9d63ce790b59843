"""Cost centres. They are never deleted, so that what was spent keeps its name."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse

from conversations.admin.base import ShownLookups
from conversations.models import CostCentre


@admin.register(CostCentre)
class CostCentreAdmin(ShownLookups):
    list_display = ("code", "name", "is_active")
    list_filter = ("is_active",)
    search_fields = ("code", "name")
    show_full_result_count = False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[CostCentre], search_term: str
    ) -> tuple[QuerySet[CostCentre], bool]:
        found, has_twins = super().get_search_results(request, queryset, search_term)
        if request.path == reverse("admin:autocomplete"):
            # Who chooses one for a person chooses among those that take calls.
            found = found.filter(is_active=True)
        return found, has_twins
