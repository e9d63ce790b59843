"""The form of a link to a chat: who may open it, what it shows, until when."""

from __future__ import annotations

from datetime import datetime, time, timedelta
from typing import Any

from django import forms
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from conversations.library.shared_links import LinkTerms, OwnLink, list_audiences
from conversations.models import SharedLink

#: Days that a link works, as they are offered, and the one that is chosen at first.
DAYS, USUAL = ("1", "7", "30"), "30"
#: A later day is a mistyped one.
MOST_DAYS = 3_650


class ShareForm(forms.Form):
    audience = forms.ChoiceField(label=_("Who may open it"), widget=forms.RadioSelect)
    ends = forms.ChoiceField(label=_("How long it works"))
    day = forms.DateField(
        label=_("Last day, if you choose one"),
        required=False,
        widget=forms.DateInput(format="%Y-%m-%d", attrs={"type": "date"}),
        input_formats=["%Y-%m-%d"],
    )
    with_tools = forms.BooleanField(
        label=_("With tool calls and their results"),
        required=False,
        help_text=_("Answers may repeat what a tool returned, with or without this."),
    )
    is_renewed = forms.BooleanField(label=_("With what was said since"), required=False)

    def __init__(self, data: Any = None, *, link: OwnLink | None, has_later: bool) -> None:
        super().__init__(data, initial={"ends": USUAL, **_read_terms(link)})
        offered, fields = list_audiences(), self.fields
        words = {
            SharedLink.Audience.PEOPLE: _("Whoever is logged in here"),
            SharedLink.Audience.PUBLIC: _("Anybody who has the link"),
        }
        choices = [(name, words[SharedLink.Audience(name)]) for name in offered]
        fields["audience"].choices = choices  # type: ignore[attr-defined]
        if not data and "audience" not in self.initial:
            self.initial["audience"] = offered[0] if offered else ""
        fields["ends"].choices = _list_ends(link)  # type: ignore[attr-defined]
        if not has_later:
            del fields["is_renewed"]

    def clean(self) -> dict[str, Any]:
        found = super().clean() or {}
        if found.get("ends") == "day" and not self.has_error("day"):
            days = (found["day"] - timezone.localdate()).days if found.get("day") else -1
            if not 0 <= days <= MOST_DAYS:
                self.add_error("day", _("Choose a day from today on, within ten years."))
        return found

    def read_terms(self, link: OwnLink | None) -> LinkTerms:
        """Return what was chosen; the form is valid."""
        found = self.cleaned_data
        return LinkTerms(found["audience"], found["with_tools"], _find_end(found, link))


def _read_terms(link: OwnLink | None) -> dict[str, Any]:
    if link is None:
        return {}
    return {
        "audience": link.audience,
        "with_tools": link.with_tools,
        "ends": "as_is",
    }


def _list_ends(link: OwnLink | None) -> list[tuple[str, Any]]:
    kept = [] if link is None else [("as_is", _("As it is"))]
    return [
        *kept,
        ("1", _("1 day")),
        ("7", _("7 days")),
        ("30", _("30 days")),
        ("day", _("Until a day that I choose")),
        ("never", _("Until I revoke it")),
    ]


def _find_end(found: dict[str, Any], link: OwnLink | None) -> datetime | None:
    match found["ends"]:
        case "as_is" if link is not None:
            return link.expires_at
        case "day":
            # Where its last hour is shown twice, the day ends with the second one.
            return timezone.make_aware(datetime.combine(found["day"], time.max.replace(fold=1)))
        case days if days in DAYS:
            return timezone.now() + timedelta(days=int(days))
        case _:
            return None
