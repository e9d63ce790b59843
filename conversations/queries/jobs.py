"""What a turn runs with: its model's facts, the effective policy, the instructions, the tools."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils import timezone

from conversations.context.errors import ContextError
from conversations.context.policy import Policy
from conversations.models import ApiModel, Conversation
from conversations.prices import PriceList
from conversations.queries.caps import TurnCaps, turn_caps
from conversations.queries.policies import effective_policy
from conversations.queries.prices import price_list
from conversations.queries.toolsets import known_tools, toolset
from tools.toolset import Toolset


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
    clears: bool
    compacts: bool
    caps: TurnCaps
    tools: Toolset


def job_facts(conversation_id: int) -> JobFacts:
    """Read them; raises ModelUnknown or PolicyError with words for the person."""
    conversation = Conversation.objects.select_related("owner").get(pk=conversation_id)
    model = ApiModel.objects.filter(pk=conversation.model, is_enabled=True).first()
    if model is None:
        raise ModelUnknown(
            f"The model {conversation.model} is not in the catalogue or not enabled;"
            " an administrator can change that."
        )
    known = known_tools(conversation)
    return JobFacts(
        model.pk,
        model.window,
        model.max_output,
        model.thinking,
        effective_policy(conversation, known.tools),
        price_list(model.pk, timezone.now()),
        conversation.instructions,
        model.clears,
        model.compacts,
        turn_caps(conversation.owner_id),
        toolset(conversation, known),
    )
