"""Texts about why a reduction was made."""

from __future__ import annotations

import json

from django.utils.translation import gettext as _

from conversations.context.policy.number_labels import NUMBER_LABELS
from conversations.context.policy.preset_labels import PRESET_LABELS
from conversations.context.steps.kinds import KINDS
from conversations.rendering.numbers import dollars, write_number


def name_preset(name: str) -> str:
    """Return what people call a preset; one of an older version by its stored name."""
    return _(PRESET_LABELS[name].label) if name in PRESET_LABELS else name


def describe_preset(name: str) -> str:
    """Return the name of a preset with the sentence that says what it does."""
    words = PRESET_LABELS[name]
    named = {"name": _(words.label), "sentence": _(words.sentence)}
    return _("%(name)s: %(sentence)s") % named


def name_number(name: str) -> str:
    """Return the label of a number of the policy; one of an older version by its stored name."""
    return _(NUMBER_LABELS[name]) if name in NUMBER_LABELS else name.replace("_", " ").capitalize()


def describe_kind(kind: str) -> str:
    """Return what a kind of transformation does, for people."""
    return _(KINDS[kind].words)


def describe_decision(decision: str) -> tuple[tuple[str, str], ...]:
    """Return the figures that decided a reduction, as names and values; () when there are none."""
    if not decision:
        return ()
    found = json.loads(decision)
    reasons = {
        "room": _("it no longer fitted the model"),
        "share": _("a share of the model's window was passed"),
        "cliff": _("the next call would have passed a price step"),
        "cold": _("nothing was in the prompt cache any more, so nothing had to be rewritten"),
        "pays": _("the calls to come pay for the rewriting"),
    }
    saved = _("about %(n)s tokens a call") % {"n": write_number(found["saved_tokens"])}
    if found["why"] == "asked":
        # A person decided; the cost is shown with the payments.
        return ((_("Saves"), saved),) if found["saved_tokens"] else ()
    if not found["saved_each"]:
        return ((_("Decided because"), reasons[found["why"]]), (_("Saves"), saved))
    cost = _("no more than sending this once more")
    if found["cost"]:
        cost = dollars(found["cost"]) + _(
            ", paid back after %(back)s calls; about %(more)s more were expected"
        ) % {
            "back": write_number(found["pays_back_calls"]),
            "more": write_number(found["expected_calls"]),
        }
    return (
        (_("Decided because"), reasons[found["why"]]),
        (_("Saves"), f"{saved}, {dollars(found['saved_each'])}"),
        (_("Costs"), cost),
    )
