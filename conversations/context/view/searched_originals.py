"""What `recall` searches: each original of a conversation with its id, a label and its text.

Prompts and the texts of answers are originals by the number of their message, results by the id of
their call, and inputs of calls by that id with a suffix. Results of `recall` itself are copies of
other originals, so they are left out. What the model has in view anyway ranks after what it has
not: an agent searches for what it no longer sees, and the calls it just made have the words of its
query as well. Where a query says little, what was said last says what it is about.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from conversations.context.view import wire
from conversations.context.view.blocks import SERVER_CALLS, is_server_result, read_result_text
from conversations.context.view.message_shape import Call, read_call
from conversations.context.view.server_results import read_server_text
from conversations.context.view.view import Message, View

#: Suffix of a call's id for the input of the call.
INPUT = "/input"
#: The tool whose results are copies of other originals.
_COPIES = "recall"
#: Weights of the model's own words in the ranking: they repeat what it has read, its texts more
#: than the inputs of its calls.
_INPUT_WEIGHT, _ANSWER_WEIGHT = 0.7, 0.5
#: Factor of the weight of an original that is in view as a whole.
SHOWN_WEIGHT = 0.5
_ANSWER, _PROMPT = "what you wrote", "what the user wrote"
#: Characters of an input or a text that are a search's context: half from each end, since what is
#: asked stands before or behind what was pasted.
_CONTEXT = 300

#: Characters from which two equal texts are the same original, not a short word like "done".
_SAME = 200


@dataclass(frozen=True, slots=True)
class SearchedOriginal:
    """An original that can be found, by the words of its label and its text.

    `is_shown`: the model has it in view as a whole. `typed`: of a prompt, its text without that of
    its files, which stands before it. `others` are the other short inputs of its call, which tell
    originals with the same label apart; not searched, since the input of the call has them.
    """

    id: str
    label: str
    text: str
    is_shown: bool = False
    typed: str = ""
    others: str = ""

    @property
    def name(self) -> str:
        return f"{self.label} {self.others}".strip()

    @property
    def searched(self) -> str:
        return f"{self.label}\n{self.text}"

    @property
    def marks(self) -> tuple[str | int, ...]:
        """The call it belongs to, and its text if long; originals that share one are one entry."""
        call = self.id.removesuffix(INPUT)
        return (call, hash(self.text)) if len(self.text) >= _SAME else (call,)

    @property
    def weight(self) -> float:
        factor = SHOWN_WEIGHT if self.is_shown else 1.0
        if self.id.endswith(INPUT):
            return factor * _INPUT_WEIGHT
        return factor * (_ANSWER_WEIGHT if self.label == _ANSWER else 1.0)


def write_context(originals: Sequence[SearchedOriginal]) -> str:
    """Write what was said last, newest first: the last answer with inputs of calls, or prompt."""
    said: list[str] = []
    for one in reversed(originals):
        if one.id.endswith(INPUT) or one.label in {_ANSWER, _PROMPT}:
            said.append(_read_ends(one.typed or one.text))
        elif said:
            break
        if one.label == _PROMPT:
            break
    return "\n".join(said)


def _read_ends(text: str) -> str:
    half = _CONTEXT // 2
    return text if len(text) <= _CONTEXT else f"{text[:half]}\n{text[-half:]}"


def list_shown_ids(view: View) -> frozenset[str]:
    """Return the ids of the originals that a view shows as a whole."""
    shown = view.fold_cached("shown originals", set[str], _read_shown)
    return frozenset(shown).difference(view.cleared)


def _read_shown(found: set[str], message: Message) -> None:
    for block in message.blocks:
        kind = block.type
        if block.by:
            continue
        if kind == "text":
            found.add(f"msg_{message.seq}")
        elif kind == "tool_use" or kind in SERVER_CALLS:
            found.add(block.id + INPUT)
        elif kind == "tool_result" or is_server_result(kind):
            found.add(str(block.value["tool_use_id"]))


def read_prompt(seq: int, text: str, blocks: Iterable[dict[str, Any]]) -> SearchedOriginal:
    """Return a prompt, of its text with that of its files and of its blocks."""
    typed = "\n\n".join(str(block["text"]) for block in blocks if block["type"] == "text")
    return SearchedOriginal(f"msg_{seq}", _PROMPT, text, typed=typed)


def read_other(
    seq: int, blocks: Iterable[dict[str, Any]], calls: dict[str, Call]
) -> Iterator[SearchedOriginal]:
    """Yield the originals of an answer, or of results; `calls` remembers those by id."""
    listed = list(blocks)
    if text := "\n\n".join(str(b["text"]) for b in listed if b["type"] == "text").strip():
        yield SearchedOriginal(f"msg_{seq}", _ANSWER, text)
    for block in listed:
        yield from _read_block(block, calls)


def _read_block(block: dict[str, Any], calls: dict[str, Call]) -> Iterator[SearchedOriginal]:
    kind = block["type"]
    # A damaged call of the API's own tools may lack its id, by which alone it could be read.
    if (kind == "tool_use" or kind in SERVER_CALLS) and isinstance(block.get("id"), str):
        call = calls[block["id"]] = read_call(block)
        if block.get("name") != _COPIES and "input" in block:
            label, text = f"your input for {call.label}", write_input(block["input"])
            yield SearchedOriginal(call.id + INPUT, label, text, others=call.others)
    elif kind == "tool_result" or is_server_result(kind):
        key = block["tool_use_id"]
        call = calls.get(key, Call(key, "", ""))
        if call.name != _COPIES:
            yield SearchedOriginal(key, call.label, read_result(block), others=call.others)


def read_result(block: dict[str, Any]) -> str:
    """Return the text of a result, of a tool of ours or of the API's own."""
    if block["type"] == "tool_result":
        return read_result_text(block.get("content", ""))
    return read_server_text(block.get("content"))


def write_input(tool_input: Any) -> str:
    """Write an input as a person would read it: every text as it is, other values as JSON."""
    if not isinstance(tool_input, dict):
        return _write_value(tool_input)
    return "\n".join(
        f"{name}: {value if isinstance(value, str) else _write_value(value)}"
        for name, value in tool_input.items()
    )


def _write_value(value: Any) -> str:
    """Write a value like JSON, but without escapes, which would hide words from a search."""
    match value:
        case str():
            return f'"{value}"'
        case list():
            return f"[{','.join(map(_write_value, value))}]"
        case dict():
            pairs = (f"{_write_value(name)}:{_write_value(item)}" for name, item in value.items())
            return f"{{{','.join(pairs)}}}"
        case _:
            return wire.encode(value)
