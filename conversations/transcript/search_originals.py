"""Search all originals of a conversation: texts, tool results, tool inputs.

Only the shown path is searched, because whether the model has read private data is judged by that
path. The texts are read here and ranked in a process of its own; what the model has in view anyway
ranks lower.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from conversations.context.view import searched_originals
from conversations.context.view.message_shape import Call
from conversations.context.view.searched_originals import (
    INPUT,
    SearchedOriginal,
    list_shown_ids,
    write_context,
)
from conversations.context.view.stored_blocks import read_blocks
from conversations.log.findings import iterate_decodable
from conversations.log.loaded_path import load_path
from conversations.log.tree import build_path_condition
from conversations.models import Conversation, Message
from conversations.transcript.originals import read_message_text
from tools.framework.tool import FoundOriginal
from tools.isolation.isolated_calls import run_isolated
from tools.text.ranking import rank_texts

#: Rows read at a time.
_CHUNK = 100


async def search_originals(
    originals: list[SearchedOriginal], query: str, most: int
) -> list[FoundOriginal]:
    """Return the originals that match best, best first; raises IsolationError."""
    texts = [(one.id, one.searched, one.weight, one.marks) for one in originals]
    known = {one.id: one for one in originals}
    best = await run_isolated(rank_texts, texts, query, most, write_context(originals))
    found = []
    for key, passage, copies in best:
        one, call = known[key], key.removesuffix(INPUT)
        other = call if key != call else call + INPUT
        also = other if other in known else ""
        row = FoundOriginal(key, one.name, len(one.text), passage, one.is_shown, also, copies)
        found.append(row)
    return found


def read_originals(conversation: Conversation) -> Iterator[SearchedOriginal]:
    """Yield the originals of the shown path, in order."""
    shown = list_shown_ids(load_path(conversation).fold())
    for one in _read_path(conversation):
        yield replace(one, is_shown=True) if one.id in shown else one


def _read_path(conversation: Conversation) -> Iterator[SearchedOriginal]:
    path, calls = build_path_condition("turn", conversation), dict[str, Call]()
    messages = Message.objects.filter(path, conversation=conversation).order_by("seq")
    for message in iterate_decodable(messages, _CHUNK):
        blocks = read_blocks(message.content)
        if message.kind == Message.Kind.PROMPT:
            yield searched_originals.read_prompt(message.seq, read_message_text(message), blocks)
        else:
            yield from searched_originals.read_other(message.seq, blocks, calls)
