"""The numbers that decide when and how much the context is reduced, validated together.

Names follow the designs they come from. AGENTWEB_<NAME> sets a number for the site; the overrides
of the user and of the conversation follow, in this order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from conversations.context.errors import ContextError
from conversations.context.policy.share import Share, parse_share
from conversations.context.policy.tool_rules import parse_tool_rule
from conversations.context.translation import gettext_noop, mark_recorded


class PolicyError(ContextError):
    """A policy's number is of the wrong kind, out of range or contradicts another."""

    code = "policy"

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field, self.problem = field, problem


class PolicyConflict(PolicyError):
    """Numbers that are valid one by one contradict each other."""


NO_OBJECT = mark_recorded(gettext_noop("must be an object"))
NO_NUMBER = mark_recorded(gettext_noop("is no number of the context policy"))
NO_THRESHOLD = mark_recorded(gettext_noop("is none of %(names)s"))
_NO_CHOICE = mark_recorded(gettext_noop("%(name)s is none of %(names)s"))
_NO_FLAG = mark_recorded(gettext_noop("must be true or false"))
_NOT_WHOLE = mark_recorded(gettext_noop("must be a whole number"))
_NO_SHARE = mark_recorded(
    gettext_noop("must be a whole number or a share of the window from 1% to 100%")
)
_OUTSIDE = mark_recorded(gettext_noop("must be from %(least)s to %(most)s"))
_NO_LIST = mark_recorded(gettext_noop("must be a list of tool names"))
_NEVER = mark_recorded(
    gettext_noop("must be above %(field)s (%(most)s), or no tool result is ever compacted")
)
_NOT_ABOVE = mark_recorded(gettext_noop("must be above %(field)s (%(most)s)"))
_NOT_BELOW = mark_recorded(gettext_noop("must be below %(field)s (%(most)s)"))
#: The reserve for the answer is at most a fifth of the window.
RESERVED_SHARE = 5
#: The window of shares where no model is known.
USUAL_WINDOW = 200_000


def _number(default: int, bounds: tuple[int, int], words: str) -> Any:
    """Declare a number: its default, its lowest and highest value, and what it does."""
    return field(default=default, metadata={"bounds": bounds, "words": words})


def _option(default: bool | tuple[str, ...], words: str) -> Any:
    """Declare a flag or a list of names, and what it does."""
    return field(default=default, metadata={"words": words})


@dataclass(frozen=True, slots=True)
class Policy:
    """Thresholds in tokens, lengths in characters, sizes in bytes; 0 turns a step off.

    A threshold that was set as a share of the window is here in tokens, and in `shares`.
    """

    #: The preset these numbers started from.
    name: str = "classic"
    input_token_budget: int = _number(
        40_000, (0, 10_000_000),
        gettext_noop("Compact old tool results above so many tokens; 0: never."),
    )  # fmt: skip
    tool_result_retention_chars: int = _number(
        500, (64, 1_000_000), gettext_noop("Characters that compaction leaves of a tool result.")
    )
    max_tool_result_chars: int = _number(
        40_000, (0, 10_000_000),
        gettext_noop("Shorten a tool result longer than this before it is first sent."),
    )  # fmt: skip
    compaction_enabled: bool = _option(
        True, gettext_noop("Whether the model may summarise at all.")
    )
    compaction_threshold_tokens: int = _number(
        80_000, (1_000, 10_000_000), gettext_noop("Summarise the middle above so many tokens.")
    )
    protected_tail_messages: int = _number(
        6, (1, 1_000), gettext_noop("Messages at the end that a summary never touches.")
    )
    summary_input_chars: int = _number(
        100_000, (2_000, 10_000_000), gettext_noop("Characters that a summary call may read.")
    )
    summary_max_tokens: int = _number(
        4_096, (256, 64_000), gettext_noop("Tokens that a summary may have.")
    )
    summary_least_tokens: int = _number(
        0, (0, 10_000_000),
        gettext_noop("Summarise so many tokens or more; less is dropped, and its names listed."),
    )  # fmt: skip
    summary_staged: bool = _option(
        False, gettext_noop("Summarise a long middle in parts, each knowing those before.")
    )
    summary_breaker: int = _number(
        3, (1, 100),
        gettext_noop("Rejected summaries in a row after which none is tried for a while."),
    )  # fmt: skip
    trim_threshold_percent: int = _number(
        60, (0, 100),
        gettext_noop("Trim by bytes only when so many percent of the window are full."),
    )  # fmt: skip
    max_conversation_bytes: int = _number(
        720_000, (0, 30_000_000),
        gettext_noop("Drop the oldest exchanges until the messages fit; 0: never."),
    )  # fmt: skip
    #: Most messages in view, as a last resort; 0: any number.
    max_conversation_messages: int = _number(
        0, (0, 100_000), gettext_noop("Most messages in view; 0: any number.")
    )
    max_conversation_tokens: int = _number(
        0, (0, 10_000_000), gettext_noop("Most tokens in view; 0: any number.")
    )
    round_summary_every: int = _number(
        0, (0, 1_000), gettext_noop("Summarise after so many tool rounds of one turn; 0: never.")
    )
    #: Tokens of the window kept free for the answer, but never more than a fifth of it.
    window_reserve_tokens: int = _number(
        16_000, (1_024, 200_000), gettext_noop("Tokens of the window kept free for the answer.")
    )
    verbatim_tools: tuple[str, ...] = _option(
        (), gettext_noop("Tools whose results are never shortened, separated by commas.")
    )
    #: How results of tools are handled, as tool=rule: keep, head_tail, json, cap N or verbatim.
    tool_policies: tuple[str, ...] = _option(
        (), gettext_noop("tool=rule, separated by commas; keep, head_tail, json, cap N, verbatim.")
    )
    verbatim_max_chars: int = _number(
        8_000, (0, 100_000), gettext_noop("A longer result is not verbatim, whatever its tool.")
    )
    structure_kept: bool = _option(
        False, gettext_noop("Whether compaction keeps JSON as JSON, and head and tail of text.")
    )
    recall_list_chars: int = _number(
        4_000, (500, 100_000), gettext_noop("Characters for the list of what can be recalled.")
    )
    action_list_chars: int = _number(
        800, (300, 100_000), gettext_noop("Characters for the record of what was done.")
    )
    name_list_chars: int = _number(
        0, (0, 100_000),
        gettext_noop("Characters for the user's words and names in what was removed; 0: none."),
    )  # fmt: skip
    #: Below this size nothing is removed, unless a person requests it, or a price tier or the room
    #: of the window demands it; 0: no such promise.
    keep_below_tokens: int = _number(
        0, (0, 10_000_000), gettext_noop("Below so many tokens nothing is removed; 0: no promise.")
    )
    #: The same as a percentage of the window; the smaller of the two applies.
    keep_below_percent: int = _number(
        50, (0, 95), gettext_noop("The same in percent of the window, where that is less.")
    )
    compact_above_percent: int = _number(
        0, (0, 95), gettext_noop("Reduce in one go above so many percent of the room; 0: never.")
    )
    #: Such a reduction goes down to this percent of what a request may fill, or to
    #: low_water_tokens if that is less.
    low_water_percent: int = _number(
        28, (5, 90),
        gettext_noop("Percent of the room that a reduction in one go aims to leave."),
    )  # fmt: skip
    low_water_tokens: int = _number(
        20_000, (2_000, 10_000_000),
        gettext_noop("Tokens that a reduction in one go aims to leave, if that is less."),
    )  # fmt: skip
    minimum_gain_tokens: int = _number(
        8_000, (500, 1_000_000), gettext_noop("Nothing is reduced for less than so many tokens.")
    )
    #: Let the API clear old tool results and compact, where the model offers it: above
    #: input_token_budget and compaction_threshold_tokens, to free minimum_gain_tokens or more.
    server_side: bool = _option(
        False, gettext_noop("Let the API clear and compact by itself, where the model offers it.")
    )
    clear_keep_results: int = _number(
        3, (0, 1_000),
        gettext_noop("Number of the newest tool results that the API does not clear."),
    )  # fmt: skip
    #: A person wants the context sent in full: only the room of the window counts.
    is_in_full: bool = False
    #: Ids of tool calls and numbers of messages that no step may touch; not a site setting.
    pins: frozenset[str | int] = frozenset()
    #: What tool calls did, as name=template (`steps/action_words.py`), and decisions of people on
    #: calls, as (id, verdict): facts of the conversation, neither settings nor recorded.
    actions: tuple[str, ...] = ()
    decisions: tuple[tuple[str, str], ...] = ()
    #: The thresholds that were set as shares of the window, with their percent.
    shares: tuple[tuple[str, int], ...] = ()

    def share(self, name: str) -> Share | None:
        """Return the share that a threshold was set as; None for a number of tokens."""
        percent = dict(self.shares).get(name)
        return Share(percent) if percent else None

    def room(self, window: int) -> int:
        """Return how much of a model's window a request may fill, in tokens."""
        return window - min(self.window_reserve_tokens, window // RESERVED_SHARE)

    @property
    def lists_chars(self) -> int:
        """The characters for the recall list and the record of actions together."""
        return self.recall_list_chars + self.action_list_chars

    def promise(self, window: int) -> int:
        """Return the size below which nothing is removed, in tokens, for a model's window."""
        if self.share("keep_below_tokens"):
            return self.keep_below_tokens
        return min(self.keep_below_tokens, window * self.keep_below_percent // 100)


_DEFAULT = Policy(
    name="adaptive", input_token_budget=0, compaction_threshold_tokens=10_000_000,
    max_conversation_bytes=0, structure_kept=True, compact_above_percent=90,
    summary_input_chars=60_000, keep_below_tokens=100_000, low_water_percent=20,
    low_water_tokens=8_000, recall_list_chars=2_500, name_list_chars=10_000,
)  # fmt: skip
#: The designs that this engine combines; `classic` runs their steps in order. In the recordings a
#: longer recall list, or summaries that read more, kept no more facts usable for `adaptive`.
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
    "staged": Policy(
        name="staged", input_token_budget=0, max_tool_result_chars=0, max_conversation_bytes=0,
        summary_staged=True,
    ),
    "gated-trim": Policy(
        name="gated-trim", input_token_budget=0, max_tool_result_chars=0, compaction_enabled=False,
    ),
    "structured": Policy(
        name="structured", input_token_budget=32_000, compaction_threshold_tokens=10_000_000,
        max_conversation_bytes=0, max_conversation_tokens=32_000, round_summary_every=5,
        structure_kept=True,
    ),
    "adaptive": _DEFAULT,
    "thrifty": replace(_DEFAULT, name="thrifty", keep_below_tokens=0, summary_least_tokens=50_000),
    "native": Policy(
        name="native", input_token_budget=100_000, compaction_threshold_tokens=150_000,
        structure_kept=True, recall_list_chars=12_000, action_list_chars=2_400, server_side=True,
    ),
    "off": Policy(
        name="off", input_token_budget=0, max_tool_result_chars=0, compaction_enabled=False,
        max_conversation_bytes=0,
    ),
}  # fmt: skip

#: Fields that are facts; all others can be set for a site, a user or a conversation.
_FACTS = ("pins", "actions", "decisions")
_NO_SETTINGS = ("name", "is_in_full", "shares", *_FACTS)
POLICY_FIELDS = tuple(field.name for field in fields(Policy) if field.name not in _NO_SETTINGS)
#: Thresholds in tokens, which can be set as shares of the window.
THRESHOLDS = (
    "input_token_budget", "compaction_threshold_tokens", "max_conversation_tokens",
    "window_reserve_tokens", "keep_below_tokens", "low_water_tokens", "minimum_gain_tokens",
    "summary_least_tokens",
)  # fmt: skip
#: What each number does, for people; translated where shown. A field without it fails here.
POLICY_WORDS: dict[str, str] = {
    field.name: field.metadata["words"] for field in fields(Policy) if field.name in POLICY_FIELDS
}
#: Lowest and highest allowed values of the numbers.
BOUNDS: dict[str, tuple[int, int]] = {
    field.name: field.metadata["bounds"] for field in fields(Policy) if "bounds" in field.metadata
}
_FLAGS = tuple(
    name for name in POLICY_FIELDS if isinstance(getattr(PRESETS["classic"], name), bool)
)


def build_policy(
    preset: str,
    *overrides: Mapping[str, Any],
    window: int = USUAL_WINDOW,
    settles_shares: bool = False,
) -> Policy:
    """Make a policy for a model's window from a preset and overrides, later ones winning.

    Raises PolicyError, also where a share contradicts another number at this window. To run with
    `settles_shares` the share yields instead (`settle_shares`).
    """
    if preset not in PRESETS:
        raise PolicyError("policy", name_choices(repr(preset), PRESETS))
    policy, shares = PRESETS[preset], dict[str, int]()
    for values in overrides:
        for name, value in values.items():
            share = parse_share(value) if name in THRESHOLDS else None
            shares.pop(name, None)
            if share is not None:
                shares[name] = share.percent
            number = share.resolve(window, BOUNDS[name]) if share else value
            policy = replace(policy, **{name: _check_value(name, number)})
    policy = replace(policy, shares=tuple(sorted(shares.items())))
    return demand_consistent(settle_shares(policy) if settles_shares else policy)


def name_choices(name: str, choices: Iterable[str]) -> str:
    """Return the problem of a name that is none of these."""
    return _NO_CHOICE % {"name": name, "names": ", ".join(choices)}


def change_numbers(policy: Policy, **numbers: Any) -> Policy:
    """Return the policy with other numbers; a threshold that changes is no share any more."""
    kept = tuple(
        (name, percent)
        for name, percent in policy.shares
        if numbers.get(name, getattr(policy, name)) == getattr(policy, name)
    )
    return replace(policy, shares=kept, **numbers)


def _check_value(field: str, value: object) -> Any:
    if field in _FLAGS:
        if isinstance(value, bool):
            return value
        raise PolicyError(field, _NO_FLAG)
    if field in ("verbatim_tools", "tool_policies"):
        return _check_names(field, value)
    if field not in BOUNDS:
        raise PolicyError(field, NO_NUMBER)
    lowest, highest = BOUNDS[field]
    if not isinstance(value, int) or isinstance(value, bool):
        raise PolicyError(field, _NO_SHARE if field in THRESHOLDS else _NOT_WHOLE)
    if not lowest <= value <= highest:
        raise PolicyError(field, _OUTSIDE % {"least": f"{lowest:,}", "most": f"{highest:,}"})
    return value


def _check_names(field: str, value: object) -> tuple[str, ...]:
    if field == "tool_policies" and isinstance(value, Mapping):
        value = [f"{tool}={rule}" for tool, rule in value.items()]
    if not isinstance(value, (list, tuple)) or not all(isinstance(word, str) for word in value):
        raise PolicyError(field, _NO_LIST)
    if field == "tool_policies":
        try:
            dict(map(parse_tool_rule, value))
        except ValueError as error:
            raise PolicyError(field, str(error)) from error
    return tuple(value)


def settle_shares(policy: Policy) -> Policy:
    """Return the policy with a contradicting share changed to the nearest value that fits.

    A share that suits one window can contradict a number of tokens at another, and no turn may
    fail for that: the share yields, the budget before the threshold. Numbers of tokens do not.
    """
    if not _never_compacts(policy):
        return policy
    if policy.share("input_token_budget"):
        return change_numbers(policy, input_token_budget=policy.compaction_threshold_tokens - 1)
    if policy.share("compaction_threshold_tokens"):
        return change_numbers(policy, compaction_threshold_tokens=policy.input_token_budget + 1)
    return policy


def _never_compacts(policy: Policy) -> bool:
    """Return whether a summary always takes the place of the results to be compacted."""
    budget, threshold = policy.input_token_budget, policy.compaction_threshold_tokens
    return policy.compaction_enabled and budget > 0 and threshold <= budget


def demand_consistent(policy: Policy) -> Policy:
    """Return the policy unchanged; raises PolicyConflict when its numbers contradict each other."""
    if _never_compacts(policy):
        above = {"field": "input_token_budget", "most": f"{policy.input_token_budget:,}"}
        raise PolicyConflict("compaction_threshold_tokens", _NEVER % above)
    limit, kept = policy.max_tool_result_chars, policy.tool_result_retention_chars
    if limit and limit <= kept:
        least = {"field": "tool_result_retention_chars", "most": f"{kept:,}"}
        raise PolicyConflict("max_tool_result_chars", _NOT_ABOVE % least)
    if policy.compact_above_percent and policy.low_water_percent >= policy.compact_above_percent:
        most = {"field": "compact_above_percent", "most": policy.compact_above_percent}
        raise PolicyConflict("low_water_percent", _NOT_BELOW % most)
    return policy


def dump_policy(policy: Policy) -> dict[str, Any]:
    """Return the policy's numbers as data, for the record."""
    left_out = (*_FACTS, "shares")
    numbers = {name: value for name, value in asdict(policy).items() if name not in left_out}
    if policy.shares:
        numbers["shares"] = {name: str(Share(percent)) for name, percent in policy.shares}
    return numbers | {"pins": sorted(policy.pins, key=str)}
