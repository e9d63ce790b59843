"""The presets of the context policy as choices: a name and a sentence, older designs grouped."""

from __future__ import annotations

from collections.abc import Collection

from django.utils.translation import gettext as _

from conversations.context.policy.preset_labels import PRESET_LABELS
from conversations.reductions.words import describe_preset

Choices = list[tuple[str, str]]


def list_preset_choices(usual: str, offered: Collection[object]) -> list[tuple[str, str | Choices]]:
    """Return the choices of a field: first "none", labelled `usual`, then the offered presets."""
    own, classic = Choices(), Choices()
    for name, words in PRESET_LABELS.items():
        if name in offered:
            group = classic if words.is_classic else own
            group.append((name, describe_preset(name)))
    found: list[tuple[str, str | Choices]] = [("", usual), *own]
    return [*found, (_("Classic"), classic)] if classic else found
