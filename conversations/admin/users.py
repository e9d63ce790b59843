"""People: their budgets and context policy, next to Django's own fields.

A user who owns conversations, or whose reading of others' is on record, is never deleted here:
deactivating keeps the record whole. Only a superuser changes staff and who is staff, because a
password set for someone with `read_content` would be a way around that permission.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.admin.utils import unquote
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.forms import UserChangeForm
from django.core.exceptions import PermissionDenied, ValidationError
from django.db.models import Count
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html, format_html_join

from conversations.admin.base import listing
from conversations.admin.budgets import BudgetInline
from conversations.context.errors import ContextError
from conversations.models import ApiCall, Conversation, Transformation, User
from conversations.queries.policies import numbers, policy_of
from conversations.services.readings import READ
from conversations.spending import shown, span_of

if TYPE_CHECKING:
    _UserAdmin = DjangoUserAdmin[User]
    _UserForm = UserChangeForm[User]
else:
    _UserAdmin, _UserForm = DjangoUserAdmin, UserChangeForm

POWERS = ("is_staff", "is_superuser", "is_exempt", "groups", "user_permissions")


class UserForm(_UserForm):
    """Django's form, and a policy that the engine would take."""

    def clean_policy(self) -> dict[str, Any]:
        policy = self.cleaned_data["policy"] or {}
        if not isinstance(policy, dict):
            raise ValidationError('Write an object, for example {"input_token_budget": 60000}.')
        try:
            policy_of(policy)
        except ContextError as error:
            raise ValidationError(str(error)) from error
        return policy


@admin.register(User)
class UserAdmin(_UserAdmin):
    form = UserForm
    inlines = (BudgetInline,)
    list_display = (
        "username", "email", "is_active", "is_staff", "conversation_count", "last_login"
    )  # fmt: skip
    readonly_fields = ("public_id", "effective_policy", "record", "last_login", "date_joined")
    show_full_result_count = False
    fieldsets = (
        *(DjangoUserAdmin.fieldsets or ()),
        ("Record", {"fields": ("record",)}),
        ("Budgets", {"fields": ("is_exempt",)}),
        ("Context", {"fields": ("policy", "effective_policy", "public_id")}),
    )

    class Media:
        css = {"all": ("agentweb-admin.css",)}

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).annotate(owned=Count("conversations", distinct=True))

    def get_inlines(self, request: HttpRequest, obj: Any = None) -> Any:
        return () if obj is None else super().get_inlines(request, obj)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        fields = tuple(super().get_readonly_fields(request, obj))
        return fields if is_superuser(request) else (*fields, *POWERS)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_change_permission(request, obj) and _within_reach(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_delete_permission(request, obj) and _within_reach(request, obj)

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        kept = [sentence for user in objs for sentence in _reasons(user)]
        if kept:
            return [], {}, set(), kept
        return super().get_deleted_objects(objs, request)

    @admin.display(description="conversations", ordering="owned")
    def conversation_count(self, user: User) -> int:
        return int(getattr(user, "owned", 0))

    @admin.display(description="of this user")
    def record(self, user: User) -> str:
        """Link to what there is to see of a user: figures, never content."""
        if not user.pk:
            return "–"
        usage = format_html('<a href="{}">usage</a>', reverse("admin:user_usage", args=[user.pk]))
        lists = (
            listing(Conversation, "conversations", user=user.pk),
            listing(Transformation, "transformations", user=user.pk),
            listing(ApiCall, "calls", user=user.pk),
            listing(LogEntry, "who read them", owner=user.pk),
            listing(LogEntry, "what they read and changed", reader=user.pk),
        )
        return format_html_join(" · ", "{}", ((each,) for each in (usage, *lists)))

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.usage)
        return [path("<path:object_id>/usage/", view, name="user_usage"), *super().get_urls()]

    def usage(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Show the user's own usage page; conversations go by their ids."""
        user = self.get_object(request, unquote(object_id))
        if user is None:
            raise Http404("no such user")
        is_allowed = self.has_view_permission(request, user)
        if not (is_allowed and request.user.has_perm("conversations.view_apicall")):
            raise PermissionDenied
        context = self.admin_site.each_context(request) | {
            "title": f"Usage of {user.get_username()}",
            "opts": self.opts,
            "original": user,
            "is_review": True,
        }
        context |= shown(user, span_of(request), is_named=False)
        page = "admin/conversations/user/usage.html"
        return TemplateResponse(request, page, context)

    @admin.display(description="what counts")
    def effective_policy(self, user: User) -> str:
        if not isinstance(user.policy, dict):
            return "The policy is no object; the site's numbers cannot be shown."
        try:
            rows = [(row.name, _shown(row.value), row.source) for row in numbers(user)]
        except ContextError as error:
            return f"These numbers do not fit the site's: {error}"
        body = format_html_join("", "<tr><th>{}</th><td>{}</td><td>{}</td></tr>", rows)
        return format_html(
            '<table class="numbers"><thead><tr><th>Setting</th><th>Value</th><th>From</th></tr>'
            "</thead><tbody>{}</tbody></table>",
            body,
        )


def is_superuser(request: HttpRequest) -> bool:
    return bool(getattr(request.user, "is_superuser", False))


def _within_reach(request: HttpRequest, user: User | None) -> bool:
    is_own = user is not None and user.pk == request.user.pk
    return is_superuser(request) or user is None or is_own or not user.is_staff


def _reasons(user: User) -> Iterable[str]:
    """Say why a user stays."""
    count = user.conversations.count()
    if count:
        yield f"{user.username} owns {count} conversation{'s' * (count > 1)}: untick “Active”."
    if LogEntry.objects.filter(user=user, action_flag=READ).exists():
        yield f"What {user.username} read of others is on record: untick “Active”."


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, int):
        return f"{value:,}"
    return ", ".join(value) or "none"
