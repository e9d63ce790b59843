"""The recall list, kept in view: every original that was removed, by the number of its message.

The list is at the end of a block this engine wrote and is carried over when that block is written
again. A message's number takes a fifth of the tokens of a tool call's id. Calls with the same label
are distinguished by their other inputs, then by the beginning of their results; only calls that
agree in all of these (a file read again) share a line, so that a long history fits in little room.
The list is bounded by expected use. Up to half of it are the newest lines of long results, since
most of what is needed late is from one of the few long results; then follow the newest other lines,
and lines of short results only if there is room left. A last line counts the older ones and says
that a search finds them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

from conversations.context.steps.shorten_results import index_calls
from conversations.context.text import graphemes
from conversations.context.text.shorten import cut_head
from conversations.context.view.message_shape import Result
from conversations.context.view.searched_originals import read_result
from conversations.context.view.server_results import read_server_results
from conversations.context.view.view import Block, Message, View

HEADER = "Originals that can be read again:"
LIMIT = 4_000
#: Prompts and answers with more characters than this get a line of their own.
_LONG_PROMPT, _LONG_ANSWER = 100, 2_000
#: Results up to this length are marked as short: other lines take precedence.
SHORT_RESULT, _SHORT = 200, " (short)"
#: Results of this length or more are marked as long: they may fill this percentage of the room
#: before any other line.
_LONG_RESULT, _LONG, _LONG_PERCENT = 8_000, " (long)", 50
#: Characters of a line's label and of a text quoted in it; most numbers in one line.
_WORDS, _QUOTE, _MOST_IDS = 40, 40, 6
#: Lists of older versions have the tool's name in each line.
_LINE = re.compile(r'(?:recall )?("msg_\d+"(?:, "msg_\d+")*)(?: and (\d+) earlier)?: (.*)')
_LISTED = ('"msg_', "recall ")
_OLDER = re.compile(r"\(and (\d[\d,]*) older ones(?:; recall with a query finds them)?\)")
#: Characters at the start of a result that are searched for its title.
_HEAD = 2_000
_TITLE = re.compile(
    r"^(?:subject|title)\b[\"']?:[ \t\"']*(?P<title>[^\n]{3,200})", re.IGNORECASE | re.MULTILINE
)
_FIRST = re.compile(r"(?P<title>[^\s{}\[\]#*=-][^\n]{2,200})")
_MARKERS = re.compile(
    r"\[\s*((?:END\s+)?(?:CONTEXT\s+SUMMARY|WORKING\s+MEMORY))\s*\]", re.IGNORECASE
)


def neutralise_markers(text: str) -> str:
    """Neutralise summary markers in a text that is data."""
    return _MARKERS.sub(r"(\1)", text)


def message_id(seq: int) -> str:
    """Return the id by which `recall` finds a message."""
    return f"msg_{seq}"


def list_lines(view: View, messages: Iterable[Message]) -> list[str]:
    """Return a line for each tool result and each long text of the messages."""
    known = index_calls(view)
    labels = Counter(call.label for call in known.values())
    details = Counter((call.label, call.others) for call in known.values())
    found: list[str] = []
    for message in messages:
        if "rounds" in message.by:
            # A working memory is removed with its prompt; the originals it listed stay listed.
            found += read_lines(block for block in message.blocks if block.by == "rounds")[0]
        for result in (*message.shape.results, *read_server_results(message)):
            call = known.get(result.id)
            if call and not result.is_error and call.name != "recall":
                words = _shorten_label(call.label)
                if labels[call.label] > 1:
                    words = f"{words} {call.others}".strip()
                if details[call.label, call.others] > 1:
                    words = f"{words} {_find_title(message, result)}".strip()
                mark = _mark_size(result.chars)
                found.append(_write_line(message, words + mark))
        if message.kind != "results" and message.size > _LONG_PROMPT:
            found.extend(_list_text_lines(message))
    return found


def _mark_size(chars: int) -> str:
    if chars <= SHORT_RESULT:
        return _SHORT
    return _LONG if chars >= _LONG_RESULT else ""


def _find_title(message: Message, result: Result) -> str:
    """Return the line of a result with a title or subject, else its first line."""
    if message.by and message.by[result.at]:
        return ""
    text = _read_first_text(message.blocks[result.at].value)[:_HEAD]
    found = _TITLE.search(text) or _FIRST.search(text)
    words = " ".join(found["title"].split()) if found else ""
    return f"({cut_head(words, _QUOTE)})" if words else ""


def _read_first_text(value: dict[str, Any]) -> str:
    """Return the text of a result; of one in blocks, the first text."""
    content = value.get("content", "")
    if value["type"] != "tool_result" or isinstance(content, str):
        return read_result(value)
    return next((str(part["text"]) for part in content if part["type"] == "text"), "")


def read_lines(blocks: Iterable[Block]) -> tuple[list[str], int]:
    """Read the lines, and the count of older ones, from blocks this engine wrote."""
    found: list[str] = []
    older = 0
    for block in blocks:
        lines = str(block.value.get("text", "")).splitlines()
        start = next((at for at in range(len(lines), 0, -1) if lines[at - 1] == HEADER), len(lines))
        for line in lines[start:]:
            if line.startswith(_LISTED):
                found.append(line)
            elif count := _OLDER.fullmatch(line):
                older += int(count[1].replace(",", ""))
    return found, older


def write_list(found: list[str], older: int, limit: int = LIMIT) -> str:
    """Write the list within `limit` characters, newest lines kept; "" if it is empty."""
    lines = _group_lines(found)
    kept = _keep_newest(lines, limit - len(HEADER) - 40)
    older += len(lines) - len(kept)
    if not kept and not older:
        return ""
    tail = [f"(and {older:,} older ones; recall with a query finds them)"] if older else []
    return "\n".join([HEADER, *kept, *tail])


def _keep_newest(lines: list[str], room: int) -> list[str]:
    """Return the newest lines that fit, in order; long results first, short ones last."""
    kept: set[int] = set()
    share = room * _LONG_PERCENT // 100
    for mark, most in ((_LONG, share), ("", room), (_SHORT, room)):
        left = min(most, room)
        for at in range(len(lines) - 1, -1, -1):
            if at in kept or not _has_mark(lines[at], mark):
                continue
            left -= len(lines[at]) + 1
            if left < 0:
                break
            kept.add(at)
            room -= len(lines[at]) + 1
    return [lines[at] for at in sorted(kept)]


def _has_mark(line: str, mark: str) -> bool:
    """Whether a line has a mark; without one, any that is not marked as short."""
    return line.endswith(mark) if mark else not line.endswith(_SHORT)


def _group_lines(found: list[str]) -> list[str]:
    """Merge lines with the same label, at the position of the newest of them."""
    groups: dict[str, list[str]] = {}
    earlier: Counter[str] = Counter()
    for line in found:
        match = _LINE.fullmatch(line)
        ids, words = (match[1].split(", "), match[3]) if match else ([], line)
        earlier[words] += int(match[2] or 0) if match else 0
        all_ids = list(dict.fromkeys([*groups.pop(words, []), *ids]))
        earlier[words] += max(0, len(all_ids) - _MOST_IDS)
        groups[words] = all_ids[-_MOST_IDS:]
    return [_join_line(ids, earlier[words], words) for words, ids in groups.items()]


def _join_line(ids: list[str], earlier: int, words: str) -> str:
    if not ids:
        return words
    more = f" and {earlier} earlier" if earlier else ""
    return f"{', '.join(ids)}{more}: {words}"


def _write_line(message: Message, words: str) -> str:
    return f'"{message_id(message.seq)}": {neutralise_markers(words)}'


def _shorten_label(label: str) -> str:
    """Cut a call's label to its distinctive part: the end of a path, the start of other text."""
    name, _, main = label.partition(" ")
    if len(main) <= _WORDS:
        return label
    if _is_path(main):
        return f"{name} …{main[graphemes.find_cut_after(main, len(main) - _WORDS) :]}"
    return f"{name} {main[: graphemes.find_cut_before(main, _WORDS)]}…"


def _is_path(text: str) -> bool:
    """Whether a text is a path, whose end says most about it; Windows paths may have spaces."""
    is_joined = " " not in text and ("/" in text or "\\" in text)
    return is_joined or text[1:3] == ":\\"


def _list_text_lines(message: Message) -> Iterable[str]:
    texts = [str(block.value["text"]) for block in message.blocks if block.type == "text"]
    chars = sum(map(len, texts))
    if chars > (_LONG_PROMPT if message.kind == "prompt" else _LONG_ANSWER):
        who = "the user" if message.kind == "prompt" else "the assistant"
        words = " ".join(texts[0][: 4 * _QUOTE].split())
        yield _write_line(message, f"{who}, {chars:,} characters: {cut_head(words, _QUOTE)}…")
