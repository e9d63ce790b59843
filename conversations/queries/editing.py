"""A prompt as it is edited: its text, and the other blocks that stay unless they are taken out."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils.translation import gettext as _

from conversations.context import wire
from conversations.models import Turn


@dataclass(frozen=True, slots=True)
class Part:
    """A block that is no text: its place in the prompt, and a name for it."""

    place: int
    name: str


@dataclass(frozen=True, slots=True)
class Draft:
    number: int
    text: str
    parts: tuple[Part, ...]


def draft(turn: Turn) -> Draft | None:
    """Give what there is to edit; None where a person has written nothing."""
    prompt = turn.messages.filter(kind="prompt").first()
    if prompt is None or turn.continues_id is not None:
        return None
    blocks = list(enumerate(wire.decode(prompt.content)))
    names = {"image": _("Image"), "document": _("File")}
    texts = [block["text"] for _place, block in blocks if block["type"] == "text"]
    parts = tuple(
        Part(place, str(block.get("title") or names.get(block["type"], block["type"])))
        for place, block in blocks
        if block["type"] != "text"
    )
    return Draft(turn.number, "\n\n".join(texts), parts)
