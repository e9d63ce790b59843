"""The present state of an original: sent in full, shortened or not at all, and whether pinned."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils.translation import gettext as _

from conversations.context.steps.kinds import OURS
from conversations.context.steps.pinned import find_originals, find_pins
from conversations.context.view.view import THINKING, Message
from conversations.log.path import fold_path, read_path
from conversations.models import Conversation
from conversations.reductions.pins import list_pins
from conversations.reductions.shapes import PinState


@dataclass(frozen=True, slots=True)
class OriginalState:
    keep: PinState
    #: Whether the model now gets less than the original.
    is_reduced: bool
    text: str


def read_original_state(conversation: Conversation, id: str) -> OriginalState | None:
    """Return the state of an original; None when the shown path holds nothing with that id."""
    entries = read_path(conversation)
    log = [entry for entry in entries if isinstance(entry, Message)]
    (pin,) = find_pins(log, [id])
    if pin is None:
        return None
    view = fold_path(entries)
    present = {message.seq: message for message in view.messages}
    wanted = find_originals(view, log, [pin])
    keep = PinState(id, pin in list_pins(conversation))
    if any(message.seq not in present for message in wanted):
        return OriginalState(keep, is_reduced=True, text=_("not sent to the model any more"))
    if any(_texts_of(message) != _texts_of(present[message.seq]) for message in wanted):
        return OriginalState(keep, is_reduced=True, text=_("sent to the model shortened"))
    return OriginalState(keep, is_reduced=False, text=_("sent to the model in full"))


def _texts_of(message: Message) -> list[str]:
    own = (block for block in message.blocks if block.by not in OURS)
    return [block.text for block in own if block.type not in THINKING]
