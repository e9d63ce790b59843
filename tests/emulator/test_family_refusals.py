"""What one model family accepts and another refuses; each row names the section of the sheet."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.emulator.samples import ADAPTIVE, RESULT, TEXT, TOOL, USE, assistant, talk, user, words

FAMILIES = [
    (
        "6 always thinking",
        "claude-opus-5-5",
        words(thinking={"type": "disabled"}),
        f'"thinking.type.disabled" is not supported for this model. {ADAPTIVE}',
    ),
    (
        "6 always thinking",
        "claude-fable-5-2",
        words(thinking={"type": "disabled"}),
        '"thinking.type.disabled" is not supported for this model.',
    ),
    (
        "6 enabled is gone",
        "claude-opus-4-7",
        words(thinking={"type": "enabled", "budget_tokens": 1024}),
        '"thinking.type.enabled" is not supported for this model.',
    ),
    (
        "6 adaptive is not yet",
        "claude-haiku-4-5",
        words(thinking={"type": "adaptive"}),
        "adaptive thinking is not supported on this model",
    ),
    (
        "6 adaptive is not yet",
        "claude-opus-4-5",
        words(thinking={"type": "adaptive"}),
        "adaptive thinking is not supported on this model",
    ),
    (
        "6 least budget",
        "claude-sonnet-4-5",
        words(thinking={"type": "enabled", "budget_tokens": 100}),
        "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024",
    ),
    (
        "6 budget below max_tokens",
        "claude-sonnet-4-5",
        words(thinking={"type": "enabled", "budget_tokens": 4_000}),
        "`max_tokens` must be greater than `thinking.budget_tokens`.",
    ),
    (
        "6 thinking starts a tool turn",
        "claude-sonnet-4-5",
        talk(
            user(TEXT),
            assistant(USE),
            user(RESULT),
            thinking={"type": "enabled", "budget_tokens": 1024},
        ),
        (
            "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but "
            "found `tool_use`. When `thinking` is enabled, a final `assistant` message "
            "must start with a thinking block"
        ),
    ),
    (
        "6 thinking starts a final assistant turn",
        "claude-haiku-4-5",
        talk(user(TEXT), assistant(TEXT), thinking={"type": "enabled", "budget_tokens": 1024}),
        "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `text`.",
    ),
    (
        "6 always thinking",
        "claude-mythos-5",
        words(thinking={"type": "disabled"}),
        '"thinking.type.disabled" is not supported for this model.',
    ),
    (
        "5 forced tool",
        "claude-fable-5-2",
        words(tools=[TOOL], tool_choice={"type": "any"}),
        'tool_choice: type "tool" and "any" are not supported for this model.',
    ),
    (
        "5 forced tool",
        "claude-opus-5-5",
        words(tools=[TOOL], tool_choice={"type": "any"}),
        'tool_choice: type "tool" and "any" are not supported for this model.',
    ),
    (
        "5 system message",
        "claude-opus-4-7",
        talk(user(TEXT), {"role": "system", "content": "a"}),
        'messages: Unexpected role "system".',
    ),
    (
        "5 sampling",
        "claude-fable-5",
        words(top_k=5),
        "`top_k` is deprecated for this model.",
    ),
    (
        "5 prefill",
        "claude-sonnet-4-6",
        talk(user(TEXT), assistant(TEXT)),
        "This model does not support assistant message prefill.",
    ),
    (
        "8 on-demand compaction",
        "claude-fable-5-2",
        words(compaction={"type": "summarize"}),
        "compaction: not supported for this model",
    ),
    (
        "5 sampling",
        "claude-opus-4-7",
        words(temperature=0.5),
        "`temperature` is deprecated for this model.",
    ),
    (
        "5 temperature range",
        "claude-haiku-4-5",
        words(temperature=1.5),
        "temperature: Input should be less than or equal to 1",
    ),
    (
        "5 prefill",
        "claude-opus-4-6",
        talk(user(TEXT), assistant(TEXT)),
        "This model does not support assistant message prefill.",
    ),
    (
        "5 max_tokens",
        "claude-haiku-4-5",
        words(max_tokens=1_000_000),
        (
            "max_tokens: 1000000 > 64000, which is the maximum allowed number of output "
            "tokens for claude-haiku-4-5-20251001"
        ),
    ),
    (
        "5 forced tool",
        "claude-fable-5-1",
        words(tools=[TOOL], tool_choice={"type": "tool", "name": "read_file"}),
        'tool_choice: type "tool" and "any" are not supported for this model.',
    ),
    (
        "5 chosen tool exists",
        "claude-sonnet-5",
        words(tools=[TOOL], tool_choice={"type": "tool", "name": "fly"}),
        "tool_choice.tool.name: Tool 'fly' not found in provided tools",
    ),
    (
        "5 system message",
        "claude-haiku-4-5",
        talk(user(TEXT), {"role": "system", "content": "a"}),
        'messages: Unexpected role "system".',
    ),
    (
        "6 effort",
        "claude-haiku-4-5",
        words(output_config={"effort": "low"}),
        "This model does not support the effort parameter.",
    ),
    (
        "8 on-demand compaction",
        "claude-haiku-4-5",
        words(compaction={"type": "summarize"}),
        "compaction: not supported for this model",
    ),
]


@pytest.mark.parametrize(("rule", "model", "change", "text"), FAMILIES)
def test_a_model_family_refuses_what_it_does_not_take(
    ask: Any, body: Any, rule: str, model: str, change: dict[str, Any], text: str
) -> None:
    answered = ask(body(**copy.deepcopy(change), model=model), anthropic_beta="compact-2026-09-04")
    assert answered.status == 400, rule
    assert answered.message.startswith(text)
