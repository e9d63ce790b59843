"""An independent check of what the API accepts, from its documentation, not from `rules`.

It reads the body as the API does: parse, merge neighbours of one role, then check. It shares no
code with the engine and knows nothing of views.
"""

from __future__ import annotations

import json
import re
from typing import Any

ID = re.compile(r"^[a-zA-Z0-9_-]+\Z")
NAME = re.compile(r"^[a-zA-Z0-9_-]{1,128}\Z")
THINKING = ("thinking", "redacted_thinking")
SERVED = ("server_tool_use", "mcp_tool_use")
#: Of the four marks of a request the envelope has two.
MOST_MARKS = 2
Turn = tuple[str, list[dict[str, Any]]]

_USERS = {"text", "image", "document", "search_result", "tool_result", "container_upload"}
_ANYBODYS = {"text"}
_SOURCES = {
    "image": {"base64": "data", "url": "url", "file": "file_id"},
    "document": {
        "base64": "data", "text": "data", "url": "url", "file": "file_id", "content": "content",
    },
}  # fmt: skip


def violations(body: str) -> list[str]:
    """Give all reasons why the API would refuse this `messages` array."""
    return found_in(json.loads(body))


def found_in(messages: list[dict[str, Any]]) -> list[str]:
    """Do the same for an array that is read already."""
    if not messages:
        return ["no messages"]
    found: list[str] = []
    if len(messages) > 100_000:
        found.append("too many messages")
    for number, message in enumerate(messages):
        if set(message) != {"role", "content"} or message["role"] not in ("user", "assistant"):
            found.append(f"{number}: not a message")
        if not message["content"]:
            found.append(f"{number}: empty content")
        for block in message["content"]:
            found += [f"{number}: {why}" for why in _block(message["role"], block)]
    found += _turns(_merged(messages))
    found += _compacted(messages)
    marks = [mark for message in messages for block in message["content"] for mark in _marks(block)]
    if len(marks) > MOST_MARKS:
        found.append(f"{len(marks)} cache marks")
    if any(mark.get("ttl", "5m") != "5m" for mark in marks):
        found.append("a mark of an hour behind the envelope's")
    return found


def _merged(messages: list[dict[str, Any]]) -> list[Turn]:
    turns: list[Turn] = []
    for message in messages:
        if turns and turns[-1][0] == message["role"]:
            turns[-1][1].extend(message["content"])
        else:
            turns.append((message["role"], list(message["content"])))
    return turns


def _turns(turns: list[Turn]) -> list[str]:
    found: list[str] = []
    first = turns[0][1][0]["type"] if turns[0][1] else ""
    if turns[0][0] != "user" and first != "compaction":
        found.append("does not start with the user")
    # A turn paused in its server tools is sent back as it is.
    if turns[-1][0] != "user" and not any(map(_is_served, turns[-1][1])):
        found.append("does not end with the user")
    seen: set[str] = set()
    for number, (role, blocks) in enumerate(turns):
        asked = [b["id"] for b in blocks if b["type"] == "tool_use"]
        served = [b["id"] for b in blocks if b["type"] in SERVED]
        own = {*asked, *served}
        if seen & own or len(own) != len(asked) + len(served):
            found.append(f"turn {number}: ids of calls repeat")
        seen |= own
        given = turns[number + 1][1] if number + 1 < len(turns) else []
        if role == "assistant":
            found += _answered(number, asked, given)
    found += _served(turns)
    if turns[0][0] == "user" and any(b["type"] == "tool_result" for b in turns[0][1]):
        found.append("results without an answer before")
    return found


def _answered(number: int, asked: list[str], given: list[dict[str, Any]]) -> list[str]:
    lead = 0
    while lead < len(given) and given[lead]["type"] == "tool_result":
        lead += 1
    answers = [block["tool_use_id"] for block in given[:lead]]
    found = []
    if sorted(answers) != sorted(asked):
        found.append(f"turn {number}: asked {asked}, then answered {answers}")
    if any(block["type"] == "tool_result" for block in given[lead:]):
        found.append(f"turn {number + 1}: a result behind other blocks")
    return found


def _is_served(block: dict[str, Any]) -> bool:
    return block["type"] in SERVED or block["type"].endswith("_tool_result")


def _served(turns: list[Turn]) -> list[str]:
    """Tools of the API itself: each result behind its call, over all answers to one message.

    A call may wait for our results where it was made beside our calls or made them itself.
    """
    found: list[str] = []
    waiting: list[str] = []
    for number, (role, blocks) in enumerate(turns):
        if role == "user":
            continue
        older, asked = list(waiting), [b for b in blocks if b["type"] == "tool_use"]
        for block in filter(_is_served, blocks):
            if block["type"] in SERVED:
                waiting.append(block["id"])
            elif block["tool_use_id"] in waiting:
                waiting.remove(block["tool_use_id"])
            else:
                found.append(f"turn {number}: no call for {block['tool_use_id']}")
        if number + 1 == len(turns):
            break
        is_done = not asked or any(b["type"] != "tool_result" for b in turns[number + 1][1])
        callers = [b["caller"]["tool_id"] for b in asked if "tool_id" in b.get("caller", {})]
        lost = [one for one in waiting if is_done or (one in older and one not in callers)]
        found += [f"turn {number}: no result for {one}" for one in lost]
        waiting = [one for one in waiting if one not in lost]
    return found


def _compacted(messages: list[dict[str, Any]]) -> list[str]:
    places = [
        (number, at)
        for number, message in enumerate(messages)
        for at, block in enumerate(message["content"])
        if block["type"] == "compaction" and block.get("signature") is not None
    ]
    found = ["more than one signed compaction block"] if len(places) > 1 else []
    return found + [f"a signed compaction block at {at}" for at in places if at != (0, 0)]


def _marks(block: dict[str, Any]) -> list[dict[str, Any]]:
    content = block.get("content")
    nested = content if isinstance(content, list) else []
    return [one["cache_control"] for one in [block, *nested] if "cache_control" in one]


def _block(role: str, block: dict[str, Any]) -> list[str]:
    kind = block["type"]
    if role == "user" and kind not in _USERS:
        return [f"{kind} from the user"]
    if role == "assistant" and kind in _USERS - _ANYBODYS:
        return [f"{kind} from the assistant"]
    if kind == "text" and not (block["text"].strip() or (block["text"] and role == "assistant")):
        return ["blank text"]
    mark = block.get("cache_control", {"type": "ephemeral"})
    if mark.get("type") != "ephemeral" or (kind in THINKING and "cache_control" in block):
        return ["a mark where none may be"]
    if kind == "thinking" and not ({"thinking", "signature"} <= set(block)):
        return ["broken thinking"]
    if kind in ("tool_use", *SERVED) and not (
        ID.match(block["id"]) and NAME.match(block["name"]) and isinstance(block["input"], dict)
    ):
        return ["broken call"]
    if kind == "compaction" and block.get("content") == "":
        return ["empty compaction"]
    if kind in _SOURCES:
        return _source(kind, block["source"])
    if kind == "tool_result":
        return _result(block)
    return []


def _source(kind: str, source: dict[str, Any]) -> list[str]:
    field = _SOURCES[kind].get(source["type"])
    return [] if field and source.get(field) else [f"a {kind} without its source"]


def _result(block: dict[str, Any]) -> list[str]:
    if not ID.match(block["tool_use_id"]):
        return ["broken result id"]
    content = block.get("content", "")
    if isinstance(content, str):
        return []
    found: list[str] = []
    for nested in content:
        if nested["type"] not in ("text", "image", "document", "search_result"):
            found.append(f"{nested['type']} in a result")
        else:
            found += _block("user", nested)
    return found
