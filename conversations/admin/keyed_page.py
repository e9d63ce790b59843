"""Pages of the admin's lists: the keys first, then their rows with all that is shown beside them.

In one statement SQLite, once it has statistics, begins at the smallest of the joined tables and
sorts all rows of the largest, since it does not weigh that a page takes only the first few.
"""

from __future__ import annotations

from typing import Any

from django.contrib.admin.views.main import ChangeList
from django.db.models import QuerySet
from django.http import HttpRequest


class KeyedPage(ChangeList):
    """A page of a list, read by its keys."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        ordered, start = self.order_keys(), (self.page_num - 1) * self.list_per_page
        is_whole = not self.multi_page or (self.show_all and self.can_show_all)
        keys = list(ordered if is_whole else ordered[start : start + self.list_per_page])
        rows = self.apply_select_related(self.root_queryset.order_by()).in_bulk(keys)
        # One may have been erased since.
        self.result_list = [rows[key] for key in keys if key in rows]

    def order_keys(self) -> QuerySet[Any, int]:
        """Return the keys of all rows of the list in its order."""
        keys: QuerySet[Any, int] = self.queryset.select_related(None).values_list("pk", flat=True)
        return keys
