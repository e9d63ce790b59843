"""Rules between blocks and messages; each row names the section of the sheet."""

from __future__ import annotations

from tests.emulator.samples import (
    ADAPTIVE,
    HOUR,
    MARK,
    NEEDS_RESULT,
    NEEDS_USE,
    NOT_EMPTY,
    RESULT,
    RESULT_2,
    SEARCH,
    TEXT,
    THOUGHT,
    TOOL,
    TTL_ORDER,
    USE,
    USE_2,
    assistant,
    talk,
    user,
    words,
)

OLD_THINKING = {"type": "enabled", "budget_tokens": 1024}
#: section and rule, changes to the fields of a valid request, beginning of the error text.
RULES = [
    ("5 no message", words(messages=[]), "messages: at least one message is required"),
    ("5 empty string", talk({"role": "user", "content": ""}), f"messages.0: {NOT_EMPTY}"),
    ("5 empty list", talk(user(TEXT), assistant(), user(TEXT)), f"messages.1: {NOT_EMPTY}"),
    (
        "5 empty text",
        talk(user({"type": "text", "text": ""})),
        "messages: text content blocks must be non-empty",
    ),
    (
        "5 empty text in a result",
        talk(
            user(TEXT), assistant(USE), user(RESULT | {"content": [{"type": "text", "text": ""}]})
        ),
        "messages: text content blocks must be non-empty",
    ),
    (
        "5 blank text",
        talk(user({"type": "text", "text": " \n"})),
        "messages: text content blocks must contain non-whitespace text",
    ),
    (
        "5 blank string",
        talk({"role": "user", "content": "  "}),
        "messages: text content blocks must contain non-whitespace text",
    ),
    (
        "5 empty system text",
        words(system=[{"type": "text", "text": ""}]),
        "system: text content blocks must be non-empty",
    ),
    (
        "5 blank system text",
        words(system=[{"type": "text", "text": " "}]),
        "system: text content blocks must contain non-whitespace text",
    ),
    (
        "5 result missing",
        talk(user(TEXT), assistant(USE), user(TEXT)),
        f"messages.1: {NEEDS_RESULT.format(ids='toolu_1')}",
    ),
    (
        "5 result missing at the end",
        talk(user(TEXT), assistant(USE)),
        f"messages.1: {NEEDS_RESULT.format(ids='toolu_1')}",
    ),
    (
        "5 one of two results missing",
        talk(user(TEXT), assistant(USE, USE_2), user(RESULT)),
        f"messages.1: {NEEDS_RESULT.format(ids='toolu_2')}",
    ),
    (
        "5 results come first",
        talk(user(TEXT), assistant(USE), user(TEXT, RESULT)),
        f"messages.1: {NEEDS_RESULT.format(ids='toolu_1')}",
    ),
    (
        "5 result without use",
        talk(user(RESULT)),
        f"messages.0.content.0: {NEEDS_USE.format(id='toolu_1')}",
    ),
    (
        "5 result a message late",
        talk(user(TEXT), assistant(USE), user(RESULT), assistant(TEXT), user(RESULT)),
        f"messages.4.content.0: {NEEDS_USE.format(id='toolu_1')}",
    ),
    (
        "5 result of another id",
        talk(user(TEXT), assistant(USE), user(RESULT_2)),
        f"messages.2.content.0: {NEEDS_USE.format(id='toolu_2')}",
    ),
    (
        "5 ids unique in a message",
        talk(user(TEXT), assistant(USE, USE), user(RESULT)),
        "messages.1.content.1: `tool_use` ids must be unique",
    ),
    (
        "5 single result",
        talk(user(TEXT), assistant(USE), user(RESULT, RESULT)),
        (
            "messages.2.content.1: each tool_use must have a single result. Found multiple "
            "`tool_result` blocks with id: toolu_1"
        ),
    ),
    (
        "5 tool_use by the user",
        talk(user(USE)),
        "messages.0: `tool_use` blocks can only be in `assistant` messages",
    ),
    (
        "5 tool_result by the assistant",
        talk(user(TEXT), assistant(RESULT), user(TEXT)),
        "messages.1: `tool_result` blocks can only be in `user` messages",
    ),
    (
        "5 all tools deferred",
        words(tools=[TOOL | {"defer_loading": True}]),
        "tools: All tools have defer_loading: true",
    ),
    (
        "5 all tools deferred, the API's own too",
        words(tools=[TOOL | {"defer_loading": True}, SEARCH | {"defer_loading": True}]),
        "tools: All tools have defer_loading: true",
    ),
    (
        "5 tool change by the user",
        talk(user({"type": "tool_addition", "tool": {"type": "tool_reference", "name": "a"}})),
        "messages.0: `tool_addition` blocks can only be in `system` messages",
    ),
    (
        "5 pre-warm with a forced tool",
        words(max_tokens=0, tools=[TOOL], tool_choice={"type": "any"}, model="claude-sonnet-5"),
        "max_tokens: 0 cannot be combined with a forced tool_choice",
    ),
    (
        "5 pre-warm with thinking",
        words(max_tokens=0, thinking=OLD_THINKING, model="claude-haiku-4-5"),
        "max_tokens: 0 cannot be combined with thinking enabled",
    ),
    (
        "3 fallback boundary by the user",
        talk(user({"type": "fallback", "from": {"model": "a"}, "to": {"model": "b"}})),
        "messages.0: `fallback` blocks can only be in `assistant` messages",
    ),
    ("5 tool names unique", words(tools=[TOOL, TOOL]), "tools: Tool names must be unique."),
    (
        "5 prefill",
        talk(user(TEXT), assistant(TEXT)),
        (
            "This model does not support assistant message prefill. The conversation must "
            "end with a user message."
        ),
    ),
    ("5 temperature", words(temperature=1), "`temperature` is deprecated for this model."),
    ("5 top_p", words(top_p=0.5), "`top_p` is deprecated for this model."),
    ("5 top_k", words(top_k=5), "`top_k` is deprecated for this model."),
    (
        "5 forced tool",
        words(tools=[TOOL], tool_choice={"type": "any"}),
        'tool_choice: type "tool" and "any" are not supported for this model.',
    ),
    (
        "5 tool_choice without tools",
        words(tool_choice={"type": "auto"}),
        "tool_choice may only be specified while providing tools",
    ),
    (
        "5 max_tokens",
        words(max_tokens=128_001),
        (
            "max_tokens: 128001 > 128000, which is the maximum allowed number of output "
            "tokens for claude-sonnet-5-5"
        ),
    ),
    (
        "5 pre-warm with stream",
        words(max_tokens=0, stream=True),
        "max_tokens: 0 cannot be combined with stream: true",
    ),
    (
        "5 pre-warm with a format",
        words(
            max_tokens=0,
            output_config={"format": {"type": "json_schema", "schema": {"type": "string"}}},
        ),
        "max_tokens: 0 cannot be combined with output_config.format",
    ),
    (
        "5 system message first",
        talk({"role": "system", "content": "a"}, user(TEXT), model="claude-opus-5-5"),
        "messages.0: a `system` message cannot be the first message",
    ),
    (
        "5 system message after words",
        talk(
            user(TEXT), assistant(TEXT), {"role": "system", "content": "a"}, model="claude-opus-5-5"
        ),
        "messages.2: a `system` message must follow a `user` message",
    ),
    (
        "5 system message before the user",
        talk(user(TEXT), {"role": "system", "content": "a"}, user(TEXT), model="claude-opus-5-5"),
        "messages.1: a `system` message must be the last message or be followed by",
    ),
    (
        "5 system message elsewhere",
        talk(user(TEXT), {"role": "system", "content": "a"}, model="claude-sonnet-5"),
        'messages: Unexpected role "system".',
    ),
    (
        "6 enabled is gone",
        words(thinking={"type": "enabled", "budget_tokens": 1024}),
        f'"thinking.type.enabled" is not supported for this model. {ADAPTIVE}',
    ),
    (
        "6 forged signature",
        talk(user(TEXT), assistant(THOUGHT, TEXT), user(TEXT)),
        "messages.1.content.0: Invalid `signature` in `thinking` block",
    ),
    (
        "7 five marks",
        words(messages=[user(*[TEXT | MARK] * 5)]),
        "A maximum of 4 blocks with cache_control may be provided. Found 5.",
    ),
    (
        "7 four marks and the automatic one",
        words(messages=[user(*[TEXT | MARK] * 4)], **MARK),
        "A maximum of 4 blocks with cache_control may be provided. Found 5.",
    ),
    (
        "7 long after short",
        words(messages=[user(TEXT | MARK, TEXT | HOUR)]),
        f"messages.0.content.1.cache_control.ttl: {TTL_ORDER}",
    ),
    (
        "7 long in messages after short in tools",
        words(tools=[TOOL | MARK], messages=[user(TEXT | HOUR)]),
        f"messages.0.content.0.cache_control.ttl: {TTL_ORDER}",
    ),
    (
        "7 nested marks count before the result",
        talk(user(TEXT), assistant(USE), user(RESULT | {"content": [TEXT | MARK]} | HOUR)),
        f"messages.2.content.0.cache_control.ttl: {TTL_ORDER}",
    ),
    (
        "7 automatic mark of another lifetime",
        words(messages=[user(TEXT | HOUR)], **MARK),
        "cache_control.ttl: the last block already has cache_control with ttl='1h'",
    ),
]
