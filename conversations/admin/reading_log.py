"""The admin log: readings of other people's content, and changes made in the admin.

An entry names its conversation by number, so the owners are queried for the shown page: one query
for conversations that exist, one for erased ones, and one for people of whom another page was
looked at.
"""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.admin.models import ADDITION, CHANGE, DELETION, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db.models import CharField, Q, QuerySet
from django.db.models.functions import Cast
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _

from conversations.accounts.reading_log import READ
from conversations.admin.base import ReadOnly, filter_by_key, link_row, list_names
from conversations.admin.keyed_page import KeyedPage
from conversations.models import Conversation, Erasure, User
from conversations.templatetags.recorded import translated

ACTIONS = {
    READ: _("Read"), ADDITION: _("Added"), CHANGE: _("Changed"), DELETION: _("Deleted")
}  # fmt: skip


class ActionFilter(admin.SimpleListFilter):
    title = _("action")
    parameter_name = "action"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [(str(flag), name) for flag, name in ACTIONS.items()]

    def queryset(self, request: HttpRequest, rows: QuerySet[Any]) -> QuerySet[Any]:
        return (
            rows if self.value() is None else filter_by_key(rows, "action_flag", self.value() or "")
        )


class ReaderFilter(admin.SimpleListFilter):
    """By the person who acted, from those with an entry."""

    title = _("reader")
    parameter_name = "reader"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return list_names(User.objects.filter(logentry__isnull=False))

    def queryset(self, request: HttpRequest, rows: QuerySet[Any]) -> QuerySet[Any]:
        return rows if self.value() is None else filter_by_key(rows, "user", self.value() or "")


class ReadOwnerFilter(admin.SimpleListFilter):
    """By whose it was that was read: a conversation, an erased one too, or another page."""

    title = _("owner")
    parameter_name = "owner"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        had = Q(conversations__isnull=False) | Q(erasures__isnull=False)
        had |= Q(impersonations__isnull=False)
        return list_names(User.objects.filter(had))

    def queryset(self, request: HttpRequest, rows: QuerySet[Any]) -> QuerySet[Any]:
        value = self.value()
        if value is None:
            return rows
        theirs = filter_by_key(Conversation.objects.all(), "owner", value)
        erased = filter_by_key(Erasure.objects.all(), "owner", value)
        names = [f"conversation {each}" for each in erased.values_list("conversation", flat=True)]
        of_theirs = Q(object_id__in=_write_keys(theirs)) | Q(object_repr__in=names)
        kinds = ContentType.objects.get_for_models(Conversation, User)
        themselves = filter_by_key(User.objects.all(), "pk", value)
        looked = Q(
            action_flag=READ, content_type=kinds[User], object_id__in=_write_keys(themselves)
        )
        return rows.filter(looked | Q(of_theirs, content_type=kinds[Conversation]))


def _write_keys(rows: QuerySet[Any]) -> QuerySet[Any]:
    """Return the keys of rows as entries name them."""
    found: QuerySet[Any] = rows.annotate(text=Cast("pk", CharField())).values("text")
    return found


class Owners(KeyedPage):
    """A page of entries, each with the owner of its conversation, or whose page it was."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        kinds = ContentType.objects.get_for_models(Conversation, User)
        entries = [
            entry for entry in self.result_list if entry.content_type_id == kinds[Conversation].pk
        ]
        there = Conversation.objects.filter(pk__in={entry.object_id for entry in entries})
        owners = {str(row.pk): row.owner for row in there.select_related("owner").only("owner")}
        names = {entry.object_repr.removeprefix("conversation ") for entry in entries}
        gone = Erasure.objects.filter(conversation__in=names).select_related("owner")
        erased = {f"conversation {row.conversation}": row.owner for row in gone.defer("usage")}
        for entry in entries:
            entry.whose = owners.get(entry.object_id) or erased.get(entry.object_repr)
        looks = [
            entry
            for entry in self.result_list
            if (entry.action_flag, entry.content_type_id) == (READ, kinds[User].pk)
        ]
        people = User.objects.filter(pk__in={entry.object_id for entry in looks})
        names_of = {str(row.pk): row for row in people.only("username")}
        for entry in looks:
            entry.whose = names_of.get(entry.object_id)


@admin.register(LogEntry)
class LogEntryAdmin(ReadOnly):
    list_display = ("action_time", "user", "action", "message", "whose", "about")
    list_filter = (ActionFilter, ReaderFilter, ReadOwnerFilter, "action_time")
    list_select_related = ("user", "content_type")
    date_hierarchy = "action_time"
    search_fields = ("user__username", "object_repr", "change_message")
    fields = (
        "action_time",
        "user",
        "action",
        "content_type",
        "object_id",
        "object_repr",
        "message",
    )

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[KeyedPage]:
        return Owners

    @admin.display(description=_("action"), ordering="action_flag")
    def action(self, row: LogEntry) -> str:
        return str(ACTIONS.get(row.action_flag, ""))

    @admin.display(description=_("owner"))
    def whose(self, row: Any) -> str:
        return link_row(getattr(row, "whose", None))

    @admin.display(description=_("about"), ordering="object_repr")
    def about(self, row: LogEntry) -> str:
        """Return what the entry is about; a conversation by its short id."""
        name, _, public_id = row.object_repr.partition("conversation ")
        shown = row.object_repr if name or not public_id else f"conversation {public_id[:8]}"
        address = row.get_admin_url()
        return format_html('<a href="{}">{}</a>', address, shown) if address else shown

    @admin.display(description=_("what"))
    def message(self, row: LogEntry) -> str:
        return translated(row.get_change_message())
