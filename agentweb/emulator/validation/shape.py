"""The shape of a request: its fields, their types, and no others.

Fields of a beta are unknown without its header.
"""

from __future__ import annotations

from collections.abc import Mapping

from agentweb.emulator.validation.input_blocks import cache_control, text_block
from agentweb.emulator.validation.message_shape import message_shape
from agentweb.emulator.validation.schema import (
    Check,
    anything,
    boolean,
    either,
    integer,
    listing,
    mapping,
    matching,
    nullable,
    number,
    one_of,
    record,
    string,
    tagged,
)
from agentweb.emulator.validation.tools import tool

TASK_BUDGET_BETA = "task-budgets-2026-03-13"
_display = nullable(one_of("summarized", "omitted", "updates"))
_binding = nullable(
    record({}, {"prefix_mismatch_behavior": nullable(one_of("error", "drop_block"))})
)


def _thinking(*, bound: bool) -> Check:
    more: dict[str, Check] = {"display": _display} | ({"block_binding": _binding} if bound else {})
    return tagged(
        {
            "enabled": record({"type": one_of("enabled"), "budget_tokens": integer(1024)}, more),
            "disabled": record({"type": one_of("disabled")}),
            "between_tools": record({"type": one_of("between_tools")}),
            "adaptive": record({"type": one_of("adaptive")}, more),
        }
    )


_single = {"disable_parallel_tool_use": boolean}
_tool_choice = tagged(
    {
        "auto": record({"type": one_of("auto")}, _single),
        "any": record({"type": one_of("any")}, _single),
        "tool": record({"type": one_of("tool"), "name": string}, _single),
        "none": record({"type": one_of("none")}),
    }
)
_task_budget = record(
    {"type": one_of("tokens"), "total": integer(1)}, {"remaining": nullable(integer(0))}
)


def _output_config(*, budgeted: bool) -> Check:
    fields: dict[str, Check] = {
        "effort": nullable(one_of("low", "medium", "high", "xhigh", "max")),
        "format": nullable(record({"type": one_of("json_schema"), "schema": mapping})),
    }
    return record({}, fields | ({"task_budget": nullable(_task_budget)} if budgeted else {}))


_tokens_above = record({"type": one_of("input_tokens"), "value": integer(1)})
_uses_above = record({"type": one_of("tool_uses"), "value": integer(1)})
_trigger = tagged({"input_tokens": _tokens_above, "tool_uses": _uses_above})
_names = nullable(listing(string))
_turns = record({"type": one_of("thinking_turns"), "value": integer(1)})


def _keep_thinking(value: object) -> None:
    if value in ("all", {"type": "all"}):
        return
    _turns(value)


def _clear_inputs(value: object) -> None:
    if value is None or isinstance(value, bool):
        return
    listing(string)(value)


_edit = tagged(
    {
        "clear_tool_uses_20250919": record(
            {"type": one_of("clear_tool_uses_20250919")},
            {
                "trigger": _trigger,
                "keep": record({"type": one_of("tool_uses"), "value": integer(0)}),
                "clear_at_least": nullable(_tokens_above),
                "exclude_tools": _names,
                "clear_tool_inputs": _clear_inputs,
            },
        ),
        "clear_thinking_20251015": record(
            {"type": one_of("clear_thinking_20251015")}, {"keep": _keep_thinking}
        ),
        "compact_20260112": record(
            {"type": one_of("compact_20260112")},
            {
                "trigger": nullable(
                    record({"type": one_of("input_tokens"), "value": integer(50_000)})
                ),
                "pause_after_compaction": boolean,
                "instructions": nullable(string),
            },
        ),
    }
)

_hop = record(
    {"model": string},
    {
        "max_tokens": nullable(integer(1)),
        "output_config": nullable(mapping),
        "speed": nullable(one_of("standard", "fast")),
        "thinking": nullable(mapping),
    },
)
_hops = listing(_hop)


def _fallbacks(value: object) -> None:
    """Check the models that continue when this one declines; "default" lets the API choose."""
    if value != "default":
        _hops(value)


_container_fields = record({}, {"id": nullable(string), "skills": nullable(listing(mapping))})


def _container(value: object) -> None:
    if not isinstance(value, str):
        _container_fields(value)


_METADATA = record({}, {"user_id": nullable(string)})
_BETA_FIELDS: Mapping[str, tuple[str, Check]] = {
    "context_management": (
        "context-management-2025-06-27|compact-2026-01-12",
        nullable(record({}, {"edits": listing(_edit)})),
    ),
    "compaction": (
        "compact-2026-09-04",
        nullable(record({"type": one_of("summarize")}, {"instructions": nullable(string)})),
    ),
    "mcp_servers": ("mcp-client", listing(mapping)),
    "fallbacks": ("server-side-fallback", nullable(_fallbacks)),
    "fallback_credit_token": ("fallback-credit", anything),
    "billing_policy": ("", anything),
    "thread": ("", anything),
}


def request_shape(betas: frozenset[str], *, has_sampling: bool, counting: bool) -> Check:
    """Return the check for one request with its betas."""
    joined = " ".join(sorted(betas))
    optional: dict[str, Check] = {
        "system": either(string, listing(tagged({"text": text_block}))),
        "tools": listing(tool),
        "tool_choice": nullable(_tool_choice),
        "thinking": nullable(_thinking(bound="thinking-binding-controls-2026-08-01" in betas)),
        "output_config": nullable(_output_config(budgeted=TASK_BUDGET_BETA in betas)),
        "cache_control": cache_control,
        "speed": nullable(one_of("standard", "fast")),
    }
    for name, (headers, check) in _BETA_FIELDS.items():
        if any(header in joined for header in headers.split("|")):
            optional[name] = check
    required: dict[str, Check] = {
        "model": matching("^.+$"),
        "messages": listing(message_shape(betas), most=100_000),
    }
    if not counting:
        required["max_tokens"] = integer(0)
        optional |= _ANSWER
        if has_sampling:
            optional |= _SAMPLING
    return record(required, optional)


_SAMPLING: Mapping[str, Check] = {
    "temperature": nullable(number(0, 1)),
    "top_k": nullable(integer(0)),
    "top_p": nullable(number(0, 1)),
}
_ANSWER: Mapping[str, Check] = {
    "metadata": nullable(_METADATA),
    "stop_sequences": nullable(listing(string)),
    "stream": nullable(boolean),
    "service_tier": one_of("auto", "standard_only"),
    "container": nullable(_container),
    "diagnostics": nullable(record({}, {"previous_message_id": nullable(string)})),
    "inference_geo": nullable(string),
    "user_profile_id": string,
    "workspace_id": string,
}
