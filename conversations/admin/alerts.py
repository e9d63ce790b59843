"""Alerts of budgets and the outbox of what they told; secrets are shown once, when they are made.

The URL of a webhook may hold a token of its receiver, so lists show its host alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.widgets import AutocompleteSelectMultiple
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_noop

from conversations.admin.base import Choosing, ReadOnly, is_key, link_list, link_row
from conversations.alerts.alert_messages import name_subject
from conversations.alerts.alert_settings import renew_secret, save_alert
from conversations.alerts.outbox import queue_test, send_again
from conversations.alerts.webhook import check_webhook_url
from conversations.context.translation import mark_recorded
from conversations.models import AlertDelivery, BudgetAlert
from tools.framework.errors import AddressRefusedError
from tools.http.targets import format_host_port, parse_url

if TYPE_CHECKING:
    _Form = forms.ModelForm[BudgetAlert]
else:
    _Form = forms.ModelForm

_SENT_TEST = mark_recorded(gettext_noop("Sent a test."))
_SENT_AGAIN = mark_recorded(gettext_noop("Sent again."))
_NEW_SECRET = mark_recorded(gettext_noop("Made a new secret."))


class PeopleChooser(AutocompleteSelectMultiple):
    """A choice of people by search; a malformed key is shown as not chosen."""

    def optgroups(self, name: str, value: Any, attr: Any = None) -> Any:
        return super().optgroups(name, [each for each in value if is_key(each)], attr)


class BudgetAlertForm(_Form):
    class Meta:
        model = BudgetAlert
        fields = ("name", "budget", "group", "from_percent", "people", "url", "is_active")
        help_texts = {
            "url": _(
                "Each is posted there as JSON, signed with a secret that is shown once. It has"
                " to be https, on the public internet."
            )
        }

    def clean_url(self) -> str:
        url: str = self.cleaned_data["url"].strip()
        if url:
            try:
                check_webhook_url(url)
            except AddressRefusedError as error:
                raise ValidationError(str(error)) from error
        return url

    def clean(self) -> dict[str, Any]:
        super().clean()
        found = self.cleaned_data
        people = list(found.get("people") or ())
        silent = [str(person) for person in people if not person.email]
        if silent:
            self.add_error(
                "people", _("No e-mail address: %(people)s.") % {"people": ", ".join(silent)}
            )
        if not people and not found.get("url") and not {"people", "url"} & self.errors.keys():
            raise ValidationError(_("Name people, or write a webhook URL: nobody would be told."))
        return found


@admin.register(BudgetAlert)
class BudgetAlertAdmin(Choosing):
    actions = None
    form = BudgetAlertForm
    list_display = ("name", "whose", "from_percent", "receivers", "is_active")
    list_filter = ("is_active",)
    list_select_related = ("budget__user", "budget__group", "group")
    search_fields = ("name",)
    autocomplete_fields = ("budget", "group", "people")
    show_full_result_count = False

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).prefetch_related("people")

    def formfield_for_manytomany(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        kwargs.setdefault("widget", PeopleChooser(db_field, self.admin_site))
        return super().formfield_for_manytomany(db_field, request, **kwargs)

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        return [
            path("<path:object_id>/test/", view(self.test), name="alert_test"),
            path("<path:object_id>/secret/", view(self.secret), name="alert_secret"),
            *super().get_urls(),
        ]

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        obj.new_secret = save_alert(
            alert=obj, origin=request.build_absolute_uri("/").removesuffix("/")
        )

    def response_add(
        self, request: HttpRequest, obj: Any, post_url_continue: str | None = None
    ) -> HttpResponse:
        if obj.new_secret:
            return self._show_secret(request, obj, obj.new_secret)
        return super().response_add(request, obj, post_url_continue)

    def response_change(self, request: HttpRequest, obj: Any) -> HttpResponse:
        if obj.new_secret:
            return self._show_secret(request, obj, obj.new_secret)
        return super().response_change(request, obj)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        shown = {
            "outbox": link_list(AlertDelivery, str(_("What was sent")), alert__id__exact=object_id)
        }
        return super().change_view(request, object_id, form_url, shown | (extra_context or {}))

    def test(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Queue a test for every receiver."""
        alert = self._alert(request, object_id)
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        if not alert.is_active:
            self.message_user(request, _("Make the alert active first."), messages.ERROR)
        else:
            count = queue_test(alert=alert)
            self.log_change(request, alert, _SENT_TEST)
            text = _("On their way: %(count)d. Look at what was sent in half a minute.")
            self.message_user(request, text % {"count": count}, messages.SUCCESS)
        return redirect("admin:conversations_budgetalert_change", alert.pk)

    def secret(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Replace the secret of the webhook, and show the new one."""
        alert = self._alert(request, object_id)
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        if not alert.url:
            raise Http404("no webhook")
        made = renew_secret(alert=alert)
        self.log_change(request, alert, _NEW_SECRET)
        return self._show_secret(request, alert, made)

    @admin.display(description=_("whose budgets"), ordering="budget")
    def whose(self, row: BudgetAlert) -> str:
        if row.budget is not None:
            return link_row(row.budget)
        return str(_("all")) if row.group is None else link_row(row.group)

    @admin.display(description=_("receivers"))
    def receivers(self, row: BudgetAlert) -> str:
        names = [str(person) for person in row.people.all()]
        return ", ".join([*names, *([_name_host(row.url)] if row.url else [])])

    def _alert(self, request: HttpRequest, object_id: str) -> BudgetAlert:
        alert: BudgetAlert | None = self.get_object(request, object_id)
        if not self.has_change_permission(request, alert):
            raise PermissionDenied
        if alert is None:
            raise Http404("no such alert")
        return alert

    def _show_secret(self, request: HttpRequest, alert: BudgetAlert, secret: str) -> HttpResponse:
        context = self.admin_site.each_context(request) | {
            "title": _("Secret of %(name)s") % {"name": alert.name},
            "opts": self.opts,
            "words": _(
                "With this secret the receiver checks what is posted. It is not shown again."
            ),
            "link": secret,
            "shown_name": _("The secret"),
            "back": reverse("admin:conversations_budgetalert_change", args=[alert.pk]),
        }
        return TemplateResponse(request, "admin/conversations/link.html", context)


@admin.register(AlertDelivery)
class AlertDeliveryAdmin(ReadOnly):
    actions = ("send_again",)
    list_display = (
        "created_at", "alert", "receiver", "told_of", "state", "attempts", "next_try", "last_error",
    )  # fmt: skip
    list_filter = ("state", "created_at")
    linked_lookups = ("alert__id__exact",)
    list_select_related = (
        "alert", "person", "crossing__window__user", "crossing__window__budget__user",
        "crossing__window__budget__group",
    )  # fmt: skip
    ordering = ("-pk",)
    fields = (
        "public_id", "created_at", "alert", "receiver", "told_of", "state", "attempts",
        "next_try", "sent_at", "last_error",
    )  # fmt: skip

    def has_send_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("conversations.change_budgetalert")

    @admin.action(description=_("Send the chosen again"), permissions=["send"])
    def send_again(self, request: HttpRequest, rows: Any) -> None:
        chosen = list(rows.exclude(state=AlertDelivery.State.SENT))
        count = send_again(rows)
        for row in chosen:
            self.log_change(request, row, _SENT_AGAIN)
        told = _("Tried again: %(count)d. What was sent already is left as it is.")
        messages.success(request, told % {"count": count})

    @admin.display(description=_("receiver"))
    def receiver(self, row: AlertDelivery) -> str:
        if row.person is not None:
            return link_row(row.person)
        return _name_host(row.alert.url) if row.alert and row.alert.url else "–"

    @admin.display(description=_("about"))
    def told_of(self, row: AlertDelivery) -> str:
        if row.crossing is None:
            return str(_("a test"))
        return link_row(row.crossing, f"{row.crossing} of {name_subject(row.crossing)}")

    @admin.display(description=_("next try"), ordering="next_try_at")
    def next_try(self, row: AlertDelivery) -> Any:
        return row.next_try_at if row.state == AlertDelivery.State.WAITING else None


def _name_host(url: str) -> str:
    try:
        return format_host_port(parse_url(url))
    except AddressRefusedError:
        return str(_("a webhook"))
