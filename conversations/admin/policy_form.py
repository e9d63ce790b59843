"""A person's context policy as form fields: effective numbers, and what their chats may choose.

An empty number is the site's. The policy is validated by the engine, and against the windows of the
enabled models, because a threshold that no context can reach has no effect.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django import forms
from django.db.models import Max
from django.utils.text import capfirst
from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_noop

from conversations.context.policy.allowed import FIXED, read_allowed
from conversations.context.policy.policy import BOUNDS, POLICY_FIELDS, PRESETS, PolicyError
from conversations.context.translation import mark_recorded
from conversations.models import ApiModel, User
from conversations.reductions.policy import (
    PRESET,
    Number,
    first_valid_policy,
    list_numbers_or_problem,
    policy_of,
    preset_of,
    read_as_set,
    read_model_numbers,
)
from conversations.reductions.words import name_number, name_preset
from conversations.templatetags.recorded import translated
from conversations.web.forms.conversation import (
    build_number_field,
    format_value,
    is_filled,
    parse_value,
)
from conversations.web.forms.presets import list_preset_choices

#: Prefixes of the field names.
OWN, LEAST, MOST, FIX = "policy_", "least_", "most_", "fixed_"
#: The text of the admin log for a number that is not set.
INHERITED, FREE = "inherited", "free"
#: Thresholds on the tokens of a context.
_OF_WINDOW = (
    "input_token_budget", "compaction_threshold_tokens", "max_conversation_tokens",
    "low_water_tokens",
)  # fmt: skip
_UNREACHED = mark_recorded(
    gettext_noop(
        "no model has a window of more than %(most)s tokens, so this is never reached; %(number)s"
        " says never"
    )
)
_WITH_MODEL = mark_recorded(gettext_noop("with %(model)s: %(why)s"))


def is_of_policy(name: str) -> bool:
    """Return whether a form field belongs to the policy."""
    return name.startswith((OWN, LEAST, MOST, FIX))


@dataclass(frozen=True, slots=True)
class Row:
    """One number on the page; fields that do not exist are None."""

    label: str
    help_text: str
    number: Number | None
    own: Any
    least: Any = None
    most: Any = None
    fixed: Any = None

    @property
    def is_changed(self) -> bool:
        """Whether a value is set or invalid, so that the numbers are shown unfolded."""
        fields = [one for one in (self.own, self.least, self.most, self.fixed) if one is not None]
        return any(one.errors or one.value() not in (None, "", False) for one in fields)

    @property
    def value(self) -> str:
        """The label of the chosen preset."""
        return name_preset(self.own.value() or preset_of())


def add_fields(form: forms.BaseForm, user: User) -> None:
    """Add a field for each number and limit, with the stored value."""
    own, limits = _mapping(user.policy), _mapping(user.policy_limits)
    named = {PRESET: own[PRESET]} if PRESET in own else {}
    base = first_valid_policy((named,), ())
    usual = _("as the site (%(preset)s)") % {"preset": name_preset(preset_of())}
    choices = list_preset_choices(usual, PRESETS)
    form.fields[OWN + PRESET] = forms.ChoiceField(
        label=_("When chats are reduced"), required=False, choices=choices
    )
    for name in POLICY_FIELDS:
        form.fields[OWN + name] = build_number_field(name, read_as_set(base, name))
        label = form.fields[OWN + name].label
        if name in BOUNDS:
            for part, word in (
                (LEAST, _("%(number)s, lowest in a chat")),
                (MOST, _("%(number)s, highest in a chat")),
            ):
                form.fields[part + name] = forms.IntegerField(
                    label=word % {"number": label}, required=False
                )
        else:
            form.fields[FIX + name] = forms.BooleanField(
                label=_("%(number)s, fixed for chats") % {"number": label}, required=False
            )
    form.initial.update({OWN + name: format_value(value) for name, value in own.items()})
    for name, data in limits.items():
        if data == FIXED:
            form.initial[FIX + name] = True
        elif isinstance(data, list) and len(data) == 2:
            form.initial[LEAST + name], form.initial[MOST + name] = data


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def validate_policy(form: forms.BaseForm, user: User) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the policy and its limits as stored; errors are added to their fields.

    Numbers that nobody changes are not judged: a model or the site may contradict them by now, and
    an account could not be closed for that.
    """
    policy, limits = dict(_numbers(form)), dict(_limits(form))
    try:
        if policy != user.policy:
            policy_of(policy)
            _demand_reachable(policy)
            _demand_every_model(policy)
    except PolicyError as error:
        _refuse(form, OWN, error)
    try:
        if limits != user.policy_limits:
            read_allowed(limits)
    except PolicyError as error:
        _refuse(form, MOST, error)
    return policy, limits


def _refuse(form: forms.BaseForm, part: str, error: PolicyError) -> None:
    name = part + error.field
    field = name if name in form.fields else OWN + PRESET
    form.add_error(field, capfirst(translated(error.problem)))


def _numbers(form: forms.BaseForm) -> Iterator[tuple[str, Any]]:
    for name in (*POLICY_FIELDS, PRESET):
        value = form.cleaned_data.get(OWN + name)
        if is_filled(value):
            yield name, value if name == PRESET else parse_value(value)


def _limits(form: forms.BaseForm) -> Iterator[tuple[str, Any]]:
    data = form.cleaned_data
    for name in POLICY_FIELDS:
        ends = [data.get(LEAST + name), data.get(MOST + name)]
        if data.get(FIX + name):
            yield name, FIXED
        elif ends != [None, None]:
            yield name, ends


def _demand_reachable(policy: Mapping[str, Any]) -> None:
    models = ApiModel.objects.filter(is_enabled=True)
    window = models.aggregate(most=Max("window"))["most"]
    for name in _OF_WINDOW:
        value = policy.get(name, 0)
        if window and isinstance(value, int) and window < value < BOUNDS[name][1]:
            raise PolicyError(
                name,
                _UNREACHED % {"most": f"{window:,}", "number": f"{BOUNDS[name][1]:,}"},
            )


def _demand_every_model(policy: Mapping[str, Any]) -> None:
    """Raise PolicyError where shares or a model's own thresholds contradict these numbers."""
    for model in ApiModel.objects.filter(is_enabled=True).values_list("pk", flat=True):
        try:
            policy_of(policy, model=read_model_numbers(model))
        except PolicyError as error:
            problem = _WITH_MODEL % {"model": model, "why": error.problem}
            raise PolicyError(error.field, problem) from error


def build_rows(form: forms.BaseForm, user: User) -> list[Row]:
    """Return the rows of the table: the preset, then every number with its effective value."""
    found = {number.name: number for number in list_numbers_or_problem(user)[0]}
    words = _("Where the numbers start that are not set.")
    first = form[OWN + PRESET]
    table = [Row(str(first.label), str(words), None, first)]
    for name in POLICY_FIELDS:
        fields = (part + name for part in (LEAST, MOST, FIX))
        parts = [form[each] if each in form.fields else None for each in fields]
        own = form[OWN + name]
        table.append(Row(name_number(name), str(own.field.help_text), found.get(name), own, *parts))
    return table


def describe_problem(user: User) -> str:
    """Return why the stored policy is invalid; "" when it is valid."""
    if not isinstance(user.policy, dict):
        return str(_("What is stored is no object; the site's numbers cannot be shown."))
    words = list_numbers_or_problem(user)[1]
    said = _("These numbers do not fit the site's: %(why)s")
    return said % {"why": words} if words else ""


def describe_differences(before: object, after: Mapping[str, Any], word: str) -> list[str]:
    """Return what changed, number by number, for the log."""
    old = _mapping(before)
    return [
        f"{name}: {_format_value(old.get(name), word)} → {_format_value(after.get(name), word)}"
        for name in sorted({*old, *after})
        if old.get(name) != after.get(name)
    ]


def _format_value(value: Any, word: str) -> str:
    match value:
        case None:
            return word
        case [least, most] if word == FREE:
            return f"{'any' if least is None else least} to {'any' if most is None else most}"
        case _:
            return str(format_value(value))
