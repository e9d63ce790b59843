"""Small conversations for the lab's tests: records made by hand, and a world to replay them in."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from conversations.agent.prices import PriceList
from conversations.context.policy.policy import PRESETS, Policy
from conversations.lab.records import Record, read_record
from conversations.lab.replay_setup import World

PRICES = PriceList(
    "claude-sonnet-5-5",
    (
        (
            0,
            {
                "input": 2_000_000,
                "output": 10_000_000,
                "cache_write_5m": 2_500_000,
                "cache_read": 100_000,
            },
        ),
    ),
)
TOOL = {"name": "read_file", "description": "Reads.", "input_schema": {"type": "object"}}
RECALL = {"name": "recall", "description": "Recalls.", "input_schema": {"type": "object"}}
PAGE = "A line of a page with numbers 12,345 and a name. " * 200


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def user(*blocks: Any) -> dict[str, Any]:
    return {"role": "user", "content": [text(b) if isinstance(b, str) else b for b in blocks]}


def answer(*blocks: Any) -> dict[str, Any]:
    return user(*blocks) | {"role": "assistant"}


def call(id: str, path: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": "read_file", "input": {"path": path}}


def result(id: str, content: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": id, "content": content}


def reading(rounds: int, page: str = PAGE, prompts: int = 1) -> list[dict[str, Any]]:
    """Give turns in each of which so many pages are read, one by one."""
    found: list[dict[str, Any]] = []
    for prompt in range(prompts):
        found.append(user(f"Please read the pages of part {prompt}."))
        for number in range(rounds):
            use = f"toolu_{prompt}_{number}"
            found.append(answer(f"Page {number}.", call(use, f"part{prompt}/page{number}.txt")))
            found.append(user(result(use, f"Page {prompt}/{number}: {page}")))
        found.append(answer(f"I have read part {prompt}."))
    return found


def record(messages: list[dict[str, Any]], **fields: Any) -> Record:
    return read_record({"id": "talk", "tools": [TOOL], "messages": messages} | fields)


def line(messages: list[dict[str, Any]], **fields: Any) -> str:
    return json.dumps({"id": "talk", "tools": [TOOL], "messages": messages} | fields)


def world(policy: str | Policy = "classic", **fields: Any) -> World:
    chosen = policy if isinstance(policy, Policy) else PRESETS[policy]
    prices = fields.get("prices", PRICES)
    made = World(
        model="claude-sonnet-5-5", window=200_000, policy=chosen, prices=prices,
        rates=prices.rates, minimum=1_024, recall_tools=(RECALL,),
    )  # fmt: skip
    return replace(made, **fields)
