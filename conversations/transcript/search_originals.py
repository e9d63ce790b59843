"""Search all originals of a conversation: texts, tool results, tool inputs.

Only the shown path is searched, because whether the model has read private data is judged by that
path. The texts are read here and ranked in a process of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

from conversations.context.view.blocks import SERVER_CALLS, is_server_result, read_result_text
from conversations.context.view.message_shape import write_label
from conversations.context.view.stored_blocks import read_blocks
from conversations.log.tree import build_path_condition
from conversations.models import Conversation, Message
from conversations.transcript.originals import INPUT, read_message_text, write_input
from tools.framework.tool import FoundOriginal
from tools.isolation.isolated_calls import run_isolated
from tools.text.ranking import rank_texts

#: Rows read at a time.
_CHUNK = 100
#: The tool whose results are copies of other originals, so they are left out.
_COPIES = "recall"
#: Weight of tool inputs in the ranking: the model's own text repeats what it has read.
_INPUT_WEIGHT = 0.5


#: The id, a label and the text of an original.
Original: TypeAlias = tuple[str, str, str]


async def search_originals(originals: list[Original], query: str, most: int) -> list[FoundOriginal]:
    """Return the originals that match best, best first; raises IsolationError."""
    texts = [
        (key, f"{label}\n{text}", _INPUT_WEIGHT if key.endswith(INPUT) else 1.0)
        for key, label, text in originals
    ]
    known = {key: (label, len(text)) for key, label, text in originals}
    best = await run_isolated(rank_texts, texts, query, most)
    return [FoundOriginal(key, *known[key], passage) for key, _, _, passage in best]


def read_originals(conversation: Conversation) -> Iterator[Original]:
    """Yield the originals of the shown path, in order."""
    path, labels = build_path_condition("turn", conversation), dict[str, str]()
    messages = Message.objects.filter(path, conversation=conversation).order_by("seq")
    for message in messages.iterator(_CHUNK):
        if message.kind == Message.Kind.PROMPT:
            yield f"msg_{message.seq}", "what the user wrote", read_message_text(message)
            continue
        blocks = read_blocks(message.content)
        if text := "\n\n".join(str(b["text"]) for b in blocks if b["type"] == "text").strip():
            yield f"msg_{message.seq}", "what you wrote", text
        for block in blocks:
            yield from _read_block(block, labels)


def _read_block(block: dict[str, Any], labels: dict[str, str]) -> Iterator[Original]:
    kind = block["type"]
    if kind == "tool_use" or kind in SERVER_CALLS:
        labels[block["id"]] = write_label(block)
        if block["name"] != _COPIES:
            label = f"your input for {labels[block['id']]}"
            yield block["id"] + INPUT, label, write_input(block["input"])
    elif kind == "tool_result" or is_server_result(kind):
        key = block["tool_use_id"]
        label = labels.get(key, "")
        if label.partition(" ")[0] != _COPIES:
            content = block.get("content", "")
            is_own = kind == "tool_result"
            yield key, label, read_result_text(content) if is_own else write_input(content)
