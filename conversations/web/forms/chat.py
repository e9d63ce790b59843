"""The forms of the chat: a message, a decision, another version."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from conversations.library.access import list_usable_models
from conversations.models.log import Effort


class IdsField(forms.Field):
    """A list of ids, each in a hidden field with the same name."""

    widget = forms.MultipleHiddenInput

    def to_python(self, value: Any) -> list[uuid.UUID]:
        try:
            return [uuid.UUID(one) for one in value or ()]
        except ValueError as error:
            raise forms.ValidationError(_("A file of this message is not there.")) from error


class PromptForm(forms.Form):
    """A message; a new client id is made where none is sent (then a repeat is another message).

    The text may be empty when there are files; `send_prompt` refuses a message without either.
    """

    text = forms.CharField(strip=False, required=False)
    client_id = forms.UUIDField(required=False)
    attachments = IdsField(required=False)

    def clean_client_id(self) -> uuid.UUID:
        return self.cleaned_data["client_id"] or uuid.uuid4()


class StartForm(PromptForm):
    """The first message, with the model and the effort of the conversation."""

    model = forms.ChoiceField(required=False)
    effort = forms.ChoiceField(required=False, choices=[("", ""), *Effort.choices])
    is_temporary = forms.BooleanField(required=False)
    folder = forms.UUIDField(required=False)

    def __init__(self, owner_id: int, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        choices = [(name, name) for name in list_usable_models(owner_id)]
        self.fields["model"].choices = [("", ""), *choices]  # type: ignore[attr-defined]


class DecisionForm(forms.Form):
    """A person's decision about one call; the digest says which arguments are allowed."""

    approval_id = forms.IntegerField(min_value=1, max_value=2**63 - 1)
    digest = forms.CharField(max_length=80, required=False)
    verdict = forms.ChoiceField(choices=[(name, name) for name in ("once", "chat", "denied")])


class VersionForm(forms.Form):
    """Another version; without a client id it is the next free one."""

    client_id = forms.UUIDField(required=False)


class EditForm(forms.Form):
    """Another wording of a message; `keep` has the positions of the files that stay."""

    text = forms.CharField(strip=False, required=False)
    client_id = forms.UUIDField(required=False)
    keep = forms.TypedMultipleChoiceField(required=False, coerce=int)

    def __init__(self, data: Any, places: Iterable[int]) -> None:
        super().__init__(data)
        self.fields["keep"].choices = [(place, place) for place in places]  # type: ignore[attr-defined]

    def clean_client_id(self) -> uuid.UUID:
        return self.cleaned_data["client_id"] or uuid.uuid4()


def describe_error(form: forms.Form) -> str:
    """Return the first error of a form."""
    return str(next(iter(form.errors.values()))[0])
