"""The model and the effort of a conversation, as people choose them.

The levels are those of the model; a stored level that it lacks is replaced by the nearest, and the
page says so. The level in force is the conversation's, else that of the person's groups, else the
site's, else the model's. Prices are those in force, never an estimate of what an answer will cost.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from conversations.agent.thinking import choose_effort, find_thinking_facts
from conversations.budgets.prices import filter_models_of, list_token_prices
from conversations.models import Conversation
from conversations.reductions.conversation_settings import find_default_effort
from conversations.rendering.model_names import name_model

#: The name and purpose of each level.
LEVELS: dict[str, tuple[Promise, Promise]] = {
    "low": (_("Low"), _("quickest and cheapest")),
    "medium": (_("Medium"), _("for everyday questions")),
    "high": (_("High"), _("thorough, and dearer")),
    "xhigh": (_("Very high"), _("for hard problems")),
    "max": (_("Maximum"), _("as long as it takes, the dearest")),
}
#: The strengths of a model family, by a word of the model's id.
_FAMILIES: dict[str, Promise] = {
    "haiku": _("Fast and cheap, for short tasks"),
    "sonnet": _("For most work"),
    "opus": _("For long and difficult work"),
    "fable": _("For the hardest problems"),
    "mythos": _("For the hardest problems"),
}


@dataclass(frozen=True, slots=True)
class ModelOption:
    """A model to choose; prices in micro-dollars per million tokens, None where it has none."""

    id: str
    name: str
    use: Promise | str
    window: int
    input_price: int | None
    output_price: int | None
    is_chosen: bool


@dataclass(frozen=True, slots=True)
class Level:
    """A level of effort; `value` is the stored one, "" for the default."""

    value: str
    name: Promise
    use: Promise
    is_default: bool
    is_chosen: bool


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """The models and levels to choose from; `levels` is () where the model has no effort.

    `lacking` is the level that was chosen and that this model lacks.
    """

    model: str
    name: str
    models: tuple[ModelOption, ...]
    levels: tuple[Level, ...]
    level: Promise | str
    lacking: Promise | str
    output_price: int | None
    #: Whether the chosen model is no longer offered.
    is_gone: bool


def read_model_choice(owner_id: int, model: str, effort: str) -> ModelChoice:
    """Return what a person can choose, with this model and level as the chosen ones."""
    prices = list_token_prices(timezone.now())
    rows = filter_models_of(owner_id).values_list("pk", "window")
    models = tuple(
        ModelOption(
            name,
            name_model(name),
            _find_use(name),
            window,
            *prices.get(name, (None, None)),
            name == model,
        )
        for name, window in rows
    )
    levels = _list_levels(model, effort, find_default_effort(owner_id))
    is_lacking = bool(levels) and bool(effort) and choose_effort(model, effort) != effort
    return ModelChoice(
        model,
        name_model(model),
        models,
        levels,
        next((level.name for level in levels if level.is_chosen), ""),
        LEVELS[effort][0] if is_lacking else "",
        prices.get(model, (None, None))[1],
        is_gone=all(option.id != model for option in models),
    )


def read_choice_of(conversation: Conversation) -> ModelChoice:
    """Return the choice for a stored conversation, with its model and level as the chosen ones."""
    return read_model_choice(conversation.owner_id, conversation.model, conversation.effort)


def _list_levels(model: str, effort: str, default: str) -> tuple[Level, ...]:
    facts = find_thinking_facts(model)
    usual = choose_effort(model, default) or facts.effort
    chosen = choose_effort(model, effort) or usual
    return tuple(
        Level("" if name == usual else name, *LEVELS[name], name == usual, name == chosen)
        for name in facts.efforts
    )


def _find_use(model: str) -> Promise | str:
    return next((use for word, use in _FAMILIES.items() if word in model.split("-")), "")
