"""Mail accounts: whether they exist and work; the mail itself stays private."""

from __future__ import annotations

from django.contrib import admin
from django.utils.translation import gettext_lazy as _

from conversations.admin.base import DirectOwnerFilter, ReadOnly, link_row
from conversations.models import MailAccount


@admin.register(MailAccount)
class MailAccountAdmin(ReadOnly):
    heavy = ("name", "address", "login", "sealed_secret", "imap_host", "smtp_host", "folder")
    list_display = ("created_at", "person", "auth", "can_send", "used_at", "works")
    list_filter = ("auth", DirectOwnerFilter, "created_at")
    list_select_related = ("owner",)
    date_hierarchy = "created_at"
    ordering = ("-pk",)
    search_fields = ("owner__username",)
    fields = (
        "person", "auth", "imap_port", "imap_security", "can_send", "smtp_port", "smtp_security",
        "created_at", "used_at", "works",
    )  # fmt: skip

    @admin.display(description=_("user"), ordering="owner__username")
    def person(self, row: MailAccount) -> str:
        return link_row(row.owner)

    @admin.display(description=_("can send"), boolean=True)
    def can_send(self, row: MailAccount) -> bool:
        return bool(row.smtp_host)

    @admin.display(description=_("worked at its last use"), boolean=True)
    def works(self, row: MailAccount) -> bool:
        return not row.problem
