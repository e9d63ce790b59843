"""What a person can edit of a prompt: its text, and which of its files stay."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils.translation import gettext as _

from conversations.context.view.stored_blocks import read_blocks
from conversations.log.findings import read_decodable
from conversations.models import Turn


@dataclass(frozen=True, slots=True)
class PromptPart:
    """A block of the prompt that is not text: its position and its name for people."""

    place: int
    name: str


@dataclass(frozen=True, slots=True)
class EditablePrompt:
    number: int
    text: str
    parts: tuple[PromptPart, ...]


def read_editable_prompt(turn: Turn) -> EditablePrompt | None:
    """Return the editable parts of a turn's prompt; None where no person wrote the prompt."""
    prompt = read_decodable(turn.messages.filter(kind="prompt").first)
    if prompt is None or turn.continues_id is not None:
        return None
    blocks = list(enumerate(read_blocks(prompt.content)))
    names = {"image": _("Image"), "document": _("File")}
    texts = [block["text"] for _place, block in blocks if block["type"] == "text"]
    parts = tuple(
        PromptPart(place, str(block.get("title") or names.get(block["type"], block["type"])))
        for place, block in blocks
        if block["type"] != "text"
    )
    return EditablePrompt(turn.number, "\n\n".join(texts), parts)
