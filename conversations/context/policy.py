"""The numbers that decide when and how much the context is reduced, validated together.

Names follow the designs they come from; a setting AGENTWEB_<NAME> overrides each for the site, a
user's and a conversation's overrides come on top.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from conversations.context.errors import ContextError


class PolicyError(ContextError):
    """A policy's number is of the wrong kind, out of range or at odds with another."""

    code = "policy"

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field, self.problem = field, problem


@dataclass(frozen=True, slots=True)
class Policy:
    """Thresholds in tokens, lengths in characters, sizes in bytes; 0 turns a step off."""

    #: The preset these numbers started from.
    name: str = "classic"
    #: Compact old tool results above this many tokens.
    input_token_budget: int = 40_000
    #: What compaction leaves of a tool result.
    tool_result_retention_chars: int = 500
    #: A tool result longer than this is shortened before it is first sent.
    max_tool_result_chars: int = 40_000
    #: Whether to summarise at all.
    compaction_enabled: bool = True
    #: Summarise the middle of the conversation above this many tokens.
    compaction_threshold_tokens: int = 80_000
    #: Messages at the end that a summary never touches.
    protected_tail_messages: int = 6
    #: What the summary call may read at most.
    summary_input_chars: int = 100_000
    #: What the summary call may write at most, in tokens.
    summary_max_tokens: int = 4_096
    #: After so many rejected summaries in a row, only deterministic steps work.
    summary_breaker: int = 3
    #: Trim only when the context fills at least this share of the window.
    trim_threshold_percent: int = 60
    #: Trim the oldest exchanges until the messages fit.
    max_conversation_bytes: int = 720_000
    #: A last backstop by number of messages.
    max_conversation_messages: int = 0
    #: Tokens of the window kept free for the answer.
    window_reserve_tokens: int = 16_000
    #: Tools whose results are never shortened.
    verbatim_tools: tuple[str, ...] = ()


#: The designs this engine unites; `classic` runs their steps in order.
PRESETS: dict[str, Policy] = {
    "classic": Policy(),
    "tool-budget": Policy(
        name="tool-budget", max_tool_result_chars=0, compaction_enabled=False,
        max_conversation_bytes=0,
    ),
    "rebuild": Policy(
        name="rebuild", input_token_budget=0, max_tool_result_chars=0, max_conversation_bytes=0,
        max_conversation_messages=50,
    ),
    "gated-trim": Policy(
        name="gated-trim", input_token_budget=0, max_tool_result_chars=0, compaction_enabled=False,
    ),
    "off": Policy(
        name="off", input_token_budget=0, max_tool_result_chars=0, compaction_enabled=False,
        max_conversation_bytes=0,
    ),
}  # fmt: skip

#: Lowest and highest allowed values.
_BOUNDS: dict[str, tuple[int, int]] = {
    "input_token_budget": (0, 10_000_000),
    "tool_result_retention_chars": (64, 1_000_000),
    "max_tool_result_chars": (0, 10_000_000),
    "compaction_threshold_tokens": (1_000, 10_000_000),
    "protected_tail_messages": (1, 1_000),
    "summary_input_chars": (2_000, 10_000_000),
    "summary_max_tokens": (256, 64_000),
    "summary_breaker": (1, 100),
    "trim_threshold_percent": (0, 100),
    "max_conversation_bytes": (0, 30_000_000),
    "max_conversation_messages": (0, 100_000),
    "window_reserve_tokens": (1_024, 200_000),
}
POLICY_FIELDS = tuple(field.name for field in fields(Policy) if field.name != "name")


def policy_from(preset: str, *overrides: Mapping[str, Any]) -> Policy:
    """Make a policy from a preset and overrides, later ones winning; raises PolicyError."""
    if preset not in PRESETS:
        raise PolicyError("policy", f"{preset!r} is none of {', '.join(PRESETS)}")
    policy = PRESETS[preset]
    for values in overrides:
        for field, value in values.items():
            policy = replace(policy, **{field: _checked(field, value)})
    return _consistent(policy)


def _checked(field: str, value: object) -> Any:
    if field == "compaction_enabled":
        if isinstance(value, bool):
            return value
        raise PolicyError(field, "must be true or false")
    if field == "verbatim_tools":
        if isinstance(value, (list, tuple)) and all(isinstance(name, str) for name in value):
            return tuple(value)
        raise PolicyError(field, "must be a list of tool names")
    if field not in _BOUNDS:
        raise PolicyError(field, "is no number of the context policy")
    lowest, highest = _BOUNDS[field]
    if not isinstance(value, int) or isinstance(value, bool):
        raise PolicyError(field, "must be a whole number")
    if not lowest <= value <= highest:
        raise PolicyError(field, f"must be from {lowest:,} to {highest:,}")
    return value


def _consistent(policy: Policy) -> Policy:
    budget, threshold = policy.input_token_budget, policy.compaction_threshold_tokens
    if policy.compaction_enabled and budget and threshold <= budget:
        raise PolicyError(
            "compaction_threshold_tokens",
            f"must be above input_token_budget ({budget:,}), or no tool result is ever compacted",
        )
    limit = policy.max_tool_result_chars
    if limit and limit <= policy.tool_result_retention_chars:
        raise PolicyError(
            "max_tool_result_chars",
            f"must be above tool_result_retention_chars ({policy.tool_result_retention_chars:,})",
        )
    return policy


def snapshot(policy: Policy) -> dict[str, Any]:
    """Give the policy's numbers as data, for the record."""
    return asdict(policy)
