"""Why a change was made, how accurate its estimate was, and what it has cost and saved since.

Savings are an estimate: the removed tokens, at the price of reading them from the cache, for each
call made since without them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

from django.db.models import Q, Sum
from django.utils import timezone
from django.utils.translation import gettext as _

from conversations.budgets.prices import load_price_list
from conversations.conf import PREFIX, read_site_overrides
from conversations.context.policy.policy import POLICY_FIELDS, PRESETS
from conversations.context.view import wire
from conversations.log.context_size import measure_request
from conversations.log.entries import list_numbers_after
from conversations.models import ApiCall, Conversation, Transformation, User
from conversations.reductions.policy import RULES, read_model_numbers
from conversations.reductions.removed_originals import UNDO
from conversations.reductions.words import name_number, name_preset

#: Calls with reported figures: of a request that is all in the prompt cache, `input_tokens` is 0.
_HAS_FIGURES = (
    Q(result__input_tokens__gt=0)
    | Q(result__cache_read_tokens__gt=0)
    | Q(result__cache_write_tokens__gt=0)
)


@dataclass(frozen=True, slots=True)
class PolicyNumber:
    """One number of the policy that was in force, and where it came from."""

    name: str
    value: str
    origin: str
    has_fired: bool


@dataclass(frozen=True, slots=True)
class Explanation:
    """Facts about a change; `version` is a short digest of the policy's numbers.

    `counted` is what the API reported for the next call where `estimated` was expected, and `error`
    the difference in percent. Money is in micro-dollars.
    """

    actor: str
    role: str
    version: str
    policy: tuple[PolicyNumber, ...]
    estimated: int | None = None
    counted: int | None = None
    error: float | None = None
    calls_since: int = 0
    saved_tokens: int = 0
    saved_micros: int | None = None
    summary_micros: int = 0
    rewritten_micros: int | None = None
    is_taken_back: bool = False


def explain_change(conversation: Conversation, row: Transformation) -> Explanation:
    """Return the facts about a change besides its own figures."""
    snapshot = json.loads(row.policy)
    made = Explanation(
        actor=row.actor.get_username() if row.actor else "",
        role=_describe_role(conversation, row),
        version=wire.digest(row.policy).removeprefix("sha256:")[:8],
        policy=tuple(_list_policy(conversation, snapshot, row.setting)),
    )
    if row.outcome != "applied":
        return made
    undone = conversation.transformations.filter(setting=UNDO, parent=row.parent, seq__gt=row.seq)
    calls = _list_calls_since(conversation, row)
    return _add_figures(made, row, calls, is_taken_back=undone.exists())


def _list_calls_since(conversation: Conversation, row: Transformation) -> list[int]:
    """Return the keys of the calls whose request had the change, oldest first."""
    after = list_numbers_after(conversation, row.seq)
    calls = ApiCall.objects.filter(
        _HAS_FIGURES, conversation=conversation, purpose="reply", tip__gte=row.seq
    )
    return [key for key, tip in calls.order_by("pk").values_list("pk", "tip") if tip in after]


def _describe_role(conversation: Conversation, row: Transformation) -> str:
    if row.actor is None:
        return _("automatic")
    if row.actor_id == conversation.owner_id:
        return _("the person whose chat it is")
    return _("an administrator")


def _add_figures(
    made: Explanation, row: Transformation, calls: list[int], *, is_taken_back: bool
) -> Explanation:
    estimated = counted = error = None
    if calls:
        first = ApiCall.objects.select_related("result").get(pk=calls[0])
        estimated, counted = first.estimated_tokens, measure_request(first.result)
        error = round((estimated - counted) * 100 / counted, 1) if counted else None
    since, freed = len(calls), max(0, row.tokens_before - row.tokens_after)
    rates = load_price_list(row.conversation.model, timezone.now()).rates
    saved = since * freed * rates.cache_read // 1_000_000 if rates else None
    summary_cost = 0
    if row.summary_call is not None:
        summary_cost = ApiCall.objects.filter(
            turn=row.summary_call.turn_id, purpose="summary", tip=row.summary_call.tip
        ).aggregate(sum=Sum("result__cost_micros"))["sum"]
    return replace(
        made,
        estimated=estimated,
        counted=counted,
        error=error,
        calls_since=since,
        saved_tokens=since * freed,
        saved_micros=saved,
        summary_micros=summary_cost or 0,
        rewritten_micros=_read_cache_cost(row.decision),
        is_taken_back=is_taken_back,
    )


def _read_cache_cost(decision: str) -> int | None:
    """Return what a manual change cost in cache writes; other changes state it in `decision`."""
    found = json.loads(decision) if decision else {}
    return found["cost"] if found.get("why") == "asked" and found["saved_each"] else None


def _list_policy(
    conversation: Conversation, snapshot: dict[str, Any], setting: str
) -> list[PolicyNumber]:
    """Return each number with its origin; one set differently by now is "changed since"."""
    owner = User.objects.only("policy").get(pk=conversation.owner_id)
    levels = (
        (conversation.policy, _("this chat")),
        (owner.policy, _("this user")),
        (read_model_numbers(conversation.model)[1], _("this model")),
        (read_site_overrides(), ""),
    )
    preset = PRESETS.get(snapshot.get("name", ""))
    found: list[PolicyNumber] = []
    shares = snapshot.get("shares", {})
    for name in POLICY_FIELDS:
        if name not in snapshot:
            continue
        value = shares.get(name, snapshot[name])
        origin = ""
        for level, label in levels:
            if isinstance(level, dict) and name in level and _is_same(level[name], value):
                origin = label or ", ".join((_("the site"), f"{PREFIX}{name.upper()}"))
                break
        if not origin and preset is not None and _is_same(getattr(preset, name), value):
            origin = name_preset(preset.name)
        if not origin:
            origin = _("the tools") if name == RULES else _("changed since")
        words = _format_value(snapshot[name])
        if name in shares:
            words += f" {_('(%(share)s of the window)') % {'share': shares[name]}}"
        found.append(PolicyNumber(name_number(name), words, origin, name == setting))
    return sorted(found, key=lambda one: not one.has_fired)


def _is_same(one: Any, other: Any) -> bool:
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return list(one) == list(other)
    return bool(one == other)


def _format_value(value: Any) -> str:
    if isinstance(value, bool):
        return _("on") if value else _("off")
    if isinstance(value, int):
        return f"{value:,}"
    return ", ".join(map(str, value)) or "–" if isinstance(value, list | tuple) else str(value)
