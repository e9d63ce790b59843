"""Preferences: appearance and behaviour of pages for one person.

Only the values that differ from the defaults are stored. Stored values that are unknown, or no
longer known, are ignored, so that an old row or a withdrawn model or language cannot break a page.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

THEMES = ("system", "light", "dark")
TEXT_SIZES = ("small", "normal", "large", "larger")
MOTIONS = ("system", "reduced", "full")
#: What Enter does in the message box: send, begin a line (then Ctrl+Enter sends), or begin a line
#: on a touch screen alone, whose keyboard has no Shift+Enter.
ENTERS = ("auto", "send", "line")
THINKINGS = ("closed", "open")
_CHOICES: dict[str, tuple[str, ...]] = {
    "theme": THEMES,
    "text_size": TEXT_SIZES,
    "motion": MOTIONS,
    "enter": ENTERS,
    "thinking": THINKINGS,
}
#: Longest instructions for all chats, in characters.
MOST_INSTRUCTIONS = 4_000
#: Longest text of a preference; longest text of the preferences that may be longer.
_MOST_NAME, _LONGER = 100, {"put_away": 600, "instructions": MOST_INSTRUCTIONS}


@dataclass(frozen=True, slots=True)
class Preferences:
    """A person's choices; "" leaves the model to the site and the language to the browser."""

    theme: str = "system"
    text_size: str = "normal"
    motion: str = "system"
    language: str = ""
    shortcuts: bool = True
    enter: str = "auto"
    model: str = ""
    thinking: str = "closed"
    notifications: bool = False
    #: What the model is told with every call of all the person's chats.
    instructions: str = ""
    #: Dismissed budget notices, as window:percent.
    put_away: str = ""


DEFAULTS = Preferences()
NAMES = tuple(field.name for field in fields(Preferences))


class PreferenceError(ValueError):
    """The value is not valid for the preference."""

    code = "preference"

    def __init__(self, name: str, value: object) -> None:
        super().__init__(f"{value!r} is no value of the preference {name}.")
        self.name = name


def read_preferences(stored: object) -> Preferences:
    """Read stored preferences; an invalid value is the default."""
    found = stored if isinstance(stored, Mapping) else {}
    kept = {name: found[name] for name in NAMES if name in found and _fits(name, found[name])}
    return Preferences(**kept)


def merge_preferences(stored: object, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values to store after these changes; raises PreferenceError."""
    for name, value in changes.items():
        if name not in NAMES or not _fits(name, value):
            raise PreferenceError(name, value)
    values = asdict(read_preferences(stored)) | dict(changes)
    return {name: value for name, value in values.items() if value != getattr(DEFAULTS, name)}


def _fits(name: str, value: object) -> bool:
    if isinstance(getattr(DEFAULTS, name), bool):
        return isinstance(value, bool)
    if name in _CHOICES:
        return value in _CHOICES[name]
    return isinstance(value, str) and len(value) <= _LONGER.get(name, _MOST_NAME)
