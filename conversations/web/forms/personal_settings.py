"""The forms of a person's preferences, one for each settings page."""

from __future__ import annotations

from typing import Any

from django import forms
from django.conf import settings
from django.utils.translation import gettext_lazy as _

from conversations.accounts.preferences import MOST_INSTRUCTIONS, Preferences
from conversations.conf import conf
from conversations.library.access import list_usable_models
from conversations.rendering.model_names import name_model
from conversations.web.forms.instructions import InstructionsField


class PreferenceForm(forms.Form):
    """A form whose fields have the names of the preferences they show and set."""

    def __init__(self, present: Preferences, data: Any = None, owner_id: int = 0) -> None:
        names = type(self).base_fields
        super().__init__(data, initial={name: getattr(present, name) for name in names})


class AppearanceForm(PreferenceForm):
    theme = forms.ChoiceField(
        label=_("Colours"),
        widget=forms.RadioSelect,
        choices=[("system", _("As the system")), ("light", _("Light")), ("dark", _("Dark"))],
    )
    text_size = forms.ChoiceField(
        label=_("Text size"),
        widget=forms.RadioSelect,
        choices=[
            ("small", _("Small")),
            ("normal", _("Normal")),
            ("large", _("Large")),
            ("larger", _("Larger")),
        ],
    )
    motion = forms.ChoiceField(
        label=_("Movement"),
        widget=forms.RadioSelect,
        choices=[("system", _("As the system")), ("reduced", _("None")), ("full", _("Always"))],
        help_text=_("Small movements show that something is going on; none of them is needed."),
    )
    language = forms.ChoiceField(label=_("Language"), required=False)

    def __init__(self, present: Preferences, data: Any = None, owner_id: int = 0) -> None:
        super().__init__(present, data, owner_id)
        if len(settings.LANGUAGES) > 1:
            offered = [("", _("As the browser")), *settings.LANGUAGES]
            self.fields["language"].choices = offered  # type: ignore[attr-defined]
        else:
            del self.fields["language"]


class ChatForm(PreferenceForm):
    instructions = InstructionsField(
        label=_("Instructions for all your chats"),
        help_text=_(
            "What the model should know about you, and how to answer. Told to it with every call,"
            " before the instructions of a chat, from your next message on."
        ),
        most=MOST_INSTRUCTIONS,
    )
    enter = forms.ChoiceField(
        label=_("The Enter key"),
        widget=forms.RadioSelect,
        choices=[
            ("auto", _("sends, but begins a line on a touch screen")),
            ("send", _("sends; Shift+Enter begins a line")),
            ("line", _("begins a line; Ctrl+Enter or ⌘+Enter sends")),
        ],
    )
    model = forms.ChoiceField(
        label=_("Model of new chats"),
        required=False,
        help_text=_("A chat that has begun keeps its own; its settings change that."),
    )
    thinking = forms.ChoiceField(
        label=_("Thinking of the model"),
        widget=forms.RadioSelect,
        choices=[("closed", _("folded away")), ("open", _("shown"))],
    )
    notifications = forms.BooleanField(
        label=_("Notify me when an answer is done in another tab"),
        required=False,
        help_text=_("The browser asks for your permission when you switch this on."),
    )

    def __init__(self, present: Preferences, data: Any = None, owner_id: int = 0) -> None:
        super().__init__(present, data, owner_id)
        names = list_usable_models(owner_id)
        usual = _("As the site: %(model)s") % {"model": name_model(conf.model)}
        field = self.fields["model"]
        field.choices = [("", usual), *((one, name_model(one)) for one in names)]  # type: ignore[attr-defined]
        if present.model not in names:
            self.initial["model"] = ""


class ShortcutsForm(PreferenceForm):
    shortcuts = forms.BooleanField(label=_("Use keyboard shortcuts"), required=False)
