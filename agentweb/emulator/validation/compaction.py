"""Compaction in a request: who may ask for it, what it excludes, where its blocks may stand."""

from __future__ import annotations

from agentweb.emulator import json_codec
from agentweb.emulator.canonical_blocks import as_blocks
from agentweb.emulator.errors import Invalid
from agentweb.emulator.model_catalogue import Model
from agentweb.emulator.signatures import Seal, content_hash

ON_DEMAND_BETA = "compact-2026-09-04"
AUTOMATIC_BETA = "compact-2026-01-12"
_LONGEST_INSTRUCTIONS = 16_384


def check_compaction(body: json_codec.Object, model: Model, betas: frozenset[str]) -> None:
    _check_blocks(body["messages"], betas)
    _check_edits(body, model, betas)
    if body.get("compaction"):
        _check_order(body, model)


def check_finished(messages: list[json_codec.Object]) -> None:
    """Check that the messages to summarise end without open calls."""
    final = messages[-1] if messages else {"role": "user", "content": []}
    content = as_blocks(final["content"])
    done = {block.get("tool_use_id") for block in content}
    open_calls = [
        block["id"]
        for block in content
        if block["type"] in {"tool_use", "server_tool_use"} and block["id"] not in done
    ]
    if final["role"] == "assistant" and open_calls:
        raise Invalid(
            f"messages.{len(messages) - 1}: the conversation to summarize ends on an `assistant` "
            f"turn that is not finished: {', '.join(open_calls)}",
            code="compaction_incomplete_turn",
        )


def _check_order(body: json_codec.Object, model: Model) -> None:
    if not model.on_demand_compaction:
        raise Invalid("compaction: not supported for this model")
    if len(body["compaction"].get("instructions") or "") > _LONGEST_INSTRUCTIONS:
        raise Invalid(
            f"compaction.instructions: String should have at most "
            f"{_LONGEST_INSTRUCTIONS} characters"
        )
    output = body.get("output_config") or {}
    for wrong, what in (
        (body.get("context_management"), "context_management"),
        (body.get("stop_sequences"), "stop_sequences"),
        (output.get("format"), "output_config.format"),
        ((output.get("task_budget") or {}).get("remaining") is not None, "task_budget.remaining"),
        ((body.get("tool_choice") or {}).get("type") in {"any", "tool"}, "a forced tool_choice"),
    ):
        if wrong:
            raise Invalid(f"compaction: cannot be combined with {what}")
    spoken = [m for m in body["messages"] if not _only_summary(m)]
    if not spoken:
        raise Invalid(
            "compaction: there is nothing to summarize", code="compaction_nothing_to_summarize"
        )


def _only_summary(message: json_codec.Object) -> bool:
    return all(block["type"] == "compaction" for block in as_blocks(message["content"]))


def _check_edits(body: json_codec.Object, model: Model, betas: frozenset[str]) -> None:
    edits = (body.get("context_management") or {}).get("edits") or []
    kinds = [edit["type"] for edit in edits]
    if len(set(kinds)) != len(kinds):
        raise Invalid("context_management.edits: each edit type may be given only once")
    if "clear_thinking_20251015" in kinds[1:]:
        raise Invalid("context_management.edits: `clear_thinking_20251015` must be listed first")
    if "compact_20260112" in kinds:
        if AUTOMATIC_BETA not in betas:
            raise Invalid(
                f"context_management.edits: `compact_20260112` requires anthropic-beta: "
                f"{AUTOMATIC_BETA}"
            )
        if not model.auto_compaction:
            raise Invalid(
                "context_management.edits: `compact_20260112` is not supported for this model"
            )


def _check_blocks(messages: list[json_codec.Object], betas: frozenset[str]) -> None:
    signed = _signed(messages)
    for index, message in enumerate(messages):
        for at, block in enumerate(as_blocks(message["content"])):
            if block["type"] != "compaction":
                continue
            path = f"messages.{index}.content.{at}"
            if not betas & {ON_DEMAND_BETA, AUTOMATIC_BETA}:
                raise Invalid(
                    f"{path}: `compaction` blocks require anthropic-beta: {ON_DEMAND_BETA}"
                )
            if message["role"] == "system":
                raise _misplaced(path)
            if message["role"] != "assistant":
                raise Invalid(f"{path}: `compaction` blocks can only be in `assistant` messages")
            if block.get("signature") is not None:
                if signed > 1:
                    raise Invalid(
                        "messages: more than one signed `compaction` block",
                        code="compaction_block_ambiguous",
                    )
                _check_signed(path, block, index, at)


def _signed(messages: list[json_codec.Object]) -> int:
    blocks = (block for message in messages for block in as_blocks(message["content"]))
    return sum(b["type"] == "compaction" and b.get("signature") is not None for b in blocks)


def _misplaced(path: str) -> Invalid:
    text = f"{path}: a signed `compaction` block must be the first block of the first message"
    return Invalid(text, code="compaction_block_misplaced")


def _check_signed(path: str, block: json_codec.Object, index: int, at: int) -> None:
    if index or at:
        raise _misplaced(path)
    seal = Seal.decode(block["signature"])
    if seal is None:
        raise Invalid(
            f"{path}: Invalid `signature` in `compaction` block",
            code="compaction_signature_invalid",
        )
    if content_hash(block.get("content") or "") != seal.content:
        text = (
            f"{path}: the content of the `compaction` block is not what its signature was made for"
        )
        raise Invalid(text, code="compaction_content_mismatch")
    if block.get("tool_changes") is not None:
        text = f"{path}: the `tool_changes` are not those the `compaction` block was returned with"
        raise Invalid(text, code="compaction_tool_changes_mismatch")
