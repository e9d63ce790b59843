"""Shared by the admin's pages: read-only rows, links between them, filters of bounded size."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.contrib.admin.widgets import AutocompleteSelect
from django.contrib.auth.models import Group
from django.core.exceptions import PermissionDenied
from django.db import connection
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.html import format_html
from django.utils.http import urlencode
from django.utils.translation import gettext_lazy as _

from conversations.admin.concurrent_edits import keep_concurrent_edits
from conversations.admin.keyed_page import KeyedPage
from conversations.models import ApiModel, Conversation, User
from conversations.rendering.numbers import write_number
from conversations.rendering.visible import reveal_hidden
from conversations.templatetags.recorded import translated

if TYPE_CHECKING:
    ModelAdmin = admin.ModelAdmin[Any]
else:
    ModelAdmin = admin.ModelAdmin

#: Suffixes of the look-ups that Django makes for a field's filters and for its dates.
_FILTERED = ("", "__exact", "__id__exact", "__isnull", "__isempty", "__gte", "__lt", "__in")
_DATED = ("__year", "__month", "__day", "__gte", "__lt")
#: Most names that the filter by user offers; the search finds the others.
MOST_NAMES = 100
#: Rows whose values a filter offers.
NEWEST = 1_000


class Chooser(AutocompleteSelect):
    """A choice by search; a malformed key is shown as not chosen instead of being looked up."""

    def optgroups(self, name: str, value: Any, attr: Any = None) -> Any:
        return super().optgroups(name, [each for each in value if not each or is_key(each)], attr)


class ShownLookups(ModelAdmin):
    """A list that accepts only the look-ups that its page offers.

    Django accepts any look-up of a row's own fields, such as `input__contains`. With it, whoever
    sees the list could read a field that no page shows them, letter by letter.
    """

    #: Look-ups in links of other pages to this list.
    linked_lookups: tuple[str, ...] = ()

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any
    ) -> Any:
        made = super().get_form(request, obj, change=change, **kwargs)
        return keep_concurrent_edits(made) if change else made

    def get_object(self, request: HttpRequest, object_id: str, from_field: Any = None) -> Any:
        """Return a row; for a change it is locked, so of two at once the later sees the earlier."""
        found = super().get_object(request, object_id, from_field)
        if found is None or request.method != "POST" or not connection.in_atomic_block:
            return found
        # It may have been deleted meanwhile.
        self.model._base_manager.select_for_update(no_key=True).filter(pk=found.pk).first()
        return super().get_object(request, object_id, from_field)

    def lookup_allowed(self, lookup: str, value: Any, request: Any = None) -> bool:
        return lookup in {*self.linked_lookups, *_list_lookups(self)}

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: Any = None
    ) -> HttpResponse:
        """Show who read and changed a row, and why, to those who may see the log of that."""
        if not request.user.has_perm("admin.view_logentry"):
            raise PermissionDenied
        response = super().history_view(request, object_id, extra_context)
        for entry in getattr(response, "context_data", {}).get("action_list", ()):
            entry.change_message = translated(entry.get_change_message())
        return response


def _list_lookups(shown: ModelAdmin) -> Iterator[str]:
    """Yield the look-ups that the filters of a list and its dates make."""
    filters: list[Any] = [*shown.list_filter]
    for one in filters:
        if isinstance(one, str | tuple):
            yield from (f"{one if isinstance(one, str) else one[0]}{end}" for end in _FILTERED)
        elif issubclass(one, admin.SimpleListFilter):
            yield str(one.parameter_name)
    if shown.date_hierarchy:
        yield from (f"{shown.date_hierarchy}{end}" for end in _DATED)


class SecretShownOnce(ShownLookups):
    """Rows with a secret that is shown once, right after they are made, and never changed."""

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return () if obj is None else self.get_fields(request, obj)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return obj is None and super().has_change_permission(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        # Whatever follows, the secret is shown first.
        hidden = dict.fromkeys(("show_save_and_continue", "show_save_and_add_another"), False)
        return super().add_view(request, form_url, (extra_context or {}) | hidden)


class Choosing(ShownLookups):
    """Forms whose people and groups are chosen by search."""

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        if db_field.name in self.get_autocomplete_fields(request):
            kwargs.setdefault("widget", Chooser(db_field, self.admin_site))
        return super().formfield_for_foreignkey(db_field, request, **kwargs)


class ReadOnly(ShownLookups):
    """Rows that cannot be added, changed or deleted here; lists do not load `heavy` fields."""

    actions: tuple[str, ...] | None = None
    heavy: tuple[str, ...] = ()
    list_per_page = 50
    show_full_result_count = False

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return super().get_queryset(request).defer(*self.heavy)

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[KeyedPage]:
        return KeyedPage

    def review(self, request: HttpRequest, row: Any) -> dict[str, Any]:
        """Return the template context of the page besides the fields."""
        return {}

    def render_change_form(
        self,
        request: HttpRequest,
        context: dict[str, Any],
        add: bool = False,
        change: bool = False,
        form_url: str = "",
        obj: Any = None,
    ) -> HttpResponse:
        context |= self.review(request, obj)
        return super().render_change_form(request, context, add, change, form_url, obj)


class OfConversation(ReadOnly):
    """Rows of a conversation. A title is content, so lists show the conversation's id."""

    @admin.display(description=_("user"), ordering="conversation__owner__username")
    def owner(self, row: Any) -> str:
        return link_row(row.conversation.owner)

    @admin.display(description=_("chat"), ordering="conversation__public_id")
    def place(self, row: Any) -> str:
        return link_row(row.conversation, short_id(row.conversation))

    @admin.display(description=_("turn"), ordering="turn")
    def turn_link(self, row: Any) -> str:
        return link_row(row.turn)


def short_id(conversation: Conversation) -> str:
    """Return the short id of a conversation: the search finds it, and it reveals no content."""
    return str(conversation.public_id)[:8]


def link_row(row: Model | None, text: str = "") -> str:
    """Return a link to the page of a row."""
    if row is None:
        return "–"
    name = f"admin:{row._meta.app_label}_{row._meta.model_name}_change"
    return format_html('<a href="{}"><bdi>{}</bdi></a>', reverse(name, args=[row.pk]), text or row)


def link_list(model: type[Model], text: str, **where: Any) -> str:
    """Return a link to a filtered list."""
    url = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
    return format_html('<a href="{}?{}">{}</a>', url, urlencode(where), text)


def format_json(text: str) -> str:
    """Indent JSON text, or keep other text; hidden characters are shown by code."""
    try:
        shown = json.dumps(json.loads(text), ensure_ascii=False, indent=2)
    except ValueError:
        shown = text
    return format_html('<pre class="record" tabindex="0">{}</pre>', reveal_hidden(shown))


def format_step(before: int, after: int) -> str:
    """Format a number before and after, and the share that was saved."""
    tenths = (before - after) * 1000 // before if 0 < after < before else 0
    share = f" (−{tenths // 10}.{tenths % 10} %)" if tenths else ""
    return f"{write_number(before)} → {write_number(after)}{share}"


def is_superuser(request: HttpRequest) -> bool:
    return bool(getattr(request.user, "is_superuser", False))


def is_key(value: str) -> bool:
    """Return whether a text can be the key of a row."""
    return value.isdecimal() and len(value) < 19


def parse_key(text: str) -> int:
    """Read the key of a row; 0, which no row has, for what can be none."""
    return int(text) if is_key(text) else 0


def filter_by_key(rows: QuerySet[Any], path: str, value: str) -> QuerySet[Any]:
    """Filter by a key of an address; a malformed one matches nothing."""
    return rows.filter(**{path: int(value)}) if is_key(value) else rows.none()


class SeenFilter(admin.SimpleListFilter):
    """By a text of the rows; only what the newest rows have is offered."""

    path: str

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        newest = model_admin.model.objects.order_by("-pk").values_list(self.path, flat=True)
        found = {*newest[:NEWEST], request.GET.get(self.parameter_name or "")}
        return [(value, value) for value in sorted(filter(None, found))]

    def queryset(self, request: HttpRequest, rows: QuerySet[Any]) -> QuerySet[Any]:
        return rows if self.value() is None else rows.filter(**{self.path: self.value()})


def list_names(people: QuerySet[User]) -> list[tuple[str, str]]:
    """Return keys and names of people as a filter offers them: the first by name."""
    found = people.order_by("username").distinct().values_list("pk", "username")[:MOST_NAMES]
    return [(str(key), name) for key, name in found]


class OwnerFilter(admin.SimpleListFilter):
    """By the owner of the conversation, with a bounded list of names."""

    title = _("user")
    parameter_name = "user"
    path = "conversation__owner"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return list_names(User.objects.exclude(conversations=None))

    def queryset(self, request: HttpRequest, rows: QuerySet[Any]) -> QuerySet[Any]:
        value = self.value()
        return rows if value is None else filter_by_key(rows, self.path, value)


class TurnOwnerFilter(OwnerFilter):
    path = "turn__conversation__owner"


class DirectOwnerFilter(OwnerFilter):
    path = "owner"


class GroupFilter(admin.SimpleListFilter):
    """By a group of the conversation's owner."""

    title = _("group")
    parameter_name = "group"
    path = "conversation__owner__groups"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        found = Group.objects.order_by("name").values_list("pk", "name")[:MOST_NAMES]
        return [(str(key), name) for key, name in found]

    def queryset(self, request: HttpRequest, rows: QuerySet[Any]) -> QuerySet[Any]:
        value = self.value()
        return rows if value is None else filter_by_key(rows, self.path, value)


class ModelFilter(admin.SimpleListFilter):
    """By a model of the catalogue."""

    title = _("model")
    parameter_name = "model"
    path = "model"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(name, name) for name in ApiModel.objects.values_list("pk", flat=True)]

    def queryset(self, request: HttpRequest, rows: QuerySet[Any]) -> QuerySet[Any]:
        return rows if self.value() is None else rows.filter(**{self.path: self.value()})
