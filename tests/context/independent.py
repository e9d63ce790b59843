"""A second opinion on what the API accepts, written from its documentation, not from `rules`.

It reads the body as the API does: parse, merge neighbours of one role, then look. It shares no code
with the engine and knows nothing of views.
"""

from __future__ import annotations

import json
import re
from typing import Any

ID = re.compile(r"^[a-zA-Z0-9_-]+\Z")
NAME = re.compile(r"^[a-zA-Z0-9_-]{1,128}\Z")
THINKING = ("thinking", "redacted_thinking")


def violations(body: str) -> list[str]:
    """Give all reasons why the API would refuse this `messages` array."""
    messages = json.loads(body)
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
    marks = body.count('"cache_control":{') if "cache_control" in body else 0
    if marks > 4:
        found.append(f"{marks} cache marks")
    return found


def _merged(messages: list[dict[str, Any]]) -> list[tuple[str, list[dict[str, Any]]]]:
    turns: list[tuple[str, list[dict[str, Any]]]] = []
    for message in messages:
        if turns and turns[-1][0] == message["role"]:
            turns[-1][1].extend(message["content"])
        else:
            turns.append((message["role"], list(message["content"])))
    return turns


def _turns(turns: list[tuple[str, list[dict[str, Any]]]]) -> list[str]:
    found: list[str] = []
    if turns[0][0] != "user" and turns[0][1][:1] != [{"type": "compaction"}]:
        found.append("does not start with the user")
    last = turns[-1][1][-1]["type"]
    # A turn paused in a server tool is sent back as it is.
    if turns[-1][0] != "user" and last not in ("server_tool_use", "web_search_tool_result"):
        found.append("does not end with the user")
    seen: set[str] = set()
    for number, (role, blocks) in enumerate(turns):
        asked = [b["id"] for b in blocks if b["type"] == "tool_use"]
        if seen & set(asked) or len(set(asked)) != len(asked):
            found.append(f"turn {number}: ids of calls repeat")
        seen |= set(asked)
        given = turns[number + 1][1] if number + 1 < len(turns) else []
        lead = 0
        while lead < len(given) and given[lead]["type"] == "tool_result":
            lead += 1
        if role == "assistant":
            answers = [b["tool_use_id"] for b in given[:lead]]
            if sorted(answers) != sorted(asked):
                found.append(f"turn {number}: asked {asked}, then answered {answers}")
            if any(b["type"] == "tool_result" for b in given[lead:]):
                found.append(f"turn {number + 1}: a result behind other blocks")
        elif number == 0 and any(b["type"] == "tool_result" for b in blocks):
            found.append("the first turn has results")
    return found


def _block(role: str, block: dict[str, Any]) -> list[str]:
    kind = block["type"]
    users = {"text", "image", "document", "search_result", "tool_result"}
    if role == "user" and kind not in users:
        return [f"{kind} from the user"]
    if role == "assistant" and kind in users - {"text"}:
        return [f"{kind} from the assistant"]
    if kind == "text" and not block["text"].strip():
        return ["blank text"]
    if kind == "thinking" and not ({"thinking", "signature"} <= set(block)):
        return ["broken thinking"]
    if kind == "tool_use" and not (
        ID.match(block["id"]) and NAME.match(block["name"]) and isinstance(block["input"], dict)
    ):
        return ["broken call"]
    if kind == "tool_result":
        return _result(block)
    return []


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
        if nested["type"] == "text" and not nested["text"].strip():
            found.append("blank text in a result")
    return found
