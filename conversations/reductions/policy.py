"""The context policy that counts: the site's, with the owner's and the conversation's on top.

How a tool's results are handled is declared with the tool; a rule of the site, of a person or of a
conversation replaces it tool by tool. A person and a conversation may start from another preset
than the site (`preset`); what was set explicitly counts whatever the preset.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from conversations.conf import PREFIX, conf, site_overrides
from conversations.context.policy.allowed import Allowed, allowed_from, within
from conversations.context.policy.policy import (
    POLICY_FIELDS,
    PRESETS,
    Policy,
    PolicyError,
    policy_from,
)
from conversations.models import Conversation, User
from conversations.toolbox.toolset import list_known_tools
from tools.framework.registry import TOOLS
from tools.framework.tool import Tool

#: The key of overrides that names a preset, and the field of the rules that add up.
PRESET, RULES = "preset", "tool_policies"


def list_tool_rules(tools: Iterable[Tool] = TOOLS.values()) -> tuple[str, ...]:
    """Return the rules that the tools declare, also those that may not be used any more."""
    return tuple(f"{tool.name}={tool.results}" for tool in tools)


def effective_policy(conversation: Conversation, tools: Iterable[Tool] | None = None) -> Policy:
    """Return the policy a turn of the conversation runs with; raises PolicyError.

    `tools` are those that it knows, where they were read already.
    """
    policy = effective_numbers(conversation)
    known = list_known_tools(conversation).tools if tools is None else tools
    # Rules for tools that only this person has; what is said about them elsewhere counts.
    rules = _latest(list_tool_rules(known), policy.tool_policies)
    return replace(policy, tool_policies=rules)


def effective_numbers(conversation: Conversation) -> Policy:
    """Return the policy without the rules of other tools than ours; raises PolicyError."""
    owner = conversation.owner
    policy, allowed = policy_of(owner.policy, conversation.policy), allowed_of(owner)
    return within(policy, policy_of(owner.policy), allowed) if allowed.ranges else policy


def allowed_of(owner: User) -> Allowed:
    """Return what the person's conversations may set; raises PolicyError."""
    return allowed_from(owner.policy_limits)


def policy_of(*overrides: Mapping[str, Any], preset: str = "") -> Policy:
    """Return the site's policy with these overrides; `preset` counts before all that they name."""
    levels = [site_overrides(), *overrides]
    if not all(isinstance(level, Mapping) for level in levels):
        raise PolicyError("policy", "must be an object")
    start = preset or preset_of(*overrides)
    numbers = [{name: level[name] for name in level if name != PRESET} for level in levels]
    policy = policy_from(start, *numbers)
    rules = [
        policy_from(start, {RULES: level[RULES]}).tool_policies
        for level in numbers
        if RULES in level
    ]
    return replace(policy, tool_policies=_latest(list_tool_rules(), *rules))


def preset_of(*overrides: Mapping[str, Any]) -> str:
    """Return the preset that the last of the overrides names, or the site's."""
    named = [level[PRESET] for level in overrides if PRESET in level]
    name = named[-1] if named else conf.policy
    if not isinstance(name, str) or name not in PRESETS:
        raise PolicyError(PRESET, f"{name!r} is none of {', '.join(PRESETS)}")
    return name


def _latest(*levels: tuple[str, ...]) -> tuple[str, ...]:
    """Keep the last rule of each tool."""
    found: dict[str, str] = {}
    for rule in (rule for level in levels for rule in level):
        found[rule.partition("=")[0].strip()] = rule
    return tuple(found.values())


@dataclass(frozen=True, slots=True)
class Number:
    """One number of a person's policy: what the site gives, what counts, and where it is from."""

    name: str
    value: Any
    source: str
    site: Any
    #: What a chat may choose; None: it is no number, or fixed.
    limits: tuple[int, int] | None
    is_fixed: bool


def list_numbers(user: User) -> list[Number]:
    """Return every number; raises PolicyError where the user's do not fit the site's."""
    overrides, allowed = site_overrides(), allowed_of(user)
    site, policy = policy_of(), policy_of(user.policy)
    return [
        Number(
            name,
            getattr(policy, name),
            _source(name, overrides, user.policy),
            getattr(site, name),
            allowed.limits(name),
            allowed.is_fixed(name),
        )
        for name in POLICY_FIELDS
    ]


def list_numbers_or_problem(user: User) -> tuple[list[Number], str]:
    """Return every number, or why what is stored does not count."""
    try:
        return list_numbers(user), ""
    except PolicyError as error:
        return [], str(error)


def _source(name: str, site: dict[str, Any], own: dict[str, Any]) -> str:
    if name in own:
        return "this user"
    if name in site:
        return f"site, {PREFIX}{name.upper()}"
    return "the tools" if name == RULES else f"preset {preset_of(own)}"


def list_offered_presets() -> list[str]:
    """Return the presets that people may choose."""
    return [name for name in PRESETS if not conf.offered_policies or name in conf.offered_policies]


def inherited_policy(conversation: Conversation) -> Policy:
    """Return the policy as it would be without the conversation's own numbers."""
    owner = conversation.owner
    own = conversation.policy if isinstance(conversation.policy, dict) else {}
    preset = {name: own[name] for name in own if name == PRESET}
    base = first_valid_policy((owner.policy,), ())
    return within(
        first_valid_policy((owner.policy, preset), (owner.policy,), ()), base, allowed_of(owner)
    )


def first_valid_policy(*choices: tuple[Mapping[str, Any], ...]) -> Policy:
    """Return the policy of the first overrides that fit: a page may show it while others do not."""
    *others, last = choices
    for overrides in others:
        try:
            return policy_of(*overrides)
        except PolicyError:
            continue
    return policy_of(*last)
