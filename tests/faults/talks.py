"""Conversations for random calls: they grow, and the model answers differently each time.

A conversation may have tool results that the API clears, and may be compacted by the API.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from agentweb.emulator.scenes.scene import Reply, Text, ToolUse
from agentweb.emulator.scenes.view import Request
from conversations.context.steps import api_clearing
from conversations.context.steps.api_clearing import Clearing
from conversations.context.view import wire
from conversations.context.view.envelope import Envelope, build_envelope

WORDS = "The quick brown fox jumps over the lazy dog and looks for the number of its order. "
SAMPLES = (
    WORDS * 3, "Größe, façade, naïve — «voilà». ", "数据和日本語の文章です。", "😀🚀 done. ",
    "def f(x_1: int) -> str:\n\treturn f'{x_1:>08}'\n", '{"a":[1,2.5e-3,null],"B":"\\u00e9"}',
    "| No | NAME |\n|----|------|\n| 17 | ABC-123 |\n", "A NUL \0 and a lone \ud83d here. ", "x",
)  # fmt: skip
CLEARING = Clearing(trigger=3_000, keep=1)


def scene(request: Request) -> Reply | None:
    """Think, write and call, differently every time; return None for other requests."""
    dice = Random(request.prompt)
    if not request.prompt.startswith("Number") or dice.random() < 0.3:
        return None
    said = [Text(words(dice)) for _ in range(dice.choice((0, 1, 1, 2)))]
    uses = [
        ToolUse("write_file", {"path": f"{at}.txt", "content": words(dice)})
        for at in range(dice.choice((0, 0, 1, 2)))
    ]
    return Reply((*said, *uses) or (Text("."),), thinking=words(dice))


def words(dice: Random) -> str:
    return "".join(dice.choices(SAMPLES, k=dice.choice((1, 3, 12))))


@dataclass
class Talk:
    """A conversation on one model with one cache lifetime."""

    model: str
    ttl: str
    system: str
    messages: list[dict[str, Any]] = field(default_factory=list)
    betas: set[str] = field(default_factory=set)
    uses: int = 0
    tools: tuple[dict[str, Any], ...] = ()

    @property
    def compacts(self) -> bool:
        """Return whether the API can compact it now."""
        return "4-5" not in self.model and len(self.messages) > 3

    def envelope(self, max_tokens: int) -> Envelope:
        adaptive = {"type": "adaptive", "display": "summarized"}
        made = build_envelope(
            model=self.model,
            max_tokens=max_tokens,
            system=self.system,
            tools=self.tools,
            thinking=adaptive if "5-5" in self.model else None,
        )
        mark = wire.encode({"type": "ephemeral", "ttl": self.ttl})
        text = made.text.replace(wire.encode({"type": "ephemeral"}), mark)
        made = replace(made, parameters=tuple(wire.decode(text).items()))
        if self.uses:
            made = made.with_parameter("context_management", CLEARING.parameters)
        return made.with_betas([*self.betas, *([api_clearing.EDITING] if self.uses else [])])

    def compacting(self) -> Envelope:
        return api_clearing.build_compaction_envelope(replace(self, uses=0).envelope(400))

    def say(self, text: str) -> None:
        if self.messages and self.messages[-1]["role"] == "user":
            self.messages.append({"role": "assistant", "content": "I see."})
        self.messages.append({"role": "user", "content": text})

    def look(self, text: str) -> None:
        """Append a message after the result of a tool."""
        self.uses += 1
        id = f"toolu_{len(self.messages)}_{self.uses}"  # noqa: A001
        self.say("Read it.")
        use = {"type": "tool_use", "id": id, "name": "read_file", "input": {"path": "a.txt"}}
        result = {"type": "tool_result", "tool_use_id": id, "content": WORDS * 60}
        self.messages.append({"role": "assistant", "content": [use]})
        said = {"type": "text", "text": text}
        self.messages.append({"role": "user", "content": [result, said]})

    def compacted(self, block: dict[str, Any]) -> None:
        """Continue from the block of a compaction."""
        self.messages[:] = [{"role": "assistant", "content": [block]}]
        self.betas, self.uses = {api_clearing.COMPACTION}, 0
