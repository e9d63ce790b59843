"""The catalogue: models are switched on and off; a price is added or ended, never changed."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import models
from django.db.models import Q
from django.forms.fields import InvalidJSONInput
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from conversations.admin import csv_import
from conversations.admin.amount_field import AmountField
from conversations.admin.base import ModelFilter, ShownLookups
from conversations.admin.budget_action_forms import OptionalReason
from conversations.budgets.amounts import Unreadable, demand_year
from conversations.budgets.price_book import GRACE, PriceError, find_next_start, withdraw_price
from conversations.context.policy.policy import PolicyError
from conversations.models import ApiModel, ModelPrice
from conversations.models.catalogue import MOST_RATE
from conversations.reductions.policy import demand_thresholds
from conversations.rendering.numbers import dollars
from conversations.templatetags.recorded import translated

if TYPE_CHECKING:
    ModelForm = forms.ModelForm[ModelPrice]
    ApiModelForm = forms.ModelForm[ApiModel]
else:
    ModelForm = ApiModelForm = forms.ModelForm


class ThresholdsField(forms.JSONField):
    """JSON whose numbers and depth Python may refuse to read: an error of the field, too."""

    def to_python(self, value: Any) -> Any:
        try:
            return super().to_python(value)
        except (ValueError, RecursionError) as error:
            raise ValidationError(
                self.error_messages["invalid"], code="invalid", params={"value": str(value)[:100]}
            ) from error

    def bound_data(self, data: Any, initial: Any) -> Any:
        try:
            return super().bound_data(data, initial)
        except (ValueError, RecursionError):
            return InvalidJSONInput(data)


class ModelThresholdsForm(ApiModelForm):
    """A model's own thresholds are valid with the numbers of the site, for its window."""

    def clean_thresholds(self) -> dict[str, Any]:
        given = self.cleaned_data["thresholds"] or {}
        try:
            return demand_thresholds(given, self.instance.window)
        except PolicyError as error:
            raise ValidationError(translated(str(error))) from error


@admin.register(ApiModel)
class ApiModelAdmin(ShownLookups):
    actions = None
    list_display = ("id", "window", "max_output", "thinking", "is_enabled")
    list_filter = ("is_enabled", "thinking")
    search_fields = ("id",)
    readonly_fields = ("id", "window", "max_output", "thinking")
    filter_horizontal = ("groups",)
    show_full_result_count = False
    form = ModelThresholdsForm
    formfield_overrides = {models.JSONField: {"form_class": ThresholdsField}}

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class PriceForm(ModelForm):
    """A new price, or the end of an old one; past bills keep their price."""

    micros_per_million = AmountField(
        label=_("Price per million (USD)"),
        most=MOST_RATE,
        help_text=_("Of a million tokens or searches, such as 2.50."),
    )
    reason = OptionalReason()

    def clean_effective_from(self) -> datetime:
        return _demand_year(self.cleaned_data["effective_from"])

    def clean_effective_to(self) -> datetime | None:
        end = self.cleaned_data["effective_to"]
        return None if end is None else _demand_year(end)

    def clean(self) -> dict[str, Any]:
        super().clean()
        if self.instance._state.adding:
            self._end_before_next()
            _demand_free(self.cleaned_data)
        elif "effective_to" in self.cleaned_data:
            end = _read_end(self.instance, self.cleaned_data["effective_to"])
            self.cleaned_data["effective_to"] = end
        return self.cleaned_data

    def _end_before_next(self) -> None:
        """Let a price without an end end where a scheduled one begins."""
        data = self.cleaned_data
        names = {name: data.get(name) for name in ("model", "kind", "effective_from")}
        if data.get("effective_to") is None and all(names.values()):
            data["effective_to"] = find_next_start(
                model=data["model"].pk,
                kind=data["kind"],
                above_tokens=data.get("above_tokens") or 0,
                after=data["effective_from"],
            )


def _demand_year(moment: datetime) -> datetime:
    try:
        demand_year(moment)
    except Unreadable as error:
        raise ValidationError(f"{error}.") from error
    return moment


def _read_end(price: ModelPrice, end: datetime | None) -> datetime:
    """Return the new end of a price, now for one a little ago; raise ValidationError for others."""
    now = timezone.now()
    if end is None or end < now - GRACE:
        raise ValidationError(
            {"effective_to": _("A price ends now or later: calls were billed with it until now.")}
        )
    end = max(end, now)
    if end <= price.effective_from:
        raise ValidationError({"effective_to": _("A price ends after it begins.")})
    starts = find_next_start(
        model=price.model_id,
        kind=price.kind,
        above_tokens=price.above_tokens,
        after=price.effective_from,
    )
    if starts is not None and end > starts:
        raise ValidationError(
            {"effective_to": _("The next price begins before that: withdraw it first.")}
        )
    return end


def _demand_free(values: dict[str, Any]) -> None:
    """Raise ValidationError for a price that overlaps with another one."""
    start, end = values.get("effective_from"), values.get("effective_to")
    if start is None:
        return
    if end is not None and end <= start:
        raise ValidationError({"effective_to": _("A price ends after it begins.")})
    same = ModelPrice.objects.filter(
        Q(effective_to=None) | Q(effective_to__gt=start),
        model=values.get("model"),
        kind=values.get("kind"),
        above_tokens=values.get("above_tokens") or 0,
    )
    other = same.filter(effective_from__lt=end).first() if end is not None else same.first()
    if other is not None:
        words = _(
            "The price from %(begins)s %(ends)s overlaps this one. Close it first, then add the"
            " new one from its end."
        )
        raise ValidationError(
            words
            % {
                "begins": f"{other.effective_from:%Y-%m-%d %H:%M}",
                "ends": _("until %(when)s") % {"when": f"{other.effective_to:%Y-%m-%d %H:%M}"}
                if other.effective_to
                else _("without end"),
            }
        )


@admin.register(ModelPrice)
class ModelPriceAdmin(ShownLookups):
    actions = None
    form = PriceForm
    list_display = (
        "model", "kind", "above_tokens", "per_million", "effective_from", "effective_to", "source"
    )  # fmt: skip
    list_filter = ("kind", ModelFilter, ("effective_to", admin.EmptyFieldListFilter))
    list_select_related = ("model",)
    search_fields = ("model__id", "source")
    ordering = ("model", "kind", "above_tokens", "-effective_from")
    show_full_result_count = False

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(csv_import.prices)
        return [path("import/", view, name="prices_import"), *super().get_urls()]

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        may = csv_import.may_import(request, csv_import.PRICES)
        files = [(str(_("Take in CSV")), reverse("admin:prices_import"))] if may else []
        return super().changelist_view(request, (extra_context or {}) | {"files": files})

    @admin.display(description=_("per million tokens"), ordering="micros_per_million")
    def per_million(self, row: ModelPrice) -> str:
        return dollars(row.micros_per_million)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        rate = "micros_per_million" if obj is None else "per_million"
        named = ("model", "kind", rate, "above_tokens", "effective_from", "effective_to", "source")
        may = obj is None or self.has_change_permission(request, obj)
        return (*named, "reason") if may else named

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        fixed = {*self.get_fields(request, obj), "micros_per_million"}
        fixed -= {"effective_to", "reason"}
        return () if obj is None else tuple(fixed)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        is_open = obj is None or obj.effective_to is None or obj.effective_to > timezone.now()
        return is_open and super().has_change_permission(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return whether it may be withdrawn: who may end a price may, until it begins."""
        is_scheduled = obj is not None and obj.effective_from > timezone.now()
        return is_scheduled and self.has_change_permission(request, obj)

    def delete_model(self, request: HttpRequest, obj: ModelPrice) -> None:
        try:
            withdraw_price(price_id=obj.pk)
        except PriceError as error:  # it has begun since the page was made
            raise PermissionDenied(str(error)) from error
