"""The forms of saved prompts, and what is wrong with a text in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from conversations.models.saved_prompts import COMMAND, MOST_COMMAND, MOST_TITLE
from conversations.rendering.numbers import write_number
from conversations.saved_prompts.saved_prompts import MOST_PROMPTS, MOST_TEXT, Wording
from conversations.saved_prompts.variables import (
    MOST_CHOICES,
    MOST_NAME,
    MOST_VARIABLES,
    Variable,
    VariableError,
    parse_prompt,
)

#: Characters of what a variable is filled in with.
MOST_VALUE = 20_000


def word_refusal(code: str) -> str:
    """Say why a prompt is not stored or not deleted."""
    return {
        "full": _("You have %d prompts, and no more fit. Delete one first.") % MOST_PROMPTS,
        "taken": _("You have a prompt with this command already."),
        "held": _("You are under a legal hold: the prompt stays until it is released."),
    }[code]


def word_import_problem(reason: str | VariableError) -> str:
    """Say why a prompt of a file is not imported."""
    if isinstance(reason, VariableError):
        return word_variable_error(reason)
    return {
        "full": _("more than %d prompts do not fit.") % MOST_PROMPTS,
        "no_prompt": _("this is no prompt."),
        "no_text": _("it has no text."),
        "too_long": _("its text is longer than %s characters.") % write_number(MOST_TEXT),
    }[reason]


def word_variable_error(error: VariableError) -> str:
    """Say what is wrong with a variable, where, and how it is written."""
    found = {"line": error.line, "found": error.found}
    place = _("Line %(line)d, “%(found)s”:") % found
    what = {
        "unclosed": _(
            "two braces open a variable, and nothing closes it in this line. Write \\{{ for two"
            " braces as they are."
        ),
        "name": _(
            "this is no variable. Its name begins with a letter or a digit, as in {{topic}}. Write"
            " \\{{ for two braces as they are."
        ),
        "long_name": _("the name of a variable has at most %d characters.") % MOST_NAME,
        "choices": _(
            "choices are at least two, all different, as in {{tone:formal|friendly}}. A default is"
            " written {{tone=formal}}."
        ),
        "many_choices": _("a variable has at most %d choices.") % MOST_CHOICES,
        "differs": _(
            "this variable has another default or other choices above. Describe it once; elsewhere"
            " its name is enough."
        ),
        "too_many": _("a prompt has at most %d variables.") % MOST_VARIABLES,
    }[error.code]
    return f"{place} {what}"


class PromptTextField(forms.CharField):
    """A text with variables, with its lines ended as they are stored."""

    def __init__(self, **more: Any) -> None:
        widget = forms.Textarea(attrs={"rows": 10, "dir": "auto", "spellcheck": "true"})
        super().__init__(strip=False, widget=widget, **more)

    def to_python(self, value: Any) -> str:
        return str(super().to_python(value)).replace("\r\n", "\n")

    def validate(self, value: str) -> None:
        super().validate(value.strip())
        if len(value) > MOST_TEXT:
            raise forms.ValidationError(
                _("At most %(most)s characters fit; these are %(count)s.")
                % {"most": write_number(MOST_TEXT), "count": write_number(len(value))}
            )
        try:
            parse_prompt(value)
        except VariableError as error:
            raise forms.ValidationError(word_variable_error(error)) from error


class CommandField(forms.CharField):
    """A command, also as it is typed in a message."""

    def to_python(self, value: Any) -> str:
        return str(super().to_python(value)).removeprefix("/")


class PromptForm(forms.Form):
    """A prompt as a person writes it."""

    title = forms.CharField(label=gettext_lazy("Title"), max_length=MOST_TITLE)
    command = CommandField(
        label=gettext_lazy("Command"),
        required=False,
        max_length=MOST_COMMAND,
        validators=[COMMAND],
        help_text=gettext_lazy(
            "What you type after / in an empty message, such as weekly-report. Leave blank to have"
            " it made from the title."
        ),
    )
    text = PromptTextField(label=gettext_lazy("Text"))

    def __init__(self, data: Any = None, initial: dict[str, str] | None = None) -> None:
        super().__init__(data, initial=initial)
        attributes = {"autocapitalize": "none", "autocomplete": "off", "spellcheck": "false"}
        self.fields["command"].widget.attrs |= attributes
        self.fields["title"].widget.attrs |= {"dir": "auto", "autocomplete": "off"}

    def read_wording(self) -> Wording:
        return Wording(**self.cleaned_data)


class VariablesForm(forms.Form):
    """What the variables of a prompt are filled in with: one field each, a choice as a menu."""

    def __init__(self, variables: Sequence[Variable], data: Any = None) -> None:
        super().__init__(data, auto_id="prompt-%s")
        for number, variable in enumerate(variables):
            self.fields[f"v{number}"] = _build_field(variable)

    def read_values(self) -> list[str]:
        """Return the values of a valid form; of one without fields, none."""
        return [self.cleaned_data[name].replace("\r\n", "\n") for name in self.fields]


def _build_field(variable: Variable) -> forms.Field:
    label = variable.name.replace("_", " ")
    if variable.choices:
        return forms.ChoiceField(label=label, choices=[(each, each) for each in variable.choices])
    return forms.CharField(
        label=label,
        required=variable.default is None,
        initial=variable.default,
        strip=False,
        max_length=MOST_VALUE,
        widget=forms.Textarea(attrs={"rows": 1, "dir": "auto"}),
    )
