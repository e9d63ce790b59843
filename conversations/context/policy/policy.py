"""The numbers that decide when and how much the context is reduced, validated together.

Names follow the designs they come from; a setting AGENTWEB_<NAME> overrides each for the site, then
come the overrides of the user and of the conversation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from conversations.context.errors import ContextError
from conversations.context.policy.tool_rules import parse_tool_rule


class PolicyError(ContextError):
    """A policy's number is of the wrong kind, out of range or contradicts another."""

    code = "policy"

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field, self.problem = field, problem


#: The reserve for the answer is at most a fifth of the window.
RESERVED_SHARE = 5


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
    #: Most characters that the summary call may read.
    summary_input_chars: int = 100_000
    #: Most tokens that the summary call may write.
    summary_max_tokens: int = 4_096
    #: After so many consecutive rejected summaries only deterministic steps run.
    summary_breaker: int = 3
    #: Trim only when the context fills at least this share of the window.
    trim_threshold_percent: int = 60
    #: Trim the oldest exchanges until the messages fit.
    max_conversation_bytes: int = 720_000
    #: A last backstop by number of messages.
    max_conversation_messages: int = 0
    #: Trim until no more than this many tokens are in context.
    max_conversation_tokens: int = 0
    #: After so many tool rounds in one turn all but the last become one working memory.
    round_summary_every: int = 0
    #: Tokens of the window kept free for the answer, but never more than a fifth of it.
    window_reserve_tokens: int = 16_000
    #: Tools whose results are never shortened.
    verbatim_tools: tuple[str, ...] = ()
    #: How results of tools are handled, as tool=rule: keep, head_tail, json, cap N or verbatim.
    tool_policies: tuple[str, ...] = ()
    #: A result longer than this is not verbatim, whatever its tool.
    verbatim_max_chars: int = 8_000
    #: Compaction keeps JSON as JSON, and head and tail of text; otherwise the head alone.
    structure_kept: bool = False
    #: Characters for the list of what can be recalled.
    recall_list_chars: int = 4_000
    #: Reduce in one go above this share of what a request may fill; 0: the other numbers decide.
    compact_above_percent: int = 0
    #: Such a reduction goes down to this share of what a request may fill,
    low_water_percent: int = 28
    #: and to so many tokens, whichever is less.
    low_water_tokens: int = 20_000
    #: Smallest reduction, in tokens, that is made at all.
    minimum_gain_tokens: int = 8_000
    #: Let the API clear old tool results and compact, where the model offers it: above
    #: input_token_budget and compaction_threshold_tokens, for no less than minimum_gain_tokens.
    server_side: bool = False
    #: How many of the newest tool results the API does not clear.
    clear_keep_results: int = 3
    #: Ids of tool calls and numbers of messages that no step may touch; not a site setting.
    pins: frozenset[str | int] = frozenset()

    def room(self, window: int) -> int:
        """Return how much of a model's window a request may fill, in tokens."""
        return window - min(self.window_reserve_tokens, window // RESERVED_SHARE)


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
    "structured": Policy(
        name="structured", input_token_budget=32_000, compaction_threshold_tokens=10_000_000,
        max_conversation_bytes=0, max_conversation_tokens=32_000, round_summary_every=5,
        structure_kept=True,
    ),
    "adaptive": Policy(
        name="adaptive", input_token_budget=0, compaction_threshold_tokens=10_000_000,
        max_conversation_bytes=0, structure_kept=True, compact_above_percent=90,
        recall_list_chars=12_000,
    ),
    "native": Policy(
        name="native", input_token_budget=100_000, compaction_threshold_tokens=150_000,
        structure_kept=True, recall_list_chars=12_000, server_side=True,
    ),
    "off": Policy(
        name="off", input_token_budget=0, max_tool_result_chars=0, compaction_enabled=False,
        max_conversation_bytes=0,
    ),
}  # fmt: skip

#: Lowest and highest allowed values.
BOUNDS: dict[str, tuple[int, int]] = {
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
    "max_conversation_tokens": (0, 10_000_000),
    "round_summary_every": (0, 1_000),
    "verbatim_max_chars": (0, 100_000),
    "recall_list_chars": (500, 100_000),
    "compact_above_percent": (0, 95),
    "low_water_percent": (5, 90),
    "low_water_tokens": (2_000, 10_000_000),
    "minimum_gain_tokens": (500, 1_000_000),
    "clear_keep_results": (0, 1_000),
}
_FLAGS = ("compaction_enabled", "structure_kept", "server_side")
#: What can be set for a site, a user or a conversation.
POLICY_FIELDS = tuple(field.name for field in fields(Policy) if field.name not in ("name", "pins"))


def build_policy(preset: str, *overrides: Mapping[str, Any]) -> Policy:
    """Make a policy from a preset and overrides, later ones winning; raises PolicyError."""
    if preset not in PRESETS:
        raise PolicyError("policy", f"{preset!r} is none of {', '.join(PRESETS)}")
    policy = PRESETS[preset]
    for values in overrides:
        for field, value in values.items():
            policy = replace(policy, **{field: _check_value(field, value)})
    return demand_consistent(policy)


def _check_value(field: str, value: object) -> Any:
    if field in _FLAGS:
        if isinstance(value, bool):
            return value
        raise PolicyError(field, "must be true or false")
    if field in ("verbatim_tools", "tool_policies"):
        return _check_names(field, value)
    if field not in BOUNDS:
        raise PolicyError(field, "is no number of the context policy")
    lowest, highest = BOUNDS[field]
    if not isinstance(value, int) or isinstance(value, bool):
        raise PolicyError(field, "must be a whole number")
    if not lowest <= value <= highest:
        raise PolicyError(field, f"must be from {lowest:,} to {highest:,}")
    return value


def _check_names(field: str, value: object) -> tuple[str, ...]:
    if field == "tool_policies" and isinstance(value, Mapping):
        value = [f"{tool}={rule}" for tool, rule in value.items()]
    if not isinstance(value, (list, tuple)) or not all(isinstance(word, str) for word in value):
        raise PolicyError(field, "must be a list of tool names")
    if field == "tool_policies":
        try:
            dict(map(parse_tool_rule, value))
        except ValueError as error:
            raise PolicyError(field, str(error)) from error
    return tuple(value)


def demand_consistent(policy: Policy) -> Policy:
    """Return the policy unchanged; raises PolicyError when its numbers contradict each other."""
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
    if policy.compact_above_percent and policy.low_water_percent >= policy.compact_above_percent:
        raise PolicyError(
            "low_water_percent",
            f"must be below compact_above_percent ({policy.compact_above_percent})",
        )
    return policy


def dump_policy(policy: Policy) -> dict[str, Any]:
    """Return the policy's numbers as data, for the record."""
    return asdict(policy) | {"pins": sorted(policy.pins, key=str)}
