"""How the results of each tool are handled, and which of them no step may touch.

A rule is written `tool=rule`: `keep` (in full until summarised or dropped), `head_tail` (as text,
even if it is JSON), `json` (structure kept: the default), `cap N` (its own limit before it is first
sent), `verbatim` (never shortened, summarised or dropped). Verbatim results are limited in size,
each and in total, so that a context can always be reduced; pins are a person's decision and have no
such limit.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

from conversations.context.policy.policy import Policy
from conversations.context.policy.tool_rules import Rule, Way, parse_tool_rule
from conversations.context.steps.shorten_results import index_calls
from conversations.context.view.view import Message, View

#: The total of verbatim results is limited to so many times the limit of one.
_MOST_VERBATIM = 4
_WHOLE = ("", "restore", "repair")
_DEFAULT = Rule("json")


@lru_cache(maxsize=64)
def _rules(policies: tuple[str, ...], verbatim: tuple[str, ...]) -> dict[str, Rule]:
    return dict(map(parse_tool_rule, policies)) | dict.fromkeys(verbatim, Rule("verbatim"))


def find_rule(view: View, result: str, policy: Policy) -> Rule:
    """Return the rule for the result of a call."""
    rules = _rules(policy.tool_policies, policy.verbatim_tools)
    call = index_calls(view).get(result) if rules else None
    return rules.get(call.name, _DEFAULT) if call else _DEFAULT


def list_tools(policy: Policy, way: Way) -> frozenset[str]:
    """Return the names of the tools with such a rule."""
    rules = _rules(policy.tool_policies, policy.verbatim_tools)
    return frozenset(name for name, rule in rules.items() if rule.way == way)


def find_untouchable(view: View, policy: Policy) -> set[str]:
    """Return the ids of the results that must stay unchanged: verbatim and pinned ones."""
    tools = list_tools(policy, "verbatim")
    if not tools and not policy.pins:
        return set()
    most = policy.verbatim_max_chars
    key = ("untouchable", tools, most, policy.pins)
    return view.fold_cached(key, lambda: _Found(tools, most, policy.pins), _Found.read).ids


def is_pinned(message: Message, policy: Policy) -> bool:
    """Return whether the whole message is pinned."""
    return message.seq in policy.pins


@dataclass(slots=True)
class _Found:
    """Ids of the untouchable results in the messages read so far."""

    tools: frozenset[str]
    most: int
    pins: frozenset[str | int]
    ids: set[str] = field(default_factory=set)
    used: int = 0
    calls_of_tools: set[str] = field(default_factory=set)

    def read(self, message: Message) -> None:
        shape = message.shape
        self.calls_of_tools.update(call.id for call in shape.calls if call.name in self.tools)
        for result in shape.results:
            if result.id in self.pins or message.seq in self.pins:
                self.ids.add(result.id)
            elif result.id in self.calls_of_tools and result.chars <= self.most:
                is_whole = not message.by or message.by[result.at] in _WHOLE
                if is_whole and self.used + result.chars <= _MOST_VERBATIM * self.most:
                    self.used += result.chars
                    self.ids.add(result.id)
