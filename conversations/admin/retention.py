"""Retention rules and legal holds.

A rule is saved only after its page has shown what it would take now. A hold and its release are
added and never changed: both are rows of the record.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import QuerySet
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _

from conversations.admin.base import Choosing, ReadOnly, ShownLookups, link_row
from conversations.library.retention import Preview, preview_rules
from conversations.log.legal_holds import HoldError, place_hold, release_hold
from conversations.models import HoldRelease, LegalHold, RetentionRule, User

if TYPE_CHECKING:
    _RuleForm = ModelForm[RetentionRule]
    _HoldForm = ModelForm[LegalHold]
    _ReleaseForm = ModelForm[HoldRelease]
else:
    _RuleForm = _HoldForm = _ReleaseForm = ModelForm


RULE = ("group", "idle_days", "file_days", "then")
#: A hundred years; the day of many more is before the calendar.
MOST_DAYS = 36_500


class RuleForm(_RuleForm):
    """A rule is valid once it is posted with the figures of its own preview."""

    seen = forms.CharField(required=False, widget=forms.HiddenInput, max_length=100)
    preview: Preview | None = None

    class Meta:
        model = RetentionRule
        fields = RULE

    def clean(self) -> dict[str, Any] | None:
        given = super().clean()
        if self.errors or given is None:
            return given
        if given["idle_days"] is None and given["file_days"] is None:
            raise ValidationError(_("Set at least one number of days."))
        rule = RetentionRule(**{name: given[name] for name in RULE})
        found = preview_rules([rule])
        figures = (rule.group_id, rule.idle_days, rule.file_days, rule.then)
        seen = "/".join(map(str, (*figures, found.trashed, found.erased)))
        if given["seen"] != seen and (found.trashed or found.erased):
            self.preview = found
            self.data = {**self.data.dict(), self.add_prefix("seen"): seen}  # type: ignore[attr-defined]
            raise ValidationError(_("Nothing is saved yet: look at what goes, then save again."))
        return given


@admin.register(RetentionRule)
class RetentionRuleAdmin(ShownLookups):
    form = RuleForm
    fields = (*RULE, "seen")
    formfield_overrides = {models.PositiveIntegerField: {"max_value": MOST_DAYS}}
    list_display = ("who", "idle_days", "file_days", "then")
    list_filter = ("then",)
    list_select_related = ("group",)
    search_fields = ("group__name",)
    show_full_result_count = False

    @admin.display(description=_("whose chats"), ordering="group__name")
    def who(self, row: RetentionRule) -> str:
        return str(row.group) if row.group_id else str(_("everybody's"))


class HoldForm(_HoldForm):
    chat = forms.UUIDField(
        required=False,
        label=_("Chat"),
        help_text=(
            _(
                "The id of one chat, from its page here. Leave blank for every chat, the files and"
                " the mail accounts."
            )
        ),
    )

    class Meta:
        model = LegalHold
        fields = ("owner", "reason")
        help_texts = {"reason": _("Stays on record, and is not shown to the person.")}

    def clean(self) -> dict[str, Any] | None:
        given = super().clean()
        owner, chat = self.cleaned_data.get("owner"), self.cleaned_data.get("chat")
        if owner and chat and not owner.conversations.filter(public_id=chat).exists():
            self.add_error("chat", _("There is no such chat, or not of this person."))
        return given


class AddedOnly(ReadOnly):
    """Rows that are added here by a service and never changed."""

    added: tuple[str, ...]

    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Show the page, or take the form; another may have been faster, and then the list says."""
        try:
            return super().changeform_view(request, *args, **kwargs)
        except HoldError as error:
            messages.error(request, error.text)
            return redirect(f"admin:conversations_{self.opts.model_name}_changelist")

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super(ReadOnly, self).has_add_permission(request)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return self.fields if obj else self.added


@admin.register(LegalHold)
class LegalHoldAdmin(AddedOnly, Choosing):
    form = HoldForm
    added = ("owner", "chat", "reason")
    fields = ("person", "conversation", "reason", "by", "created_at", "end", "link", "chain")
    autocomplete_fields = ("owner",)
    list_display = ("created_at", "person", "place", "reason", "by", "end")
    list_filter = ("created_at",)
    list_select_related = ("owner", "actor", "release")
    date_hierarchy = "created_at"
    ordering = ("-pk",)
    search_fields = ("owner__username", "conversation")

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return self.fields if obj else ()

    def save_model(self, request: HttpRequest, obj: LegalHold, form: Any, change: bool) -> None:
        given = form.cleaned_data
        placed = place_hold(
            actor_id=_pk(request), reason=given["reason"], owner_id=given["owner"].pk,
            public_id=given["chat"],
        )  # fmt: skip
        obj.pk, obj.conversation = placed.pk, placed.conversation

    @admin.display(description=_("user"), ordering="owner__username")
    def person(self, row: LegalHold) -> str:
        return link_row(row.owner)

    @admin.display(description=_("chat"), ordering="conversation")
    def place(self, row: LegalHold) -> str:
        return str(row.conversation)[:8] if row.conversation else str(_("every chat"))

    @admin.display(description=_("placed by"), ordering="actor__username")
    def by(self, row: LegalHold) -> str:
        return link_row(row.actor)

    @admin.display(description=_("released"))
    def end(self, row: LegalHold) -> str:
        if hasattr(row, "release"):
            return link_row(row.release, f"{row.release.created_at:%Y-%m-%d}")
        url = reverse("admin:conversations_holdrelease_add")
        return format_html('<a href="{}?hold={}">{}</a>', url, row.pk, _("Release"))


class ReleaseForm(_ReleaseForm):
    class Meta:
        model = HoldRelease
        fields = ("hold", "reason")
        help_texts = {"reason": _("Stays on record.")}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "hold" in self.fields:
            self.fields["hold"].queryset = _list_open()  # type: ignore[attr-defined]
            self.fields["hold"].label_from_instance = _name_hold  # type: ignore[attr-defined]


def _list_open() -> QuerySet[LegalHold]:
    return LegalHold.objects.filter(release=None).select_related("owner").order_by("-pk")


def _name_hold(hold: LegalHold) -> str:
    place = str(_("every chat"))
    if hold.conversation:
        place = _("chat %(id)s") % {"id": str(hold.conversation)[:8]}
    return _("%(owner)s: %(place)s, since %(day)s") % {
        "owner": hold.owner, "place": place, "day": f"{hold.created_at:%Y-%m-%d}"
    }  # fmt: skip


@admin.register(HoldRelease)
class HoldReleaseAdmin(AddedOnly):
    form = ReleaseForm
    added = ("hold", "reason")
    fields = ("of", "reason", "by", "created_at", "link", "chain")
    list_display = ("created_at", "of", "reason", "by")
    list_filter = ("created_at",)
    list_select_related = ("hold__owner", "actor")
    date_hierarchy = "created_at"
    ordering = ("-pk",)
    search_fields = ("hold__owner__username",)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return self.fields if obj else ()

    def save_model(self, request: HttpRequest, obj: HoldRelease, form: Any, change: bool) -> None:
        given = form.cleaned_data
        done = release_hold(hold_id=given["hold"].pk, actor_id=_pk(request), reason=given["reason"])
        obj.pk = done.pk

    @admin.display(description=_("hold"), ordering="hold")
    def of(self, row: HoldRelease) -> str:
        return link_row(row.hold, _name_hold(row.hold))

    @admin.display(description=_("released by"), ordering="actor__username")
    def by(self, row: HoldRelease) -> str:
        return link_row(row.actor)


def _pk(request: HttpRequest) -> int:
    assert isinstance(request.user, User)  # noqa: S101 - it is the admin
    return request.user.pk
