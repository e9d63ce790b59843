"""People: their effective budgets and context policy, next to Django's own fields.

A user who owns conversations, or whose reading of others' is recorded, is never deleted here:
deactivation keeps the record complete. Only a superuser changes the accounts of staff and of
superusers, who is staff, and groups, because who may change a group could give it every permission.
Nobody sets the password of a person who exists, because whoever knows it reads as that person,
without a record.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from django.apps import apps
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.admin.utils import unquote
from django.contrib.auth.admin import GroupAdmin as DjangoGroupAdmin
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.forms import UserChangeForm
from django.contrib.auth.models import Group
from django.core.exceptions import PermissionDenied
from django.db.models import Count
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.functional import cached_property
from django.utils.html import format_html, format_html_join
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from conversations.accounts.openid_providers import forget_closing
from conversations.accounts.reading_log import READ
from conversations.admin import (
    budget_actions,
    impersonation_start,
    person,
    policy_form,
    reset_links,
    second_factors,
)
from conversations.admin.base import Choosing, ShownLookups, is_superuser, link_list
from conversations.admin.budget_forms import BudgetInline, TurnCapInline
from conversations.admin.people_spending import PeopleWithSpending
from conversations.budgets.crossings import recording_afterwards
from conversations.budgets.units import MONEY
from conversations.library.impersonations import is_impersonation_allowed
from conversations.models import (
    ApiCall,
    ApiModel,
    Conversation,
    CostCentre,
    SitePrompt,
    Transformation,
    User,
)
from conversations.templatetags.bars import bar
from conversations.web.usage import build_usage_context, read_span

if TYPE_CHECKING:
    _UserAdmin = DjangoUserAdmin[User]
    _UserForm = UserChangeForm[User]
else:
    _UserAdmin, _UserForm = DjangoUserAdmin, UserChangeForm

POWERS = ("is_staff", "is_superuser", "groups", "user_permissions")
#: With the address of an existing account a new password is asked for by mail.
ADDRESS = ("email",)


class UserForm(_UserForm):
    """Django's form with the numbers of the context policy, validated by the engine."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.was = self.instance.policy, self.instance.policy_limits
        policy_form.add_fields(self, self.instance)

    @cached_property
    def changed_data(self) -> list[str]:
        """Return the changed fields; the log has the policy's numbers with their values."""
        return [name for name in super().changed_data if not policy_form.is_of_policy(name)]

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        policy, limits = policy_form.validate_policy(self, self.instance)
        if not self.errors:
            self.instance.policy, self.instance.policy_limits = policy, limits
        return data


@admin.register(User)
class UserAdmin(Choosing, _UserAdmin):
    form = UserForm
    inlines = (BudgetInline, TurnCapInline)
    list_display = (
        "username", "email", "spending", "is_active", "is_staff", "conversation_count",
        "last_login",
    )  # fmt: skip
    readonly_fields = ("public_id", "record", "last_login", "date_joined")
    autocomplete_fields = ("cost_centre",)
    show_full_result_count = False
    fieldsets = (
        (None, {"fields": ("username", "cost_centre")}),
        *(DjangoUserAdmin.fieldsets or ())[1:],
        (_("Record"), {"fields": ("record", "public_id")}),
    )

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).annotate(owned=Count("conversations", distinct=True))

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[PeopleWithSpending]:
        return PeopleWithSpending

    @admin.display(description=_("spent of the nearest limit"))
    def spending(self, row: Any) -> str:
        if row.is_exempt:
            return str(_("exempt"))
        if row.nearest is not None:
            one = row.nearest
            return bar(one.spent, one.held, one.limit, MONEY.name)
        return "–" if row.own_limit is None else bar(0, 0, row.own_limit, MONEY.name)

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        found = super().get_fieldsets(request, obj)
        if obj is None or CostCentre.objects.exists():
            return found
        return ((None, {"fields": ("username",)}), *found[1:])

    def get_inlines(self, request: HttpRequest, obj: Any = None) -> Any:
        return () if obj is None else super().get_inlines(request, obj)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        user = self.get_object(request, unquote(object_id))
        more = person.build_money_context(request, user) if user is not None else {}
        more["may_reset"] = is_superuser(request)
        actor = request.user
        more["may_look"] = isinstance(actor, User) and is_impersonation_allowed(actor)
        return super().change_view(request, object_id, form_url, (extra_context or {}) | more)

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        if context["original"] is not None:
            context |= person.build_policy_context(context["adminform"].form, context["original"])
        return super().render_change_form(request, context, *args, **kwargs)

    def save_model(self, request: HttpRequest, obj: User, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        if change and "is_active" in form.changed_data:
            forget_closing(obj.pk)

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        # One form changes groups and several allowances, each in its turn.
        with recording_afterwards():
            super().save_related(request, form, formsets, change)

    def construct_change_message(
        self, request: HttpRequest, form: Any, formsets: Any, add: bool = False
    ) -> list[dict[str, Any]]:
        changes = super().construct_change_message(request, form, formsets, add)
        return changes if add else [*changes, *person.describe_changes(form, formsets)]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        fields = tuple(super().get_readonly_fields(request, obj))
        if is_superuser(request):
            return fields
        return (*fields, *POWERS, *(ADDRESS if obj is not None else ()))

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_change_permission(request, obj) and _within_reach(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_delete_permission(request, obj) and _within_reach(request, obj)

    def user_change_password(
        self, request: HttpRequest, id: str, form_url: str = ""
    ) -> HttpResponse:
        raise PermissionDenied

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        kept = [sentence for user in objs for sentence in _list_reasons(user)]
        if kept:
            return [], {}, set(), kept
        return super().get_deleted_objects(objs, request)

    @admin.display(description=_("chats"), ordering="owned")
    def conversation_count(self, user: User) -> int:
        return int(getattr(user, "owned", 0))

    @admin.display(description=_("of this user"))
    def record(self, user: User) -> str:
        """Return links to the records of a user: figures, never content."""
        if not user.pk:
            return "–"
        address = reverse("admin:user_usage", args=[user.pk])
        usage = format_html('<a href="{}">{}</a>', address, _("usage"))
        lists = (
            link_list(Conversation, str(_("chats")), user=user.pk),
            link_list(Transformation, str(_("transformations")), user=user.pk),
            link_list(ApiCall, str(_("calls")), user=user.pk),
            link_list(LogEntry, str(_("who read them")), owner=user.pk),
            link_list(LogEntry, str(_("what they read and changed")), reader=user.pk),
        )
        return format_html_join(" · ", "{}", ((each,) for each in (usage, *lists)))

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.usage)
        return [
            path("<path:object_id>/usage/", view, name="user_usage"),
            path(
                "<path:object_id>/exempt/",
                self.admin_site.admin_view(budget_actions.exempt),
                name="user_exempt",
            ),
            path(
                "<path:object_id>/reset-link/",
                self.admin_site.admin_view(reset_links.make),
                name="user_reset_link",
            ),
            path(
                "<path:object_id>/lost-factors/",
                self.admin_site.admin_view(second_factors.remove_lost),
                name="user_lost_factors",
            ),
            path(
                "<path:object_id>/look/",
                self.admin_site.admin_view(impersonation_start.start),
                name="user_impersonate",
            ),
            *super().get_urls(),
        ]

    def usage(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Show the user's own usage page, with conversations by id."""
        user = self.get_object(request, unquote(object_id))
        if user is None:
            raise Http404("no such user")
        is_allowed = self.has_view_permission(request, user)
        if not (is_allowed and request.user.has_perm("conversations.view_apicall")):
            raise PermissionDenied
        context = self.admin_site.each_context(request) | {
            "title": _("Usage of %(name)s") % {"name": user.get_username()},
            "opts": self.opts,
            "original": user,
            "is_review": True,
        }
        context |= build_usage_context(user, read_span(request), is_named=False)
        page = "admin/conversations/user/usage.html"
        return TemplateResponse(request, page, context)


class GroupAdmin(ShownLookups, DjangoGroupAdmin):
    """Groups and their permissions, which superusers change and others may read."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return is_superuser(request)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return is_superuser(request)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return is_superuser(request)

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        kept = [*_list_kept_alone(objs)]
        if kept:
            return [], {}, set(), kept
        return super().get_deleted_objects(objs, request)


# Rows of django-allauth: its providers are settings here, and a person's second factors are theirs.
for _kind in apps.get_app_configs():
    if _kind.name.startswith("allauth."):
        for _table in filter(admin.site.is_registered, _kind.get_models()):
            admin.site.unregister(_table)
admin.site.unregister(Group)
admin.site.register(Group, GroupAdmin)


def _within_reach(request: HttpRequest, user: User | None) -> bool:
    """Return whether the account may be changed; a superuser may also be none of the staff."""
    if is_superuser(request) or user is None or user.pk == request.user.pk:
        return True
    return not (user.is_staff or user.is_superuser)


def _list_kept_alone(groups: Iterable[Group]) -> Iterable[str]:
    """Yield what is kept for these groups alone: without a group it would be everybody's."""
    keys = [group.pk for group in groups]
    others = Group.objects.exclude(pk__in=keys)
    for rows in (ApiModel.objects.order_by("pk"), SitePrompt.objects.order_by("pk")):
        for row in rows.filter(groups__in=keys).exclude(groups__in=others).distinct():
            told = _(
                "%(row)s is kept for %(groups)s alone and would be open to everybody: change that"
                " first."
            )
            names = row.groups.order_by("name").values_list("name", flat=True)
            yield told % {"row": row, "groups": ", ".join(names)}


def _list_reasons(user: User) -> Iterable[str]:
    """Yield the reasons why a user cannot be deleted."""
    count = user.conversations.count()
    if count:
        words = ngettext(
            "%(name)s owns %(count)d chat: untick “Active”.",
            "%(name)s owns %(count)d chats: untick “Active”.",
            count,
        )
        yield words % {"name": user.username, "count": count}
    if LogEntry.objects.filter(user=user, action_flag=READ).exists():
        told = _("What %(name)s read of others is on record: untick “Active”.")
        yield told % {"name": user.username}
