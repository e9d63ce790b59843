"""Forms of rows that several members of staff change: each saves only what its person changed.

A page may be older than its row. So every field sends, hidden beside it, the value that the page
showed. A field that comes back as it was shown keeps the row's present value. One that was changed
on the page and, to another value, in the row is refused. A field that comes without what was shown,
as from a script, is one that was shown as the row is now.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django import forms
from django.core.exceptions import ValidationError
from django.forms.utils import to_current_timezone
from django.utils.translation import gettext_lazy as _

if TYPE_CHECKING:
    _Form = forms.ModelForm[Any]
else:
    _Form = forms.ModelForm


class _Keys(forms.HiddenInput):
    """The keys of the chosen rows in one input, which is sent also when none is chosen."""

    def format_value(self, value: Iterable[Any] | None) -> str:
        return ",".join(map(str, value or ()))

    def value_from_datadict(self, data: Any, files: Any, name: str) -> list[str]:
        return [key for key in data.get(name, "").split(",") if key]


class _Moment(forms.HiddenInput):
    """The day and the time of a moment in one input: Django keeps only one that is shown again."""

    def format_value(self, value: datetime | list[str] | None) -> str:
        if isinstance(value, datetime):
            return f"{to_current_timezone(value):%Y-%m-%d %H:%M:%S}"
        return " ".join(value or ())

    def value_from_datadict(self, data: Any, files: Any, name: str) -> list[str]:
        day, _space, time = data.get(name, "").partition(" ")
        return [day, time]


class _ConcurrentForm(_Form):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance._state.adding:
            return
        for name, field in self.fields.items():
            if isinstance(field, forms.ModelMultipleChoiceField):
                field.hidden_widget = _Keys
            elif isinstance(field, forms.SplitDateTimeField):
                field.hidden_widget = _Moment
            is_sent = not self.is_bound or self.add_initial_prefix(name) in self.data
            field.show_hidden_initial = is_sent and not field.disabled

    def full_clean(self) -> None:
        shown = [name for name, field in self.fields.items() if field.show_hidden_initial]
        changed = [name for name in shown if self.is_bound and self._is_changed(name)]
        kept = [self.fields[name] for name in shown if name not in changed]
        # A disabled field has the value of the row, whatever was sent.
        for field in kept:
            field.disabled = True
        super().full_clean()
        for field in kept:
            field.disabled = False
        for name in filter(self._is_in_conflict, changed):
            self.add_error(
                name, _("Somebody has changed this since the page was opened. Open it again.")
            )

    def _read_shown(self, name: str) -> Any:
        widget, place = self.fields[name].hidden_widget(), self.add_initial_prefix(name)
        return widget.value_from_datadict(self.data, self.files, place)

    def _is_changed(self, name: str) -> bool:
        return _differ(self.fields[name], self._read_shown(name), self[name].data)

    def _is_in_conflict(self, name: str) -> bool:
        """Return whether the row has neither what was shown nor what was sent."""
        field, bound = self.fields[name], self[name]
        present = field.prepare_value(bound.initial)
        if isinstance(field, forms.MultiValueField):
            present = field.widget.decompress(present)
        return all(_differ(field, one, present) for one in (self._read_shown(name), bound.data))


def _differ(field: forms.Field, one: Any, other: Any) -> bool:
    """Return whether two values differ that a form sends."""
    try:
        return field.has_changed(field.to_python(one), other)
    except ValidationError:
        return True


def keep_concurrent_edits(form: type[_Form]) -> type[_Form]:
    """Return the form of a row as one that saves only what its person changed."""
    return type(form.__name__, (_ConcurrentForm, form), {})
