"""What the policy in force will reduce next, in order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from django.utils.translation import get_language
from django.utils.translation import gettext as _

from conversations.context.policy.policy import Policy
from conversations.reductions.policy import ApiEdits
from conversations.reductions.words import name_preset
from conversations.rendering.numbers import write_number

_NO_EDITS = ApiEdits()


@dataclass(frozen=True, slots=True)
class OutlineStep:
    """One step; `tokens` is its threshold on the context, None where another criterion decides.

    `share` is what the threshold was set as, where that is a share of the window.
    """

    words: str
    tokens: int | None = None
    short: str = ""
    share: str = ""


@dataclass(frozen=True, slots=True)
class PolicyOutline:
    """The steps of a policy; `first` is the lowest threshold on the context, None without one."""

    policy: str
    steps: tuple[OutlineStep, ...]
    first: int | None


def build_outline(policy: Policy, window: int, api: ApiEdits = _NO_EDITS) -> PolicyOutline:
    """Return what the policy will do to a context of a model with this window."""
    return _build_outline(policy, window, api, get_language())


@lru_cache(maxsize=512)
def _build_outline(
    policy: Policy, window: int, api: ApiEdits, language: str | None
) -> PolicyOutline:
    # Each frame of a turn has it, for the same few policies. Its words are the language's.
    steps = tuple(
        step for step in _steps(policy, window, api) if step.tokens is None or step.tokens < window
    )
    limits = [step for step in steps if step.tokens]
    return PolicyOutline(
        name_preset(policy.name),
        steps,
        min((step.tokens for step in limits if step.tokens), default=None),
    )


def _steps(policy: Policy, window: int, api: ApiEdits) -> Iterator[OutlineStep]:
    if policy.name == "off":
        yield OutlineStep(
            _("Nothing is reduced. What does not fit the model ends the turn with an error.")
        )
        return
    if policy.max_tool_result_chars:
        yield OutlineStep(
            _("A tool result of more than %(n)s characters is shortened before it is first sent.")
            % {"n": write_number(policy.max_tool_result_chars)}
        )
    if policy.compact_above_percent and not policy.is_in_full:
        yield _one_go(policy, window)
    if policy.input_token_budget:
        yield _tool_results(policy, by_api=api.clears)
    if policy.round_summary_every:
        yield OutlineStep(
            _("After %(n)s tool rounds of one turn, finished rounds become a working memory.")
            % {"n": policy.round_summary_every}
        )
    if policy.compaction_enabled:
        yield _summary(policy, by_api=api.compacts)
    yield from _trims(policy, window)
    yield OutlineStep(
        _("What would not leave room for an answer is reduced, whatever the other numbers say."),
        policy.room(window),
        _("room for the answer"),
    )


def _one_go(policy: Policy, window: int) -> OutlineStep:
    words = _(
        "Nothing is removed up to here. Above it the context is reduced in one go, once that"
        " saves more than it costs."
    )
    low = min(policy.low_water_tokens, window * policy.low_water_percent // 100)
    promise = policy.promise(window)
    share = _write_share(policy, "keep_below_tokens" if promise else "low_water_tokens")
    return OutlineStep(words, promise or low, _("nothing is removed before that"), share)


def _write_share(policy: Policy, name: str) -> str:
    share = policy.share(name)
    return str(share) if share else ""


def _tool_results(policy: Policy, *, by_api: bool) -> OutlineStep:
    if by_api:
        words = _("The API clears old tool results, all but the newest %(n)s.")
        return OutlineStep(
            words % {"n": policy.clear_keep_results},
            policy.input_token_budget,
            _("the API clears tool results"),
            _write_share(policy, "input_token_budget"),
        )
    words = _("Tool results before the latest are shortened to %(n)s characters.")
    return OutlineStep(
        words % {"n": write_number(policy.tool_result_retention_chars)},
        policy.input_token_budget,
        _("tool results are compacted"),
        _write_share(policy, "input_token_budget"),
    )


def _summary(policy: Policy, *, by_api: bool) -> OutlineStep:
    words = _("A summary takes the place of the middle; the last %(n)s messages stay.")
    if by_api:
        words = _("The API compacts the beginning; the last %(n)s messages stay.")
    return OutlineStep(
        words % {"n": policy.protected_tail_messages},
        policy.compaction_threshold_tokens,
        _("a summary is built"),
        _write_share(policy, "compaction_threshold_tokens"),
    )


def _trims(policy: Policy, window: int) -> Iterator[OutlineStep]:
    if policy.max_conversation_tokens:
        yield OutlineStep(
            _("The oldest exchanges are dropped."),
            policy.max_conversation_tokens,
            _("the oldest exchanges are dropped"),
            _write_share(policy, "max_conversation_tokens"),
        )
    if policy.max_conversation_messages:
        yield OutlineStep(
            _("Above %(n)s messages the oldest exchanges are dropped.")
            % {"n": write_number(policy.max_conversation_messages)}
        )
    if policy.max_conversation_bytes:
        gate = window * policy.trim_threshold_percent // 100
        yield OutlineStep(
            _("Above %(gate)s tokens, messages of more than %(n)s bytes lose the oldest exchanges.")
            % {"gate": write_number(gate), "n": write_number(policy.max_conversation_bytes)}
        )
