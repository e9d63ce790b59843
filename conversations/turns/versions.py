"""Versions of a turn: another answer, another wording, a continuation, and which one is shown.

The log is a tree: a version is a turn whose prompt follows the same entry as the first one's, so
nothing is changed and recorded requests stay valid. The conversation stores which path is shown
(its tip and its last turn). When another path is shown, the previous one stores its end in its last
turn, and showing one of its turns returns there. The path cannot change while an answer is running
on it.
"""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID, uuid5

from django.db.models import Max
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from conversations.agent.finish import can_continue
from conversations.context.view import wire
from conversations.context.view.stored_blocks import read_blocks
from conversations.db import transact
from conversations.log.findings import read_decodable
from conversations.log.page_version import raise_version
from conversations.log.tree import find_newest_below, list_versions, make_version_id
from conversations.models import Conversation, Message, Transformation, Turn
from conversations.turns.prompts import (
    REUSED,
    RUNNING,
    Prompt,
    SendError,
    demand_idle,
    demand_slot,
    encode_text,
    find_sent_turn,
    join_blocks,
    lock_for_send,
    open_turn,
)

#: Characters quoted from the end of a cut answer.
QUOTED = 600
CUT = (
    "Your last answer was cut off. It ended with these words:\n\n{end}\n\n"
    "Go on exactly where it stopped. Do not repeat what is there, and do not mention the cut."
)
_NOTHING = gettext_noop("There is no message here to send again.")
BROKEN_OFF = "You were interrupted. Go on where you stopped."


@transact
def regenerate_answer(*, turn: Turn, client_id: UUID | None = None) -> Turn:
    """Answer a prompt again as a new version; a repeat with the same id returns the same turn."""
    prompt = _find_prompt(turn)
    if not read_blocks(prompt.content):
        raise SendError("empty", _(_NOTHING))
    again = Prompt(
        prompt.content, client_id or make_next_id(turn), retry_of=turn, continues=turn.continues
    )
    return _open_version(turn, prompt, again)


@transact
def edit_prompt(
    *, turn: Turn, text: str, client_id: UUID, keep: Collection[int] | None = None
) -> Turn:
    """Send a reworded prompt as a new version.

    Its other blocks stay: all of them, or those whose positions are in `keep`.
    """
    prompt = _find_prompt(turn)
    if turn.continues_id is not None:
        raise SendError(
            "continued", _("This part only lets an answer go on; there is no text in it.")
        )
    content = join_blocks(_replace_text(prompt.content, encode_text(text), keep))
    return _open_version(turn, prompt, Prompt(content, client_id))


@transact
def continue_turn(*, turn: Turn) -> Turn:
    """Request the rest of the last turn's answer; a repeat returns the same turn."""
    row = lock_for_send(turn.conversation)
    turn.refresh_from_db()
    prompt = Prompt(_write_continuation(turn), uuid5(turn.public_id, "continue"), continues=turn)
    sent = find_sent_turn(row, prompt)
    if sent is not None:
        return sent
    demand_idle(row)
    if turn.number != row.leaf:
        raise SendError("moved", _("The chat went on since then; write what you want next."))
    has_answer = turn.messages.filter(kind="answer").exists()
    if not can_continue(turn.state, turn.finish_reason, has_answer=has_answer):
        raise SendError("whole", _("There is nothing of this answer that could go on."))
    demand_slot(row)
    return open_turn(row, prompt)


@transact
def show_version(*, turn: Turn) -> Turn:
    """Show the newest path through a turn, and return its last turn."""
    row = lock_for_send(turn.conversation)
    end = find_newest_below(row, turn.number)
    leaf = row.turns.get(number=end)
    if leaf.number == row.leaf:
        return leaf
    demand_leavable_path(row)
    _store_path_end(row)
    Conversation.objects.filter(pk=row.pk).update(
        leaf=leaf.number, tip=leaf.tip or find_last_entry(leaf)
    )
    raise_version(row.pk)
    return leaf


def make_next_id(turn: Turn) -> UUID:
    """Return the id of a turn's next version; the same for two simultaneous requests."""
    return make_version_id(
        turn.public_id, len(list_versions(turn.conversation, {turn.parent})[turn.parent])
    )


def demand_leavable_path(row: Conversation, turn: Turn | None = None) -> None:
    """Raise SendError if the shown path cannot be left: while an answer runs or messages are
    queued.

    A new version of its last turn may leave messages queued.
    """
    try:
        demand_idle(row)
    except SendError as error:
        raise SendError(error.code, _(RUNNING)) from error
    is_last = turn is not None and turn.number == row.leaf
    if not is_last and row.queued_prompts.exists():
        raise SendError(
            "queued",
            _(
                "Messages are waiting to be sent at the end of what is shown."
                " Send or remove them first; until then only the last message can be changed."
            ),
        )


def find_last_entry(turn: Turn) -> int:
    """Return the last entry of a turn whose path was never left: the path ends there."""
    kinds = (Message, Transformation)
    rows = (kind._default_manager.filter(turn=turn).aggregate(last=Max("seq")) for kind in kinds)
    return max(row["last"] or 0 for row in rows)


def _open_version(turn: Turn, prompt: Message, new: Prompt) -> Turn:
    row = lock_for_send(turn.conversation)
    sent = find_sent_turn(row, new)
    if sent is not None:
        return sent
    if row.queued_prompts.filter(client_id=new.client_id).exists():
        raise SendError("reused_id", _(REUSED))
    demand_leavable_path(row, turn)
    demand_slot(row)
    _store_path_end(row)
    row.leaf, row.tip = turn.parent, prompt.parent
    row.save(update_fields=["leaf", "tip"])
    return open_turn(row, new)


def _store_path_end(row: Conversation) -> None:
    """Store where the shown path ends, so that it can be shown again."""
    row.turns.filter(number=row.leaf).update(tip=row.tip)


def _find_prompt(turn: Turn) -> Message:
    prompt = read_decodable(turn.messages.filter(kind="prompt").first)
    if prompt is None:
        raise SendError("empty", _(_NOTHING))
    return prompt


def _replace_text(content: str, typed: str, keep: Collection[int] | None) -> list[str]:
    """Replace the first text block by the typed text, and drop the other text blocks.

    What cannot be read is dropped, too: nobody was shown it to keep, and it has no position.
    """
    blocks: list[str] = []
    texts = wire.split(content) if read_blocks(content) else []
    sound = [(text, one) for text in texts for one in read_blocks(f"[{text}]")]
    for place, (text, block) in enumerate(sound):
        if block["type"] != "text":
            if keep is None or place in keep:
                blocks.append(text)
        elif typed:
            blocks.append(typed)
            typed = ""
    return [*blocks, typed] if typed else blocks


def _write_continuation(turn: Turn) -> str:
    last = turn.messages.order_by("-seq").first()
    blocks = read_blocks(last.content) if last is not None and last.kind == "answer" else []
    shown = "\n\n".join(block["text"] for block in blocks if block["type"] == "text").strip()
    text = CUT.format(end=shown[-QUOTED:]) if shown else BROKEN_OFF
    return wire.encode([{"type": "text", "text": text}])
