"""A small agent in memory: a workspace, the job site, and a way to reduce its context."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from agentweb.demo.job_site import find_page, make_list_url
from agentweb.demo.workspace import list_workspace_files
from tests.emulator.samples import TOOL

BASE = "http://jobs.test"
NAMES = ("list_files", "read_file", "write_file", "fetch_url", "recall", "current_time")
LIMIT = 40_000
MOST_ROUNDS = 25
_ORDER = "Write the summary now, in at most 3,000 words."


@dataclass
class Agent:
    """Sends requests until an answer calls no tools."""

    ask: Any
    shape: Callable[[str, str], str]
    reduce: Callable[[Agent], None] = lambda agent: None
    recalls: bool = True
    #: Additional tools: their names and functions.
    more: dict[str, Callable[[dict[str, Any]], str]] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=lambda: list_workspace_files(make_list_url(BASE)))
    originals: dict[str, str] = field(default_factory=dict)
    messages: list[Any] = field(default_factory=list)
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    peak: int = 0
    last_tokens: int = 0

    def say(self, words: str) -> str:
        self.messages.append({"role": "user", "content": words})
        for _ in range(MOST_ROUNDS):
            if self.last_tokens > LIMIT:
                self.reduce(self)
            content = self._ask()
            self.messages.append({"role": "assistant", "content": content})
            results = [self._run(block) for block in content if block["type"] == "tool_use"]
            if not results:
                return str(content[-1]["text"])
            self.messages.append({"role": "user", "content": results})
        raise AssertionError("the turn does not end")

    def _ask(self) -> list[Any]:
        names = [name for name in NAMES if name != "recall" or self.recalls]
        offered = [TOOL | {"name": name} for name in (*names, *self.more)]
        answered = self.ask(
            {
                "model": "claude-sonnet-5-5",
                "max_tokens": 8_000,
                "tools": offered,
                "messages": self.messages,
            }
        )
        assert answered.status == 200, answered.body
        self.last_tokens = answered.json["usage"]["input_tokens"]
        self.peak = max(self.peak, self.last_tokens)
        content: list[Any] = answered.json["content"]
        return content

    def _run(self, block: Any) -> dict[str, Any]:
        name, given = block["name"], block["input"]
        self.calls.append((name, given))
        result = self._tool(name, given)
        self.originals[block["id"]] = result
        return {"type": "tool_result", "tool_use_id": block["id"], "content": result}

    def _tool(self, name: str, given: dict[str, Any]) -> str:
        if name in self.more:
            return self.more[name](given)
        match name:
            case "read_file":
                return self.files[given["path"]]
            case "write_file":
                self.files[given["path"]] = given["content"]
                return "written"
            case "fetch_url":
                path, _, query = given["url"].removeprefix(BASE).partition("?")
                return self.shape(find_page(path, query) or "", given["url"])
            case "recall":
                lines = self.originals[given["id"]].splitlines()
                wanted = given.get("matching", "").lower()
                return "\n".join(line for line in lines if wanted in line.lower())
        raise AssertionError(name)


def cut_results(agent: Agent) -> None:
    """Shorten every result to 500 characters, except those of the last message."""
    for message in agent.messages[:-1]:
        blocks = message["content"] if isinstance(message["content"], list) else []
        for block in blocks:
            if block["type"] == "tool_result" and len(block["content"]) > 700:
                size, call = len(block["content"]), block["tool_use_id"]
                block["content"] = block["content"][:500] + (
                    f"\n[truncated for context management: 500 of {size:,} characters shown; "
                    f'recall "{call}" for the rest]'
                )


def summarise(agent: Agent) -> None:
    """Replace all but the first message and the last round by a summary after the first."""
    start = max(i for i, m in enumerate(agent.messages) if m["role"] == "assistant")
    if agent.messages[-1]["role"] == "assistant" or start < 4:
        return
    told = "\n\n".join(_told(message) for message in agent.messages[1:start])
    parts = [_fenced("first_request", _words(agent)), _fenced("transcript", told)]
    if not isinstance(agent.messages[0]["content"], str):
        previous = agent.messages[0]["content"][1]["text"]
        parts.insert(1, _fenced("previous_summary", previous[18:-22]))
    told = "\n\n".join(parts)
    answered = agent.ask(
        {
            "model": "claude-sonnet-5-5",
            "max_tokens": 4_096,
            "thinking": {"type": "between_tools"},
            "system": "You compress the older part of a conversation between a user and others.",
            "messages": [{"role": "user", "content": f"{told}\n\n{_ORDER}"}],
        }
    )
    text = answered.json["content"][0]["text"]
    wrapped = f"[CONTEXT SUMMARY]\n{text}\n[END CONTEXT SUMMARY]"
    head = [{"type": "text", "text": _words(agent)}, {"type": "text", "text": wrapped}]
    agent.messages[:start] = [{"role": "user", "content": head}]


def _fenced(name: str, text: str) -> str:
    return f"<{name}>\n{text}\n</{name}>"


def _words(agent: Agent) -> str:
    first = agent.messages[0]["content"]
    return str(first if isinstance(first, str) else first[0]["text"])


def _told(message: Any) -> str:
    """Format messages as the application does in a request for a summary."""
    content = message["content"]
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    lines = [f"[{message['role']}]"]
    for block in blocks:
        match block["type"]:
            case "text":
                lines.append(block["text"])
            case "tool_use":
                lines.append(
                    f"[calls {block['name']} as {block['id']}] {json.dumps(block['input'])}"
                )
            case "tool_result":
                text = block["content"]
                shown = text if len(text) < 700 else f"{text[:500]} ... {text[-200:]}"
                lines.append(f"[result of {block['tool_use_id']}] {shown}")
    return "\n".join(lines)
