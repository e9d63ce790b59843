"""The models and what each of them takes and does, read from `model_facts.json`.

A row of that file is one fact of some models, with its source and date; what is not documented
says so in its source. Every model has every fact once, so that a rule asks `model.prefill` and
neither names a model nor knows a figure of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from agentweb.emulator import json_codec

Thinking = Literal["adaptive", "enabled", "disabled", "between_tools"]
Tokenizer = Literal["older", "newer"]
FACTS = Path(__file__).with_name("model_facts.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    id: str
    name: str
    line: str
    released: str
    #: The days on which it was deprecated and retired; it is served here after that too.
    deprecated: str | None
    retires: str | None
    window: int
    max_output: int
    min_cacheable: int
    thinking: frozenset[Thinking]
    #: It thinks even when the request does not ask for it.
    thinks_by_default: bool
    display: Literal["summarized", "omitted"]
    efforts: tuple[str, ...]
    default_effort: str
    #: The highest effort at which thinking may be switched off.
    disable_up_to: str
    tokenizer: Tokenizer
    sampling: bool
    prefill: bool
    forced_tools: bool
    #: Types of the API's own tools that it does not accept.
    lacks_tools: frozenset[str]
    system_messages: bool
    #: Signatures of thinking cover everything before it.
    bound_prefix: bool
    #: Signatures of thinking are bound to one organization.
    bound_account: bool
    #: `error` is the default for every account, not only for new ones.
    strict_binding: bool
    keeps_thinking: bool
    #: The other models that can read its thinking.
    read_by: frozenset[str]
    #: Text between tool calls is sent as thinking.
    narrates_in_thinking: bool
    auto_compaction: bool
    on_demand_compaction: bool
    #: Inference can be kept in one country, for a surcharge of 10 %.
    regional: bool
    #: Price of a token of a fast answer in standard tokens; 0: it has no fast mode.
    fast_rate: int

    @property
    def lifecycle(self) -> str:
        return "deprecated" if self.deprecated else "active"


_SETS = frozenset({"thinking", "lacks_tools", "read_by"})


def _read_models(path: Path) -> tuple[Model, ...]:
    """Return a model for each id of the file; raises ValueError if a fact is given twice."""
    told = json_codec.decode(path.read_bytes())
    rows: dict[str, json_codec.Object] = {name: {"id": name} for name in told["models"]}
    for row in told["facts"]:
        fact, value = row["fact"], row["value"]
        for name in rows if row["models"] == "all" else row["models"]:
            if fact in rows[name]:
                raise ValueError(f"{path.name}: {fact} of {name} is told twice")
            rows[name][fact] = _freeze(fact, value)
    return tuple(Model(**row) for row in rows.values())


def _freeze(fact: str, value: json_codec.Value) -> json_codec.Value:
    if fact in _SETS:
        return frozenset(value)
    return tuple(value) if isinstance(value, list) else value


MODELS = _read_models(FACTS)
_ALIASES: Mapping[str, str] = {
    "claude-haiku-4-5": "claude-haiku-4-5-20251001",
    "claude-sonnet-4-5": "claude-sonnet-4-5-20250929",
    "claude-opus-4-5": "claude-opus-4-5-20251101",
}
_BY_ID: Mapping[str, Model] = {model.id: model for model in MODELS}


def find_model(name: str) -> Model | None:
    """Return the model of a name; a suffix `+fault` orders a fault and is not part of the name."""
    plain, _, _ = name.partition("+")
    return _BY_ID.get(_ALIASES.get(plain, plain))


def is_readable(model: Model, *, by: Model) -> bool:
    """Return whether another model can read the thinking of a model."""
    return model.id == by.id or by.id in model.read_by
