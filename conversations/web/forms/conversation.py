"""The form of a conversation's settings, validated as a whole by the engine's rules.

An empty number is inherited, and its field shows the inherited value; errors are shown at their
fields.
"""

from __future__ import annotations

from typing import Any

from django import forms
from django.http import QueryDict
from django.utils.text import capfirst
from django.utils.translation import gettext_lazy as _

from conversations.agent.thinking import choose_effort, find_thinking_facts
from conversations.budgets.cost_centres import list_choices
from conversations.conf import conf
from conversations.context.policy.allowed import Allowed, demand_allowed
from conversations.context.policy.policy import (
    POLICY_FIELDS,
    POLICY_WORDS,
    THRESHOLDS,
    PolicyError,
)
from conversations.context.policy.share import Share, parse_share
from conversations.library.access import list_usable_models
from conversations.models import Conversation
from conversations.reductions.conversation_settings import find_default_effort
from conversations.reductions.model_choice import LEVELS
from conversations.reductions.policy import (
    PRESET,
    allowed_of,
    first_valid_policy,
    inherited_policy,
    list_offered_presets,
    policy_of,
    read_as_set,
    read_model_numbers,
    settle_policy,
)
from conversations.reductions.words import name_number, name_preset
from conversations.rendering.model_names import name_model
from conversations.rendering.numbers import write_number
from conversations.templatetags.recorded import translated
from conversations.web.forms.instructions import InstructionsField
from conversations.web.forms.presets import list_preset_choices

YES_NO = (("yes", _("yes")), ("no", _("no")))


class ConversationForm(forms.Form):
    """The settings of a conversation's next turns; an empty number is inherited."""

    model = forms.ChoiceField(label=_("Model"))
    instructions = InstructionsField(
        label=_("Instructions"),
        help_text=_("Told to the model with every call of this chat."),
    )
    effort = forms.ChoiceField(
        label=_("Effort"),
        required=False,
        help_text=_(
            "How much the model thinks and writes. A model without a level uses its nearest."
        ),
    )
    preset = forms.ChoiceField(
        label=_("When the chat is reduced"),
        required=False,
        help_text=_("What was reduced can be read and sent in full again at any time."),
    )
    cost_centre = forms.ChoiceField(
        label=_("Cost centre"),
        required=False,
        help_text=_(
            "Which one the next messages count for. What was spent before stays where it was."
        ),
    )

    def __init__(self, conversation: Conversation, data: QueryDict | None = None) -> None:
        own = conversation.policy if isinstance(conversation.policy, dict) else {}
        known = {
            "model": conversation.model,
            "instructions": conversation.instructions,
            "effort": conversation.effort,
            "cost_centre": conversation.cost_centre_id or "",
        }
        super().__init__(data, initial=known | {name: format_value(own[name]) for name in own})
        self.owner = conversation.owner
        base, self.allowed = inherited_policy(conversation), allowed_of(self.owner)
        site = first_valid_policy((self.owner.policy,), ()).name
        # A preset that is not offered any more stays until the person chooses another one.
        offered = [*list_offered_presets(), own.get(PRESET)]
        presets = list_preset_choices(
            _("as everywhere (%(name)s)") % {"name": name_preset(site)}, offered
        )
        self.fields["model"] = _build_model_field(conversation)
        self.fields["effort"].choices = list_effort_choices(conversation)  # type: ignore[attr-defined]
        # What was imported may be longer; with it every other setting can still be changed.
        most = max(conf.max_instructions_chars, len(conversation.instructions))
        self.fields["instructions"].most = most  # type: ignore[attr-defined]
        self.fields[PRESET].choices = presets  # type: ignore[attr-defined]
        self._offer_cost_centres()
        for name in POLICY_FIELDS:
            self.fields[name] = build_number_field(name, read_as_set(base, name))
            self.fields[name].help_text = _with_limits(name, self.allowed)
            if self.allowed.is_fixed(name):
                self.fields[name].disabled = True
                self.initial.pop(name, None)
        for field in self.fields.values():
            field.show_hidden_initial = True
        if data is not None:
            self.data = self._merge_changes(data)

    def _merge_changes(self, sent: QueryDict) -> QueryDict:
        """Return the form with what is stored now where it was left as its page showed it.

        So saving a page that was opened earlier does not undo what another tab changed meanwhile.
        """
        merged = sent.copy()
        for name, field in self.fields.items():
            shown, stored = self.add_initial_prefix(name), self.get_initial_for_field(field, name)
            # So the page of a refused form says it, too, where the first page did not.
            value = merged[shown] = "" if stored is None else str(stored)
            if sent.get(name, "") == sent.get(shown):
                merged[name] = value
        return merged

    def _offer_cost_centres(self) -> None:
        """Offer those that take calls; without any there is no field."""
        found = list_choices()
        if not found:
            del self.fields["cost_centre"]
            return
        own = dict(found).get(str(self.owner.cost_centre_id), _("no cost centre"))
        usual = ("", _("as set for your account (%(name)s)") % {"name": own})
        self.fields["cost_centre"].choices = [usual, *found]  # type: ignore[attr-defined]

    @property
    def numbers(self) -> list[Any]:
        """The bound fields of the policy's numbers."""
        return [self[name] for name in POLICY_FIELDS]

    @property
    def has_numbers(self) -> bool:
        """Whether a number is set or has an error, so that the section is shown open."""
        fields = [self[name] for name in POLICY_FIELDS]
        return any(is_filled(field.value()) or field.errors for field in fields)

    @property
    def settings(self) -> dict[str, Any]:
        """The keyword arguments of `change_settings`."""
        given = self.cleaned_data
        policy = {
            name: parse_value(given[name]) for name in POLICY_FIELDS if is_filled(given[name])
        }
        if given[PRESET]:
            policy[PRESET] = given[PRESET]
        named = {name: given[name] for name in ("model", "instructions", "effort")}
        centre = given.get("cost_centre")
        return named | {"policy": policy, "cost_centre": int(centre) if centre else None}

    def clean(self) -> dict[str, Any]:
        """Validate the numbers together, by the rules of the engine."""
        if not self.errors:
            try:
                model = read_model_numbers(self.cleaned_data["model"])
                numbers, own_numbers = self.owner.policy, self.settings["policy"]
                own = settle_policy(numbers, model=model)
                # A chat without numbers of its own is not refused for those of others.
                chosen = policy_of(numbers, own_numbers, model=model) if own_numbers else own
                demand_allowed(chosen, own, self.allowed)
            except PolicyError as error:
                field = error.field if error.field in self.fields else PRESET
                self.add_error(field, capfirst(translated(error.problem)))
        return self.cleaned_data


class ThresholdField(forms.CharField):
    """A number of tokens, or a share of the window such as `60%`."""

    def clean(self, value: Any) -> Any:
        text = super().clean(value)
        if not text:
            return None
        share = parse_share(text)
        if share is not None:
            return share
        if text.endswith("%"):
            raise forms.ValidationError(_("Enter a share from 1% to 100%."))
        return forms.IntegerField().clean(text)


def _build_model_field(conversation: Conversation) -> forms.ChoiceField:
    """Offer the models of the owner, and the present one: it stays until another is chosen.

    Else the browser would choose the first, and saving another setting would change the model.
    """
    present, usable = conversation.model, list_usable_models(conversation.owner_id)
    is_gone = present not in usable
    words = _("%(name)s is not available any more. Choose another model to go on.")
    return forms.ChoiceField(
        label=_("Model"),
        choices=[(one, name_model(one)) for one in (*[present] * is_gone, *usable)],
        help_text=words % {"name": name_model(present)} if is_gone else "",
    )


def list_effort_choices(conversation: Conversation) -> list[tuple[str, Any]]:
    """Return the levels to choose from; first the default, with the level that it resolves to."""
    default = find_default_effort(conversation.owner_id)
    level = choose_effort(conversation.model, default)
    level = level or find_thinking_facts(conversation.model).effort
    usual = _("as everywhere (%(name)s)") % {"name": str(LEVELS[level][0]).lower()}
    named = [(value, f"{name}: {use}") for value, (name, use) in LEVELS.items()]
    return [("", usual), *named]


def _with_limits(name: str, allowed: Allowed) -> str:
    """Return the help text of a number, with the range the owner's account allows."""
    label, limits = str(_(POLICY_WORDS[name])), allowed.limits(name)
    if allowed.is_fixed(name):
        return " ".join((label, str(_("Set for your account."))))
    if name not in allowed.ranges or limits is None:
        return label
    words = {"least": write_number(limits[0]), "most": write_number(limits[1])}
    return " ".join((label, str(_("Your account allows %(least)s to %(most)s.") % words)))


def build_number_field(name: str, value: Any) -> forms.Field:
    """Build the field of a number that shows the inherited `value` while it is empty."""
    help_text = _(POLICY_WORDS[name])
    label = name_number(name)
    if isinstance(value, bool):
        words = _("as before: %(value)s") % {"value": _("yes") if value else _("no")}
        choices = [("", words), *YES_NO]
        return forms.ChoiceField(label=label, required=False, choices=choices, help_text=help_text)
    if name in THRESHOLDS:
        shown = forms.TextInput(attrs={"placeholder": f"{value}", "autocomplete": "off"})
        return ThresholdField(label=label, required=False, widget=shown, help_text=help_text)
    if isinstance(value, int):
        given = forms.NumberInput(attrs={"placeholder": f"{value}", "inputmode": "numeric"})
        return forms.IntegerField(label=label, required=False, widget=given, help_text=help_text)
    text = forms.TextInput(attrs={"placeholder": ", ".join(value), "autocomplete": "off"})
    return forms.CharField(
        label=label, required=False, widget=text, max_length=2_000, help_text=help_text
    )


def is_filled(value: Any) -> bool:
    """Return whether a field was filled in."""
    return value is not None and value != ""


def parse_value(value: Any) -> Any:
    """Convert a cleaned value for the policy."""
    match value:
        case "yes" | "no":
            return value == "yes"
        case Share():
            return str(value)
        case str():
            return [word.strip() for word in value.split(",") if word.strip()]
        case _:
            return value


def format_value(value: Any) -> Any:
    """Convert a stored value for the form."""
    match value:
        case bool():
            return "yes" if value else "no"
        case list():
            return ", ".join(map(str, value))
        case _:
            return value
