"""Simulate what the API does by itself: clear old results, and compact on request.

It clears what the engine predicted; other tests compare the prediction with the emulator. If a view
continues the previous one, only its new messages are read.
"""

from __future__ import annotations

from conversations.context.pipeline import CompactionReply, CompactionWanted, SummaryWanted
from conversations.context.steps.api_clearing import CLEARED
from conversations.context.steps.summary_input import fence_text, render_messages
from conversations.context.view import wire
from conversations.context.view.view import Block, Message, View
from conversations.lab.summarizer import Summarizer

_MOST_WORDS = 4_096


class ContextEditing:
    """Context editing of one conversation."""

    def __init__(self) -> None:
        self._of = self._seen = View()
        self._ids: tuple[str, ...] = ()

    def clear_view(self, view: View, ids: tuple[str, ...]) -> View:
        """Return what the model sees of a view when the results of these calls are cleared."""
        if not ids:
            return view
        grows = view.trail is self._of.trail and view.length >= self._of.length
        if not grows or ids != self._ids:
            self._of, self._seen, self._ids = view.head(0), View(), ids
        known = frozenset(ids)
        for message in view.trail.messages[self._of.length : view.length]:
            self._seen = self._seen.append(_clear_results(message, known))
        self._of = view
        # The texts say that they are cleared; the ids say which originals are not shown any more.
        return self._seen.with_cleared(ids)


def _clear_results(message: Message, ids: frozenset[str]) -> Message:
    if not any(result.id in ids for result in message.shape.results):
        return message
    blocks = tuple(
        Block(wire.encode({**block.value, "content": CLEARED}))
        if block.type == "tool_result" and block.id in ids
        else block
        for block in message.blocks
    )
    return Message.of(message.seq, message.kind, blocks)


def simulate_compaction(wanted: CompactionWanted, summarizer: Summarizer) -> CompactionReply | None:
    """Let the summarizer write the API's compaction; None when its call fails."""
    messages = wanted.view.messages
    before = [
        str(block.value.get("content") or "")
        for block in messages[0].blocks
        if block.type == "compaction"
    ]
    parts = [fence_text("previous_summary", text) for text in before]
    parts.append(
        fence_text("transcript", "\n\n".join(one.text for one in render_messages(messages)))
    )
    reply = summarizer(SummaryWanted("", "\n\n".join(parts), _MOST_WORDS))
    if reply is None or reply.stop_reason != "end_turn":
        return None
    value = {"type": "compaction", "content": reply.text, "signature": "simulated"}
    return CompactionReply(wire.encode(value), "compaction")
