"""The models and the parameters that each of them accepts.

One row per model, abilities as plain fields, so that a rule asks `model.prefill` and never compares
names. Figures the sheet marks unverified are filled from the nearest sibling: the minimum cacheable
prefix of Sonnet 5.5 and Haiku 5.5 (1,024) and their acceptance of `between_tools`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Thinking = Literal["adaptive", "enabled", "disabled", "between_tools"]
Tokenizer = Literal["older", "newer"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    id: str
    name: str
    line: str
    released: str
    window: int = 1_000_000
    max_output: int = 128_000
    min_cacheable: int = 1_024
    lifecycle: Literal["active", "deprecated"] = "active"
    thinking: frozenset[Thinking] = frozenset({"adaptive", "disabled"})
    #: Thinks even when the request does not ask for it.
    thinks_by_default: bool = False
    display: Literal["summarized", "omitted"] = "omitted"
    efforts: tuple[str, ...] = ("low", "medium", "high", "xhigh", "max")
    default_effort: str = "high"
    #: Thinking may be switched off only up to this effort.
    disable_up_to: str = "max"
    tokenizer: Tokenizer = "newer"
    sampling: bool = False
    prefill: bool = False
    forced_tools: bool = True
    system_messages: bool = True
    #: Thinking is signed over everything before it.
    bound_prefix: bool = True
    #: Thinking is signed for one organization.
    bound_account: bool = False
    #: `error` is the default for every account, not only for new ones.
    strict_binding: bool = False
    keeps_thinking: bool = True
    #: The other models that read its thinking, where these are not all newer ones.
    read_by: frozenset[str] | None = None
    #: Text between tool calls comes as thinking.
    narrates_in_thinking: bool = False
    auto_compaction: bool = True
    on_demand_compaction: bool = True
    #: Inference can be kept in one country, for a tenth more.
    regional: bool = True


_ALWAYS: frozenset[Thinking] = frozenset({"adaptive"})
_SWITCHED: frozenset[Thinking] = frozenset({"adaptive", "disabled", "between_tools"})
_BOTH: frozenset[Thinking] = frozenset({"adaptive", "enabled", "disabled"})
_EXTENDED: frozenset[Thinking] = frozenset({"enabled", "disabled"})


def _fable(id: str, name: str, released: str, **more: object) -> Model:
    fields: dict[str, object] = {
        "line": "fable",
        "min_cacheable": 512,
        "thinking": _ALWAYS,
        "thinks_by_default": True,
    }
    return Model(id=id, name=name, released=released, **(fields | more))  # type: ignore[arg-type]


def _old(id: str, name: str, line: str, released: str, **more: object) -> Model:
    fields: dict[str, object] = {
        "window": 200_000,
        "max_output": 64_000,
        "lifecycle": "deprecated",
        "thinking": _EXTENDED,
        "display": "summarized",
        "efforts": (),
        "tokenizer": "older",
        "sampling": True,
        "prefill": True,
        "system_messages": False,
        "bound_prefix": False,
        "keeps_thinking": False,
        "auto_compaction": False,
        "on_demand_compaction": False,
        "regional": False,
    }
    row: dict[str, object] = {"line": line, "released": released} | fields | more
    return Model(id=id, name=name, **row)  # type: ignore[arg-type]


def _legacy(id: str, name: str, line: str, released: str, **more: object) -> Model:
    fields: dict[str, object] = {"lifecycle": "deprecated"}
    row: dict[str, object] = {"line": line, "released": released} | fields | more
    return Model(id=id, name=name, **row)  # type: ignore[arg-type]


_SIX: dict[str, object] = {
    "thinking": _BOTH,
    "efforts": ("low", "medium", "high", "max"),
    "display": "summarized",
    "tokenizer": "older",
    "sampling": True,
    "system_messages": False,
    "bound_prefix": False,
}

MODELS: tuple[Model, ...] = (
    _fable(
        "claude-fable-5-2",
        "Claude Fable 5.2",
        "2026-11-09",
        forced_tools=False,
        strict_binding=True,
        on_demand_compaction=False,
        auto_compaction=False,
    ),
    _fable(
        "claude-mythos-5-2",
        "Claude Mythos 5.2",
        "2026-11-09",
        line="mythos",
        forced_tools=False,
        strict_binding=True,
        on_demand_compaction=False,
        auto_compaction=False,
    ),
    _fable("claude-fable-5-1", "Claude Fable 5.1", "2026-08-31", forced_tools=False),
    _fable(
        "claude-mythos-5-1", "Claude Mythos 5.1", "2026-08-31", line="mythos", forced_tools=False
    ),
    Model(
        id="claude-opus-5-5",
        name="Claude Opus 5.5",
        line="opus",
        released="2026-09-23",
        min_cacheable=512,
        thinking=_ALWAYS,
        thinks_by_default=True,
        default_effort="medium",
        forced_tools=False,
        read_by=frozenset({"claude-fable-5-1", "claude-mythos-5-1"}),
        narrates_in_thinking=True,
    ),
    Model(
        id="claude-sonnet-5-5",
        name="Claude Sonnet 5.5",
        line="sonnet",
        released="2026-09-30",
        min_cacheable=512,
        thinking=frozenset({"adaptive", "between_tools"}),
        thinks_by_default=True,
        disable_up_to="high",
        forced_tools=False,
        bound_account=True,
        narrates_in_thinking=True,
    ),
    Model(
        id="claude-haiku-5-5",
        name="Claude Haiku 5.5",
        line="haiku",
        released="2026-10-07",
        thinking=_SWITCHED,
        thinks_by_default=True,
        disable_up_to="xhigh",
        default_effort="medium",
        bound_account=True,
        auto_compaction=False,
    ),
    _fable("claude-fable-5", "Claude Fable 5", "2026-06-09", lifecycle="deprecated"),
    _fable(
        "claude-mythos-5", "Claude Mythos 5", "2026-06-09", line="mythos", lifecycle="deprecated"
    ),
    _legacy(
        "claude-opus-5",
        "Claude Opus 5",
        "opus",
        "2026-07-24",
        min_cacheable=512,
        thinks_by_default=True,
        disable_up_to="high",
    ),
    _legacy(
        "claude-sonnet-5",
        "Claude Sonnet 5",
        "sonnet",
        "2026-06-30",
        thinks_by_default=True,
        system_messages=False,
    ),
    _legacy("claude-opus-4-8", "Claude Opus 4.8", "opus", "2026-05-12", bound_prefix=False),
    _legacy(
        "claude-opus-4-7",
        "Claude Opus 4.7",
        "opus",
        "2026-04-16",
        min_cacheable=2_048,
        system_messages=False,
        bound_prefix=False,
    ),
    _legacy(
        "claude-opus-4-6", "Claude Opus 4.6", "opus", "2026-02-05", min_cacheable=4_096, **_SIX
    ),
    _legacy("claude-sonnet-4-6", "Claude Sonnet 4.6", "sonnet", "2026-02-17", **_SIX),
    _old(
        "claude-haiku-4-5-20251001", "Claude Haiku 4.5", "haiku", "2025-10-01", min_cacheable=4_096
    ),
    _old("claude-sonnet-4-5-20250929", "Claude Sonnet 4.5", "sonnet", "2025-09-29"),
    _old(
        "claude-opus-4-5-20251101",
        "Claude Opus 4.5",
        "opus",
        "2025-11-01",
        min_cacheable=4_096,
        keeps_thinking=True,
        efforts=("low", "medium", "high"),
    ),
)

_ALIASES: Mapping[str, str] = {
    "claude-haiku-4-5": "claude-haiku-4-5-20251001",
    "claude-sonnet-4-5": "claude-sonnet-4-5-20250929",
    "claude-opus-4-5": "claude-opus-4-5-20251101",
}
_BY_ID: Mapping[str, Model] = {model.id: model for model in MODELS}


def find_model(name: str) -> Model | None:
    """The model of a name; `+fault` behind it asks for a fault and names no other model."""
    plain, _, _ = name.partition("+")
    return _BY_ID.get(_ALIASES.get(plain, plain))


def readable(model: Model, by: Model) -> bool:
    """Newer models read the thinking of older ones; nobody below Fable reads Fable's."""
    if model.read_by is not None:
        return model.id == by.id or by.id in model.read_by
    guarded = model.line in {"fable", "mythos"} and by.line not in {"fable", "mythos"}
    return model.id == by.id or (model.released <= by.released and not guarded)
