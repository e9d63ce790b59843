"""The effective context policy: the site's, overridden by the model's, the owner's and the
conversation's. Shares of the window are those of the conversation's model.

Each tool declares how its results are treated; a rule of the site, of a person or of a conversation
replaces that tool by tool. A person and a conversation may start from another preset than the
site's (`preset`); numbers that were set explicitly count whatever the preset.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from django.utils.translation import gettext as _

from conversations.conf import PREFIX, conf, read_site_overrides
from conversations.context.policy.allowed import Allowed, clamp_policy, read_allowed
from conversations.context.policy.policy import (
    NO_OBJECT,
    NO_THRESHOLD,
    POLICY_FIELDS,
    POLICY_WORDS,
    PRESETS,
    THRESHOLDS,
    USUAL_WINDOW,
    Policy,
    PolicyConflict,
    PolicyError,
    build_policy,
    name_choices,
)
from conversations.log.context_size import ContextFigures
from conversations.log.settings_version import cached_by_settings_version
from conversations.models import ApiModel, Conversation, User
from conversations.reductions.words import name_number, name_preset
from conversations.templatetags.recorded import translated
from conversations.toolbox.toolset import list_known_tools
from tools.framework.registry import API_TOOL_ACTIONS, TOOLS
from tools.framework.tool import Tool

#: The key of overrides that names a preset, and the field whose rules are merged.
PRESET, RULES = "preset", "tool_policies"
#: The window of a model, and the thresholds that are set for it in the catalogue.
ModelNumbers = tuple[int, Mapping[str, Any]]


def list_tool_rules(tools: Iterable[Tool] = TOOLS.values()) -> tuple[str, ...]:
    """Return the rules that tools declare, including tools that are no longer permitted."""
    return tuple(f"{tool.name}={tool.results}" for tool in tools)


def list_tool_actions(tools: Iterable[Tool] = TOOLS.values()) -> tuple[str, ...]:
    """Return the words of tools for their calls; tools that name their input are left out."""
    own = [f"{tool.name}={tool.action}" for tool in tools if tool.action is not None]
    return (*own, *(f"{name}={words}" for name, words in API_TOOL_ACTIONS.items()))


def effective_policy(
    conversation: Conversation,
    tools: Iterable[Tool] | None = None,
    model: ModelNumbers | None = None,
) -> Policy:
    """Return the policy that a turn of the conversation runs with; raises PolicyError.

    `tools` are the known tools of the conversation, and `model` the numbers of its model, if they
    were already read.
    """
    policy = effective_numbers(conversation, model)
    known = list_known_tools(conversation).tools if tools is None else tools
    # Rules for tools that only this person has; rules set by people override them.
    rules = _latest(list_tool_rules(known), policy.tool_policies)
    return replace(policy, tool_policies=rules, actions=list_tool_actions(known))


def effective_numbers(conversation: Conversation, model: ModelNumbers | None = None) -> Policy:
    """Return the policy with rules for built-in tools only; raises PolicyError."""
    owner, model = conversation.owner, model or read_model_numbers(conversation.model)
    policy = settle_policy(owner.policy, conversation.policy, model=model)
    allowed = allowed_of(owner)
    if not allowed.ranges:
        return policy
    return clamp_policy(policy, settle_policy(owner.policy, model=model), allowed)


def allowed_of(owner: User) -> Allowed:
    """Return the ranges that the owner's conversations may choose from; raises PolicyError."""
    return read_allowed(owner.policy_limits)


@cached_by_settings_version
def read_model_numbers(model: str) -> ModelNumbers:
    """Return the window of a model of the catalogue, and the thresholds set for it."""
    found = ApiModel.objects.filter(pk=model).values_list("window", "thresholds").first()
    return found or (USUAL_WINDOW, {})


@dataclass(frozen=True, slots=True)
class ApiEdits:
    """Whether the API clears tool results and compacts: for a model, under a policy."""

    clears: bool = False
    compacts: bool = False


def read_api_edits(policy: Policy, model: str) -> ApiEdits:
    """Return what the API does itself under a policy; no query where the policy asks for none."""
    return _read_api_edits(model) if policy.server_side else ApiEdits()


@cached_by_settings_version
def _read_api_edits(model: str) -> ApiEdits:
    """Return what the API can do itself for a model; nothing for one that is not there."""
    found = ApiModel.objects.filter(pk=model).values_list("clears", "compacts").first()
    return ApiEdits(*found) if found else ApiEdits()


def read_known_numbers(found: ContextFigures) -> ModelNumbers:
    """Return the numbers of a model from figures that were read with the conversation's."""
    return found.window or USUAL_WINDOW, json.loads(found.thresholds)


def demand_thresholds(given: object, window: int) -> dict[str, Any]:
    """Return what is set for a model of this window; raises PolicyError if it is not valid."""
    if not isinstance(given, Mapping):
        raise PolicyError("policy", NO_OBJECT)
    for name in given:
        if name not in THRESHOLDS:
            raise PolicyError(name, NO_THRESHOLD % {"names": ", ".join(THRESHOLDS)})
    build_policy(conf.policy, read_site_overrides(), given, window=window)
    return dict(given)


def policy_of(
    *overrides: Mapping[str, Any],
    preset: str = "",
    model: ModelNumbers = (USUAL_WINDOW, {}),
    settles_shares: bool = False,
) -> Policy:
    """Return the site's policy for a model with these overrides; raises PolicyError.

    `preset` replaces the preset they name. `settles_shares`: as a turn runs with it, where shares
    that do not suit the model's window yield; without it they are refused, as where they are set.
    """
    window, of_model = model
    levels = [read_site_overrides(), of_model, *overrides]
    if not all(isinstance(level, Mapping) for level in levels):
        raise PolicyError("policy", NO_OBJECT)
    start = preset or preset_of(*overrides)
    numbers = [{name: level[name] for name in level if name != PRESET} for level in levels]
    policy = build_policy(start, *numbers, window=window, settles_shares=settles_shares)
    actions = list_tool_actions()
    rules = [
        build_policy(start, {RULES: level[RULES]}).tool_policies
        for level in numbers
        if RULES in level
    ]
    return replace(policy, tool_policies=_latest(list_tool_rules(), *rules), actions=actions)


def settle_policy(
    *overrides: Mapping[str, Any], model: ModelNumbers = (USUAL_WINDOW, {})
) -> Policy:
    """Return the policy that turns run with; raises PolicyError where an override is invalid.

    What is set in one place can contradict what is set in another later, and no turn may fail for
    that: the thresholds of the model yield, then the last of the overrides, then the one before.
    """
    window, thresholds = model
    for count in range(len(overrides), -1, -1):
        for numbers in (thresholds, {}):
            try:
                return policy_of(*overrides[:count], model=(window, numbers), settles_shares=True)
            except PolicyConflict as error:
                problem = error
    raise problem


def preset_of(*overrides: Mapping[str, Any]) -> str:
    """Return the preset that the last of the overrides names, or the site's."""
    named = [level[PRESET] for level in overrides if PRESET in level]
    name = named[-1] if named else conf.policy
    if not isinstance(name, str) or name not in PRESETS:
        raise PolicyError(PRESET, name_choices(repr(name), PRESETS))
    return name


def _latest(*levels: tuple[str, ...]) -> tuple[str, ...]:
    """Keep the last rule of each tool."""
    found: dict[str, str] = {}
    for rule in (rule for level in levels for rule in level):
        found[rule.partition("=")[0].strip()] = rule
    return tuple(found.values())


#: The numbers that decide, in most presets, whether anything leaves the context.
MAIN_NUMBERS = (
    "keep_below_tokens", "compact_above_percent", "input_token_budget", "compaction_enabled",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Number:
    """One number of a person's policy: the site's value, the effective value and its source."""

    name: str
    value: Any
    source: str
    site: Any
    #: The range a chat may choose from; None when it is not a number, or fixed.
    limits: tuple[int, int] | None
    is_fixed: bool
    #: Set for the person; set for the person or the site.
    is_own: bool
    is_set: bool

    @property
    def is_main(self) -> bool:
        """Whether a person is shown it first: it decides, it was set, or no chat can change it."""
        return self.is_set or self.is_fixed or self.name in MAIN_NUMBERS

    @property
    def label(self) -> str:
        return name_number(self.name)

    @property
    def words(self) -> str:
        """The sentence that says what it does."""
        return _(POLICY_WORDS[self.name])


def list_numbers(user: User) -> list[Number]:
    """Return every number; raises PolicyError where the user's do not fit the site's."""
    overrides, allowed = read_site_overrides(), allowed_of(user)
    site, policy = policy_of(), policy_of(user.policy)
    return [
        Number(
            name,
            read_as_set(policy, name),
            _source(name, overrides, user.policy),
            read_as_set(site, name),
            allowed.limits(name),
            allowed.is_fixed(name),
            name in user.policy,
            name in user.policy or name in overrides,
        )
        for name in POLICY_FIELDS
    ]


def read_as_set(policy: Policy, name: str) -> Any:
    """Return a number as it was set: a share as its text."""
    share = policy.share(name)
    return str(share) if share else getattr(policy, name)


def list_numbers_or_problem(user: User) -> tuple[list[Number], str]:
    """Return every number, or none and the reason why the stored policy is invalid."""
    try:
        return list_numbers(user), ""
    except PolicyError as error:
        return [], translated(str(error))


def _source(name: str, site: Mapping[str, Any], own: Mapping[str, Any]) -> str:
    if name in own:
        return _("this user")
    if name in site:
        return ", ".join((_("the site"), f"{PREFIX}{name.upper()}"))
    return _("the tools") if name == RULES else name_preset(preset_of(own))


def list_offered_presets() -> list[str]:
    """Return the presets that people may choose."""
    return [name for name in PRESETS if not conf.offered_policies or name in conf.offered_policies]


def inherited_policy(conversation: Conversation) -> Policy:
    """Return the policy as it would be without the conversation's own numbers."""
    owner = conversation.owner
    own = conversation.policy if isinstance(conversation.policy, dict) else {}
    preset = {name: own[name] for name in own if name == PRESET}
    model = read_model_numbers(conversation.model)
    base = first_valid_policy((owner.policy,), (), model=model)
    chosen = first_valid_policy((owner.policy, preset), (owner.policy,), (), model=model)
    return clamp_policy(chosen, base, allowed_of(owner))


def first_valid_policy(
    *choices: tuple[Mapping[str, Any], ...], model: ModelNumbers = (USUAL_WINDOW, {})
) -> Policy:
    """Return the policy of the first valid overrides, so a page can show one in any case."""
    *others, last = choices
    for overrides in others:
        try:
            return settle_policy(*overrides, model=model)
        except PolicyError:
            continue
    return settle_policy(*last, model=model)
