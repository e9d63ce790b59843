"""What a conversation's turns run with: model, effective policy, instructions, tools, limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.utils import timezone

from conversations.accounts.people import read_owner_preferences
from conversations.agent.prices import PriceList
from conversations.agent.thinking import EFFORTS, choose_effort
from conversations.budgets.caps import TurnCaps, resolve_turn_caps
from conversations.budgets.prices import find_usable_model, load_price_list
from conversations.budgets.usage.closed_days import reopen_days
from conversations.budgets.usage.savings import filter_unanswered
from conversations.conf import conf
from conversations.context.errors import ContextError
from conversations.context.policy.continuation import Continuation
from conversations.context.policy.policy import Policy
from conversations.context.translation import gettext_noop, mark_recorded
from conversations.context.view import wire
from conversations.context.view.cost_decision import Rates
from conversations.context.view.view import Message
from conversations.db import transact
from conversations.log.chain import lock_conversation
from conversations.log.page_version import raise_locked
from conversations.log.path import read_path
from conversations.log.settings_version import cached_by_settings_version, may_have_rows
from conversations.log.texts import make_storable
from conversations.models import ApiModel, Conversation, EffortRule
from conversations.reductions.in_full import apply_in_full
from conversations.reductions.pins import demand_pin_room, list_pins
from conversations.reductions.policy import effective_policy
from conversations.toolbox.toolset import build_toolset, list_known_tools
from conversations.turns.call_counts import current_continuation
from tools.framework.toolset import Supply, Toolset

_NO_MODEL = mark_recorded(
    gettext_noop(
        "The model %(model)s is not available to you: it is not in the catalogue, not enabled, or"
        " kept for other groups. Choose another one; an administrator can change that."
    )
)


class ModelUnknown(ContextError):
    code = "model_unknown"


@dataclass(frozen=True, slots=True)
class JobFacts:
    model: str
    window: int
    max_output: int
    thinking: str
    policy: Policy
    prices: PriceList
    instructions: str
    effort: str
    clears: bool
    compacts: bool
    caps: TurnCaps
    tools: Toolset
    continuation: Continuation
    summary_rates: Rates | None = None
    #: The same for the model that continues when this one declines.
    fallback: JobFacts | None = None

    @property
    def rates(self) -> Rates | None:
        """The prices that the engine decides by."""
        return choose_rates(self.prices)


def choose_rates(prices: PriceList) -> Rates | None:
    """Return the prices that the engine decides by: without the long cache where it is off."""
    rates = prices.rates
    return rates if rates is None or conf.long_cache else replace(rates, cache_write_1h=0)


def load_summary_prices(when: datetime) -> PriceList | None:
    """Return the prices of the model that writes all summaries; None where each model does."""
    return load_price_list(conf.summary_model, when) if conf.summary_model else None


def load_summary_rates(when: datetime) -> Rates | None:
    """Return what the engine weighs summaries by; None where each model writes its own."""
    prices = load_summary_prices(when)
    return None if prices is None else prices.rates


def read_job_facts(conversation_id: int, turn: int = 0) -> JobFacts:
    """Read what a turn runs with; raises ModelUnknown or PolicyError with a text for people."""
    return read_facts_of(Conversation.objects.select_related("owner").get(pk=conversation_id), turn)


def read_facts_of(conversation: Conversation, turn: int = 0) -> JobFacts:
    """Do as `read_job_facts` does for a conversation just read; it is left with another model."""
    model = find_usable_model(conversation.owner_id, conversation.model)
    if model is None:
        raise ModelUnknown(_NO_MODEL % {"model": conversation.model})
    known = list_known_tools(conversation)
    facts = _read_facts(conversation, model, known, turn)
    refusing = conf.fallback_model
    fallback = find_usable_model(conversation.owner_id, refusing) if refusing else None
    if fallback is None or fallback == model:
        return facts
    # As if this model were chosen: the tools depend on the model, too.
    conversation.model = fallback.pk
    return replace(facts, fallback=_read_facts(conversation, fallback, known, turn))


def _read_facts(conversation: Conversation, model: ApiModel, known: Supply, turn: int) -> JobFacts:
    """Read what a turn runs with; `conversation`, saved or not, names the same model."""
    own = model.window, model.thresholds
    return JobFacts(
        model.pk,
        model.window,
        model.max_output,
        model.thinking,
        apply_in_full(effective_policy(conversation, known.tools, own), conversation, turn),
        load_price_list(model.pk, timezone.now()),
        write_instructions(conversation),
        find_effort(conversation, model.pk),
        model.clears,
        model.compacts,
        resolve_turn_caps(conversation.owner_id),
        build_toolset(conversation, known),
        current_continuation(),
        load_summary_rates(timezone.now()),
    )


def write_instructions(conversation: Conversation) -> str:
    """Return what the person tells the model: in all their chats, then in this one."""
    own = read_owner_preferences(conversation).instructions
    if not own:
        return conversation.instructions
    texts = [f"What the person says for all their chats:\n\n{own}"]
    if conversation.instructions:
        texts.append(f"What they say for this chat:\n\n{conversation.instructions}")
    return "\n\n".join(texts)


def find_default_effort(owner_id: int) -> str:
    """Return the highest level of a person's groups, else the site's; "": none."""
    return max(_list_group_efforts(owner_id), key=EFFORTS.index, default=conf.effort)


@cached_by_settings_version
def _list_group_efforts(owner_id: int) -> tuple[str, ...]:
    if not may_have_rows(EffortRule):
        return ()
    rules = EffortRule.objects.filter(group__user=owner_id)
    return tuple(rules.values_list("effort", flat=True))


def find_effort(conversation: Conversation, model: str) -> str:
    """Return the level that requests of this model carry; "": none, the model decides."""
    wanted = conversation.effort or find_default_effort(conversation.owner_id)
    return choose_effort(model, wanted)


@transact
def change_settings(
    *,
    conversation_id: int,
    model: str,
    instructions: str,
    policy: Mapping[str, Any],
    effort: str = "",
    cost_centre: int | None = None,
) -> Conversation:
    """Store what the next turns run with; raises ManualChangeError when pins exceed the model.

    A running turn keeps its settings; one that waits for a person, or is taken over, goes on with
    those in force then. Each call records its model and parameters, and each transformation its
    policy, so the settings in force at any moment stay known.
    """
    conversation = lock_conversation(conversation_id)
    conversation.policy = dict(policy)
    conversation.instructions = make_storable(wire.clean(instructions))
    conversation.cost_centre_id = cost_centre
    _store(conversation, model, effort, "instructions", "policy", "cost_centre")
    return conversation


@transact
def change_model(*, conversation_id: int, model: str = "", effort: str | None = None) -> None:
    """Store another model or level as `change_settings` does; "" and None: unchanged."""
    conversation = lock_conversation(conversation_id)
    level = conversation.effort if effort is None else effort
    _store(conversation, model or conversation.model, level)


def _store(conversation: Conversation, model: str, effort: str, *fields: str) -> None:
    """Store model, effort and the named fields of a locked conversation."""
    is_other = model != conversation.model
    held = list_pins(conversation) if is_other else frozenset()
    conversation.model, conversation.effort = model, effort
    if held:
        log = [entry for entry in read_path(conversation) if isinstance(entry, Message)]
        demand_pin_room(conversation, log, held)
    raise_locked(conversation)
    conversation.save(update_fields=["model", "effort", "version", "updated_at", *fields])
    if is_other:
        reopen_days(filter_unanswered(conversation.transformations.all()))
