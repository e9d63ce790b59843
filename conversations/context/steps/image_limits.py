"""Replace images by texts where a request has more of them than the API takes.

A model takes a limited number of images in a request, and only a few if one of them is large
(`tokens/media.py`). Images of tools go first, the oldest first, then those in pinned and verbatim
results; of those that were sent already several go at once, so that the next image does not break
the prompt cache again. Images that people attached go last, and no more of them than must. A text
with the id for recall stands in the place of each.

It is a repair: without it the request is refused, so it runs under every policy and cannot be
vetoed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from conversations.context.errors import RuleError
from conversations.context.policy.limits import LOW_WATER
from conversations.context.policy.policy import Policy
from conversations.context.steps.recall_list import message_id
from conversations.context.steps.repair_blocks import BY
from conversations.context.steps.tool_handling import find_untouchable
from conversations.context.tokens import media
from conversations.context.tokens.media_words import describe_block
from conversations.context.translation import gettext_noop, mark_recorded, write_count
from conversations.context.view import wire
from conversations.context.view.edits import (
    SpliceBlocks,
    Transformation,
    Trigger,
    build_transformation,
)
from conversations.context.view.message_shape import Image
from conversations.context.view.view import Block, Message, View

_IMAGES = (
    mark_recorded(gettext_noop("%(count)s image")),
    mark_recorded(gettext_noop("%(count)s images")),
)
_MANY = mark_recorded(
    gettext_noop(
        "Left out %(what)s, which you can still see here: the model takes at most %(most)s in a"
        " request"
    )
)
_LARGE = mark_recorded(
    gettext_noop(
        "Left out %(what)s, which you can still see here: of more than %(number)s in a request"
        " none may have a side of more than %(most)s pixels"
    )
)
#: The first rank of images that people attached.
_ATTACHED = 2
_Found = tuple[int, Image]


@dataclass(frozen=True, slots=True)
class _Candidate:
    """An image of message `seq`; the lowest `rank` is replaced first.

    `is_spare`: it was sent already and comes from a tool, so it goes also to make spare room.
    """

    seq: int
    image: Image
    rank: int
    is_spare: bool


def replace_excess_images(view: View, window: int, policy: Policy) -> Transformation | None:
    """Replace images until a request takes the others; None if it takes all."""
    found = view.fold_cached("images", list[_Found], _read_images)
    if len(found) <= media.FEW_IMAGES:
        return None
    rows = _rank_images(view, found, policy)
    most = _find_most(rows, window)
    if len(rows) <= most:
        return None
    chosen = _choose_images(rows, window)
    trigger = Trigger(len(rows), most, "counted")
    note = _write_note(len(chosen), most)
    change = build_transformation(view, BY, trigger, _list_edits(view, chosen), note)
    detail = f"{len(rows)} images, at most {most} are allowed"
    return replace(change, reason=str(RuleError("images", "messages", detail)))


def _read_images(found: list[_Found], message: Message) -> None:
    found += [(message.seq, image) for image in message.shape.images]


def _rank_images(view: View, found: list[_Found], policy: Policy) -> list[_Candidate]:
    """Return the images in the order in which they are replaced."""
    stays = find_untouchable(view, policy) | policy.pins
    answers = (message.seq for message in reversed(view.messages) if message.kind == "answer")
    last = next(answers, 0)
    rows = []
    for seq, image in found:
        is_pinned = (image.result or seq) in stays
        rank = is_pinned + (0 if image.result else _ATTACHED)
        rows.append(_Candidate(seq, image, rank, rank < _ATTACHED and seq < last))
    return sorted(rows, key=lambda row: row.rank)


def _find_most(rows: list[_Candidate], window: int) -> int:
    """Return how many images a request takes that has these."""
    if any(row.image.is_large for row in rows):
        return media.FEW_IMAGES
    return media.find_most_media(window)


def _choose_images(rows: list[_Candidate], window: int) -> list[_Candidate]:
    """Return as many of the first as must go, and more of those that make spare room."""
    count = 1
    while not _is_enough(rows[count:], window):
        count += 1
    return rows[:count]


def _is_enough(left: list[_Candidate], window: int) -> bool:
    """Return whether these images may stay; the first of them would go next."""
    most = _find_most(left, window)
    if left[0].is_spare:
        others = sum(row.rank > left[0].rank for row in left)
        most -= max(0, most - others) * (100 - LOW_WATER) // 100
    return len(left) <= most


def _list_edits(view: View, chosen: list[_Candidate]) -> Iterator[SpliceBlocks]:
    """Yield an edit for each block that has chosen images."""
    messages = {message.seq: message for message in view.messages}
    parts: dict[tuple[int, int], set[int]] = {}
    for row in chosen:
        parts.setdefault((row.seq, row.image.at), set()).add(row.image.part)
    for (seq, at), gone in parts.items():
        block = messages[seq].blocks[at]
        new = _write_text(block.value, message_id(seq))
        if block.type == "tool_result":
            new = {**block.value, "content": _replace_parts(block, gone)}
        yield SpliceBlocks(seq, at, 1, (wire.encode(new),))


def _replace_parts(result: Block, gone: set[int]) -> list[dict[str, object]]:
    return [
        _write_text(part, result.id) if at in gone else part
        for at, part in enumerate(result.value["content"])
    ]


def _write_text(value: dict[str, object], recall: str) -> dict[str, object]:
    """Write what stood there and how to find it."""
    what = describe_block(value).removesuffix("]")
    words = f'{what}, left out: too many images for a request; recall "{recall}" for the original]'
    return {"type": "text", "text": words}


def _write_note(count: int, most: int) -> str:
    what = write_count(*_IMAGES, count)
    if most == media.FEW_IMAGES:
        side = f"{media.MOST_SIDE_OF_MANY:,}"
        return _LARGE % {"what": what, "number": f"{most:,}", "most": side}
    return _MANY % {"what": what, "most": f"{most:,}"}
