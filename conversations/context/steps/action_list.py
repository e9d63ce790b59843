"""The record of actions, kept in view: what the agent did in messages that were removed.

Files written, mails sent, commands run, hosts contacted, approvals and denials by people, and their
answers to questions: one line each, made from the calls themselves and never from a summary.
Actions with the same words share a line with their count, at the position of the newest. The record
is bounded: the newest lines stay, and a last line counts the older ones by their first word.

Each tool has a template for what its calls did (`Policy.actions`); read-only tools have an empty
one. A call of a tool without a template counts as an action if its result is short, like a
confirmation; the recall list has the other calls of such tools.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from conversations.context.policy.policy import Policy
from conversations.context.steps.action_words import describe_call, describe_reply
from conversations.context.steps.recall_list import SHORT_RESULT, message_id
from conversations.context.view.blocks import SERVER_CALLS
from conversations.context.view.message_shape import Result
from conversations.context.view.server_results import read_server_results
from conversations.context.view.view import Block, Message, View

HEADER = "Done earlier, newest last; recall an id for its input:"
#: Kinds of transformations that write a record into a message other than the first.
_CARRIERS = ("rounds", "trim", "repair")
#: Suffix of the id of a message or call: what the model wrote into its calls.
INPUT = "/input"
#: Most distinct first words in the last line, and its length in characters.
_MOST_COUNTED, _COUNTED = 5, 180
_FAILED = "failed: "
#: Prefix of a line, by a person's decision on the call.
_DECIDED = {
    "denied": "not allowed by the user: ",
    "expired": "not allowed in time: ",
    "chat": "allowed by the user for this whole chat: ",
}
_TIMES = re.compile(r" \((\d[\d,]*) times\)$")
_LINE = re.compile(rf'"(msg_\d+(?:/input)?)": (.*?)(?:{_TIMES.pattern})?')
_OLDER = re.compile(r"\(older ones: (.*); recall with a query finds them\)")
#: A first word, of which so many characters are written, with its count.
_WORD = 20
_COUNT = re.compile(rf"(\S{{1,{_WORD}}}) (\d[\d,]{{0,19}})(?:, |$)")


@dataclass(frozen=True, slots=True)
class Action:
    """Something done, once or repeatedly with the same words; `id` recalls the newest."""

    id: str
    words: str
    count: int = 1

    @property
    def line(self) -> str:
        # Words that end like a count are followed by their count, so that none is read from them.
        is_counted = self.count > 1 or _TIMES.search(self.words)
        times = f" ({self.count:,} times)" if is_counted else ""
        return f'"{self.id}": {self.words}{times}'


@dataclass(slots=True)
class ActionList:
    """Actions, oldest first, and the counts of those before them by their first words."""

    actions: list[Action] = field(default_factory=list)
    older: Counter[str] = field(default_factory=Counter)


def collect_actions(
    view: View, messages: Iterable[Message], blocks: Iterable[Block], policy: Policy
) -> ActionList:
    """Return the actions in these messages of the view, after those listed in these blocks."""
    found = read_actions(blocks)
    before = _find_questions(view)
    results = view.fold_cached("results", dict[str, Result], _read_results)
    new: list[Action] = []
    for message in messages:
        # The lists of the first message are in `blocks`, except that of its working memory.
        carriers = _CARRIERS[:1] if message is view.trail.messages[0] else _CARRIERS
        if any(by in carriers for by in message.by):
            # Such a block is removed with its message, so its list is carried over.
            carried = read_actions(block for block in message.blocks if block.by in carriers)
            new += carried.actions
            found.older.update(carried.older)
        if message.seq in before:
            words = describe_reply(before[message.seq], message)
            new += [Action(message_id(message.seq), words)] if words else []
        new += _list_calls(message, results, policy)
    # An original that a person restored is listed already.
    known = {(action.id, action.words) for action in found.actions}
    found.actions += [action for action in new if (action.id, action.words) not in known]
    return found


def _list_calls(message: Message, results: dict[str, Result], policy: Policy) -> Iterator[Action]:
    if not (message.shape.calls or message.shape.server_calls):
        return
    templates, decided = _read_templates(policy.actions), dict(policy.decisions)
    for block in message.blocks:
        if block.type != "tool_use" and block.type not in SERVER_CALLS:
            continue
        result, template = results.get(block.id), templates.get(str(block.value.get("name")))
        words = describe_call(block.value, template)
        how = _DECIDED.get(decided.get(block.id, ""), _FAILED if result and result.is_error else "")
        is_listed = template is None and result is not None and result.chars > SHORT_RESULT
        if words and (how or not is_listed):
            yield Action(f"{message_id(message.seq)}{INPUT}", how + words)


@lru_cache(maxsize=64)
def _read_templates(actions: tuple[str, ...]) -> dict[str, str]:
    rows = (row.partition("=") for row in actions)
    return {name: words for name, _, words in rows}


def _read_results(known: dict[str, Result], message: Message) -> None:
    results = (*message.shape.results, *read_server_results(message))
    known.update({result.id: result for result in results})


def _find_questions(view: View) -> dict[int, Message]:
    """Return the answer before each prompt that follows one, by the prompt's number."""
    messages = view.messages
    return {
        message.seq: messages[at - 1]
        for at, message in enumerate(messages)
        if at and message.kind == "prompt" and _is_read(messages[at - 1])
    }


def _is_read(message: Message) -> bool:
    """Return whether a message is an answer that is not damaged."""
    return message.kind == "answer" and message.shape.flaw is None


def read_actions(blocks: Iterable[Block]) -> ActionList:
    """Read the record back from blocks that this engine wrote."""
    found = ActionList()
    for block in blocks:
        is_inside = False
        for line in str(block.value.get("text", "")).splitlines():
            if line == HEADER:
                is_inside = True
            elif not line:
                is_inside = False
            elif is_inside and (match := _LINE.fullmatch(line)):
                found.actions.append(Action(match[1], match[2], _read_number(match[3] or "1")))
            elif is_inside and (match := _OLDER.fullmatch(line)):
                counts = _COUNT.findall(match[1])
                found.older.update({word: _read_number(count) for word, count in counts})
    return found


def _read_number(text: str) -> int:
    return int(text.replace(",", ""))


def write_actions(found: ActionList, limit: int) -> str:
    """Write the record within `limit` characters, newest lines kept; "" when there is none."""
    actions = _merge_actions(found.actions)
    room = limit - len(HEADER) - _COUNTED
    kept: list[str] = []
    while actions and len(actions[-1].line) < room:
        kept.append(actions.pop().line)
        room -= len(kept[-1]) + 1
    older = Counter(found.older)
    for action in actions:
        older[action.words.partition(" ")[0].rstrip(":")[:_WORD]] += action.count
    if not kept and not older:
        return ""
    tail = [f"(older ones: {_write_counts(older)}; recall with a query finds them)"] * bool(older)
    return "\n".join([HEADER, *kept[::-1], *tail])


def _merge_actions(actions: Iterable[Action]) -> list[Action]:
    """Merge actions with the same words; a later success replaces a failure."""
    merged: dict[str, Action] = {}
    for action in actions:
        before = merged.pop(action.words, None)
        count = action.count + (before.count if before else 0)
        merged.pop(_FAILED + action.words, None)
        merged[action.words] = Action(action.id, action.words, count)
    return list(merged.values())


def _write_counts(older: Counter[str]) -> str:
    """Write the counts by first word, the rarest ones together."""
    common = dict(older.most_common(_MOST_COUNTED))
    if rest := older.total() - sum(common.values()):
        common["others"] = common.get("others", 0) + rest
    return ", ".join(f"{word} {count:,}" for word, count in common.items())
