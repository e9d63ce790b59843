"""Links with which people share their chats: who, which, until when; staff may revoke them.

What is shared is content and not shown; neither is the link. The owner sees that it was revoked.
"""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_noop

from conversations.admin.base import OfConversation, OwnerFilter, link_row
from conversations.context.translation import mark_recorded
from conversations.library.shared_links import revoke_link
from conversations.models import SharedLink, User
from conversations.web.forms.log_in import read_peer

_REVOKED = mark_recorded(gettext_noop("Link revoked."))


@admin.register(SharedLink)
class SharedLinkAdmin(OfConversation):
    heavy = ("conversation__instructions", "conversation__policy")
    list_display = (
        "created_at", "owner", "place", "audience", "with_tools", "state", "expires_at", "opened",
        "opened_at",
    )  # fmt: skip
    list_filter = ("audience", "with_tools", OwnerFilter, "created_at")
    list_select_related = ("conversation__owner",)
    date_hierarchy = "created_at"
    ordering = ("-pk",)
    search_fields = ("conversation__public_id", "conversation__owner__username")
    fields = (
        "owner", "place", "audience", "with_tools", "leaf", "created_at", "expires_at", "state",
        "revoked_at", "who_revoked", "opened", "opened_at",
    )  # fmt: skip
    actions = ("revoke",)

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.has_perm("conversations.change_sharedlink"))

    @admin.action(description=_("Revoke the chosen links"), permissions=["revoke"])
    def revoke(self, request: HttpRequest, rows: Any) -> None:
        assert isinstance(request.user, User)  # noqa: S101 - it is the admin
        count, peer = 0, read_peer(request)
        # An ended link is passed over: its chat may have another one by now.
        for row in rows.filter(revoked_at=None).select_related("conversation"):
            if revoke_link(conversation=row.conversation, actor=request.user, peer=peer):
                self.log_change(request, row, _REVOKED)
                count += 1
        told = _("Revoked: %(count)d. Others had been before.") % {"count": count}
        messages.success(request, told)

    @admin.display(description=_("state"))
    def state(self, row: SharedLink) -> str:
        if row.revoked_at is not None:
            return str(_("revoked"))
        return str(_("expired") if row.has_expired(timezone.now()) else _("active"))

    @admin.display(description=_("revoked by"))
    def who_revoked(self, row: SharedLink) -> str:
        return link_row(row.revoked_by)
