"""Mark the engine's texts for translation; they are translated where they are shown."""

from __future__ import annotations

#: The templates of all sentences that records keep in English.
RECORDED: list[str] = []


def gettext_noop(message: str) -> str:
    """Return the text unchanged; `makemessages` knows the function by its name."""
    return message


def write_count(one: str, many: str, count: int) -> str:
    """Return one of two templates with the count at its place."""
    return (one if count == 1 else many) % {"count": f"{count:,}"}


def mark_recorded(template: str) -> str:
    """Return a template, with places such as %(count)s, by which pages recognise its sentences."""
    RECORDED.append(template)
    return template
