"""The presets as people choose them: a name and a sentence each, the five designs as a group.

The names in `policy.py` are those of settings, of the API and of exports.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from conversations.context.policy.policy import PRESETS
from conversations.context.translation import gettext_noop


@dataclass(frozen=True, slots=True)
class PresetLabels:
    """Name and sentence of a preset; translated where they are shown."""

    label: str
    sentence: str
    #: Whether it imitates an older design, with fixed thresholds.
    is_classic: bool = True


#: In the order in which pages list them.
PRESET_LABELS: dict[str, PresetLabels] = {
    "off": PresetLabels(
        gettext_noop("Keep everything"),
        gettext_noop("nothing is ever left out, until the model can take no more"),
        is_classic=False,
    ),
    "adaptive": PresetLabels(
        gettext_noop("Balanced"),
        gettext_noop("all stays up to 100,000 tokens, then old parts go where that saves money"),
        is_classic=False,
    ),
    "thrifty": PresetLabels(
        gettext_noop("Thrifty"),
        gettext_noop("old parts go as soon as that saves money, and only long ones are summarised"),
        is_classic=False,
    ),
    "classic": PresetLabels(
        gettext_noop("All steps in order"),
        gettext_noop("shortens old tool results, then summarises, then drops"),
    ),
    "tool-budget": PresetLabels(
        gettext_noop("Short tool results"), gettext_noop("shortens old tool results, nothing else")
    ),
    "rebuild": PresetLabels(
        gettext_noop("Summary"), gettext_noop("replaces the middle by a summary")
    ),
    "staged": PresetLabels(
        gettext_noop("Summary in parts"),
        gettext_noop("replaces the middle by a summary, read part by part where it is long"),
    ),
    "gated-trim": PresetLabels(
        gettext_noop("Drop the oldest"), gettext_noop("leaves the oldest turns out")
    ),
    "structured": PresetLabels(
        gettext_noop("Small budget"),
        gettext_noop("stays below 32,000 tokens, with a working memory"),
    ),
    "native": PresetLabels(
        gettext_noop("By the API"), gettext_noop("leaves it to the API where the model offers it")
    ),
}


def check_labels(names: Collection[str]) -> None:
    """Raise ValueError unless each of the presets has its label and no other has."""
    if different := set(names) ^ set(PRESET_LABELS):
        raise ValueError(f"each preset needs its label: {', '.join(sorted(different))}")


check_labels(PRESETS)
