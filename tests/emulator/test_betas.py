"""Fields of a beta: accepted with its header, unknown without it."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.emulator.samples import EXTRA, TEXT, TOOL, assistant, talk, user, words

BUDGET = {"type": "tokens", "total": 20_000}
ADDED = {"type": "tool_addition", "tool": {"type": "tool_reference", "name": "read_file"}}
REMOVED = ADDED | {"type": "tool_removal"}
DEFINED = {"type": "tool_addition", "tool": {"type": "tool_definition", "definition": TOOL}}
COMPACT = {"edits": [{"type": "compact_20260112"}]}


def system(*blocks: Any, **more: Any) -> dict[str, Any]:
    content = {"content": list(blocks)} if blocks else {}
    return {"role": "system", **content, **more}


#: section and rule, beta, changes to the fields of a valid request, error text without the beta.
BETAS = [
    (
        "8 task budget",
        "task-budgets-2026-03-13",
        words(output_config={"task_budget": BUDGET}),
        f"output_config.task_budget: {EXTRA}",
    ),
    (
        "8 task budget that is part spent",
        "task-budgets-2026-03-13",
        words(output_config={"task_budget": BUDGET | {"remaining": 0}, "effort": "low"}),
        f"output_config.task_budget: {EXTRA}",
    ),
    (
        "8 a system message for one turn",
        "mid-conversation-system-clear-at-2026-08-21",
        talk(user(TEXT), system(TEXT, clear_at="next_user_message")),
        f"messages.1.clear_at: {EXTRA}",
    ),
    (
        "8 effort from here on",
        "mid-conversation-output-config-2026-07-01",
        talk(user(TEXT), system(TEXT, output_config={"effort": "low"})),
        f"messages.1.output_config: {EXTRA}",
    ),
    (
        "8 effort and no words",
        "mid-conversation-output-config-2026-07-01",
        talk(user(TEXT), system(output_config={"effort": "low"})),
        "messages.1.content: Field required",
    ),
    (
        "8 a tool comes in",
        "mid-conversation-tool-changes-2026-07-01",
        talk(user(TEXT), system(ADDED), assistant(TEXT), user(TEXT)),
        "messages.1.content.0: `tool_addition` blocks require anthropic-beta: mid-conversation",
    ),
    (
        "8 a tool goes",
        "mid-conversation-tool-changes-2026-07-01",
        talk(user(TEXT), system(TEXT, REMOVED)),
        "messages.1.content.1: `tool_removal` blocks require anthropic-beta: mid-conversation",
    ),
    (
        "8 a tool defined in the middle",
        "mid-conversation-tool-changes-2026-07-01,inline-tools-2026-09-15",
        talk(user(TEXT), system(DEFINED, ADDED), tools=[TOOL | {"name": "other"}]),
        "messages.1.content.0: `tool_addition` blocks require anthropic-beta: mid-conversation",
    ),
    (
        "6 what becomes of broken thinking",
        "thinking-binding-controls-2026-08-01",
        words(
            thinking={
                "type": "adaptive",
                "block_binding": {"prefix_mismatch_behavior": "drop_block"},
            }
        ),
        f"thinking.adaptive.block_binding: {EXTRA}",
    ),
    (
        "8 context editing",
        "context-management-2025-06-27",
        words(context_management={"edits": [{"type": "clear_tool_uses_20250919"}]}),
        f"context_management: {EXTRA}",
    ),
    (
        "8 automatic compaction",
        "compact-2026-01-12",
        words(context_management=COMPACT),
        f"context_management: {EXTRA}",
    ),
    (
        "8 compaction on demand",
        "compact-2026-09-04",
        words(compaction={"type": "summarize", "instructions": "  "}),
        "compaction: requires anthropic-beta: compact-2026-09-04",
    ),
    (
        "8 a summary sent back",
        "compact-2026-01-12",
        talk(assistant({"type": "compaction", "content": "Summary"}), user(TEXT)),
        "messages.0.content.0: `compaction` blocks require anthropic-beta",
    ),
    (
        "3 other models",
        "server-side-fallback-2026-07-01",
        words(fallbacks=[{"model": "claude-opus-4-8", "max_tokens": 5}]),
        f"fallbacks: {EXTRA}",
    ),
    (
        "3 other models of the API's choice",
        "server-side-fallback-2026-07-01",
        words(fallbacks="default"),
        f"fallbacks: {EXTRA}",
    ),
]


@pytest.mark.parametrize(("rule", "beta", "change", "text"), BETAS)
def test_a_beta_is_taken_with_its_header(
    ask: Any, body: Any, rule: str, beta: str, change: Any, text: str
) -> None:
    answered = ask(body(**copy.deepcopy(change), model="claude-opus-5-5"), anthropic_beta=beta)
    assert answered.status == 200, (rule, answered.body)


@pytest.mark.parametrize(("rule", "beta", "change", "text"), BETAS)
def test_a_beta_is_unknown_without_its_header(
    ask: Any, body: Any, rule: str, beta: str, change: Any, text: str
) -> None:
    answered = ask(body(**copy.deepcopy(change), model="claude-opus-5-5"))
    assert answered.status == 400, rule
    assert answered.message.startswith(text)


def test_an_edit_of_another_beta_is_refused_by_its_own_name(ask: Any, body: Any) -> None:
    answered = ask(body(context_management=COMPACT), anthropic_beta="context-management-2025-06-27")
    assert answered.message == (
        "context_management.edits: `compact_20260112` requires anthropic-beta: compact-2026-01-12"
    )


CHANGES = "mid-conversation-tool-changes-2026-07-01"


def test_a_change_of_a_tool_nobody_defined_is_refused_by_code(ask: Any, body: Any) -> None:
    gone = ADDED | {"tool": {"type": "tool_reference", "name": "gone"}}
    asked = body(**talk(user(TEXT), system(gone)), model="claude-opus-5-5")
    error = ask(asked, anthropic_beta=CHANGES).json["error"]
    assert error["details"] == {"error_code": "tool_reference_unresolved"}
    assert error["message"].startswith("messages.1.content.0.tool_addition.tool: Tool 'gone'")


def test_a_system_message_for_one_turn_is_not_read_in_the_next(ask: Any, body: Any) -> None:
    beta = "mid-conversation-system-clear-at-2026-08-21"
    told = system(TEXT | {"text": "Be brief. " * 200}, clear_at="next_user_message")
    now = body(messages=[user(TEXT), told], model="claude-opus-5-5")
    later = now | {"messages": [user(TEXT), told, assistant(TEXT), user(TEXT)]}
    usages = [ask(asked, anthropic_beta=beta).json["usage"] for asked in (now, later)]
    assert usages[0]["input_tokens"] > 4 * usages[1]["input_tokens"]


def test_a_budget_needs_its_total(ask: Any, body: Any) -> None:
    asked = body(output_config={"task_budget": {"type": "tokens"}})
    answered = ask(asked, anthropic_beta="task-budgets-2026-03-13")
    assert answered.message == "output_config.task_budget.total: Field required"
