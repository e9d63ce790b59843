"""The view of a request: the only input of a scene."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from agentweb.emulator import json_codec

#: The heading under which a summary keeps the user's requests, latest last.
ASKED = "What the user asked for"
#: Beginnings of the blocks that context management puts into the user's messages.
_INSERTED = ("[CONTEXT SUMMARY]", "[earlier messages were dropped")


@dataclass(frozen=True, slots=True)
class Use:
    """A tool call in view, with its result if that is in view too."""

    message: int
    id: str
    name: str
    input: json_codec.Object
    result: str | None
    failed: bool


@dataclass(frozen=True)
class Request:
    """A validated request as the model sees it: edits and compaction blocks applied."""

    model: str
    system: str
    tools: tuple[str, ...]
    messages: tuple[json_codec.Object, ...]
    max_tokens: int
    #: Definitions of the tools that run on the API's side.
    server_tools: tuple[json_codec.Object, ...] = ()
    #: The definition of a tool that the answer must call.
    forced_tool: json_codec.Object | None = None
    #: The JSON schema that the answer must fit.
    output_schema: json_codec.Object | None = None

    def server_tool(self, name: str) -> json_codec.Object | None:
        return next((tool for tool in self.server_tools if tool.get("name") == name), None)

    @cached_property
    def prompt_at(self) -> int:
        """Return the index of the message with the user's latest prompt; -1 if there is none."""
        for index in range(len(self.messages) - 1, -1, -1):
            if self.messages[index]["role"] == "user" and own_text(self.messages[index]):
                return index
        return -1

    @cached_property
    def prompt(self) -> str:
        """Return the user's latest prompt, or the latest that a summary after it contains."""
        if self.prompt_at < 0:
            return ""
        message = self.messages[self.prompt_at]
        return summarised_prompt(message) or own_text(message)

    @property
    def is_resumed(self) -> bool:
        """Return whether the running turn began before a summary in view."""
        return self.prompt_at >= 0 and bool(summarised_prompt(self.messages[self.prompt_at]))

    @cached_property
    def prompts(self) -> tuple[str, ...]:
        """Return the text of every message of the user, oldest first."""
        texts = (own_text(m) for m in self.messages if m["role"] == "user")
        return tuple(text for text in texts if text)

    @cached_property
    def uses(self) -> tuple[Use, ...]:
        """Return every tool call in view, oldest first."""
        results: dict[str, json_codec.Object] = {
            block["tool_use_id"]: block
            for message in self.messages
            for block in blocks(message)
            if block["type"] == "tool_result"
        }
        return tuple(
            _use(index, block, results.get(block["id"]))
            for index, message in enumerate(self.messages)
            for block in blocks(message)
            if block["type"] == "tool_use"
        )

    @cached_property
    def turn_uses(self) -> tuple[Use, ...]:
        """Return the tool calls since the latest prompt of the user."""
        return tuple(use for use in self.uses if use.message > self.prompt_at)

    @property
    def after_results(self) -> bool:
        last = self.messages[-1]
        return any(block["type"] == "tool_result" for block in blocks(last))

    @cached_property
    def last_results(self) -> tuple[Use, ...]:
        """Return the calls whose results are in the last message."""
        ids = {b["tool_use_id"] for b in blocks(self.messages[-1]) if b["type"] == "tool_result"}
        return tuple(use for use in self.uses if use.id in ids)

    @cached_property
    def visible(self) -> str:
        """Return all text in view, in order."""
        return "\n".join(part for message in self.messages for part in texts(message))


def blocks(message: json_codec.Object) -> list[json_codec.Object]:
    content = message["content"]
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return content if isinstance(content, list) else []


def own_text(message: json_codec.Object) -> str:
    """Return the text of a message, without inserted context summaries."""
    words = (block["text"] for block in blocks(message) if block["type"] == "text")
    return "\n".join(text for text in words if not text.lstrip().startswith(_INSERTED)).strip()


def summarised_prompt(message: json_codec.Object) -> str:
    """Return the last request in a summary in the message; empty if there is none."""
    for block in reversed(blocks(message)):
        if block["type"] == "text" and block["text"].lstrip().startswith(_INSERTED):
            _, _, wishes = block["text"].partition(f"## {ASKED}\n")
            lines = wishes.partition("\n\n")[0].splitlines()
            return lines[-1].removeprefix("- ") if lines else ""
    return ""


def result_text(block: json_codec.Object) -> str:
    content = block.get("content", "")
    if isinstance(content, str):
        return content
    return "\n".join(
        str(part.get("text", "")) for part in content or () if part.get("type") == "text"
    )


def texts(message: json_codec.Object) -> Iterator[str]:
    for block in blocks(message):
        match block["type"]:
            case "text":
                yield block["text"]
            case "tool_result":
                yield result_text(block)
            case "tool_use":
                tool_input = json_codec.encode(block["input"]).decode(errors="replace")
                yield f"{block['name']} {tool_input}"
            case "compaction":
                yield block.get("content") or ""


def _use(index: int, block: json_codec.Object, result: json_codec.Object | None) -> Use:
    return Use(
        message=index,
        id=block["id"],
        name=block["name"],
        input=block["input"],
        result=None if result is None else result_text(result),
        failed=bool(result and result.get("is_error")),
    )
