"""Counts of failed log-ins, by name and address; deleting a count ends the wait."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from conversations.accounts.throttle import is_of_links
from conversations.admin.base import ReadOnly
from conversations.models import FailedLogIns


class WaitFilter(admin.SimpleListFilter):
    title = _("state")
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [("waits", _("must wait"))]

    def queryset(self, request: HttpRequest, rows: Any) -> Any:
        return rows.filter(until__gt=timezone.now()) if self.value() == "waits" else rows


@admin.register(FailedLogIns)
class FailedLogInsAdmin(ReadOnly):
    list_display = ("peer", "whose", "count", "began_at", "until")
    list_filter = (WaitFilter,)
    list_select_related = ("user",)
    search_fields = ("peer", "user__username")
    fields = ("peer", "whose", "count", "began_at", "waits", "until")
    readonly_fields = ("whose",)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        name = "conversations.delete_failedlogins"
        return bool(request.user.has_perm(name))

    @admin.display(description=_("name"), ordering="user__username")
    def whose(self, row: FailedLogIns) -> str:
        if row.user is not None:
            return row.user.get_username()
        if is_of_links(row):
            return str(_("links to chats"))
        return str(_("a name nobody has") if row.name_digest else _("all names together"))
