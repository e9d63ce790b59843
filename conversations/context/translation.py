"""Mark the engine's texts for translation; they are translated where they are shown."""

from __future__ import annotations


def gettext_noop(message: str) -> str:
    """Return the text unchanged; `makemessages` knows the function by its name."""
    return message
