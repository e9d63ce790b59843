"""What the API's own context editing is asked for, and which results it will clear.

The API says afterwards only how much it cleared, never what. It clears from the oldest call on and
leaves the newest ones and excluded tools; so what the model will not see can be said beforehand,
and a person or a recall list can name it. The stored history is not changed by it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from conversations.context.gauge import Gauge
from conversations.context.results import calls
from conversations.context.view import View


@dataclass(frozen=True, slots=True)
class Clearing:
    """Clear above `trigger` tokens all but `keep` results, if that frees `at_least` tokens."""

    trigger: int = 100_000
    keep: int = 3
    at_least: int = 0
    exclude_tools: tuple[str, ...] = ()

    @property
    def parameters(self) -> dict[str, Any]:
        """The `context_management` of an envelope."""
        edit: dict[str, Any] = {
            "type": "clear_tool_uses_20250919",
            "trigger": {"type": "input_tokens", "value": self.trigger},
            "keep": {"type": "tool_uses", "value": self.keep},
        }
        if self.at_least:
            edit["clear_at_least"] = {"type": "input_tokens", "value": self.at_least}
        if self.exclude_tools:
            edit["exclude_tools"] = list(self.exclude_tools)
        return {"edits": [edit]}


def predict_cleared(view: View, gauge: Gauge, clearing: Clearing) -> tuple[str, ...]:
    """Give the ids of the calls whose results the API will clear, oldest first."""
    if gauge.tokens <= clearing.trigger:
        return ()
    known = calls(view)
    found = [
        (result.id, message.blocks[result.at].tokens)
        for message in view.messages
        for result in message.shape.results
        if known[result.id].name not in clearing.exclude_tools
    ]
    gone = found[: max(0, len(found) - clearing.keep)]
    freed = sum(tokens for _, tokens in gone) * gauge.permille // 1000
    return tuple(call for call, _ in gone) if freed >= clearing.at_least else ()
