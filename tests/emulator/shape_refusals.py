"""Shapes that are refused; each row names the section of the sheet on the Messages API."""

from __future__ import annotations

from tests.emulator.samples import (
    COMPACTION,
    EXTRA,
    MARK,
    RESULT,
    TEXT,
    THOUGHT,
    TOOL,
    USE,
    assistant,
    talk,
    user,
    words,
)

#: section and rule, changes to the fields of a valid request, beginning of the error text.
SHAPES = [
    ("5 unknown field", words(colour="red"), f"colour: {EXTRA}"),
    ("5 unknown block field", talk(user(TEXT | {"x": 1})), f"messages.0.content.0.text.x: {EXTRA}"),
    (
        "5 unknown message field",
        talk({"role": "user", "content": "a", "name": "b"}),
        f"messages.0.name: {EXTRA}",
    ),
    ("5 unknown tool field", words(tools=[TOOL | {"x": 1}]), f"tools.0.custom.x: {EXTRA}"),
    (
        "5 missing text",
        talk(user({"type": "text"})),
        "messages.0.content.0.text.text: Field required",
    ),
    ("5 missing content", talk({"role": "user"}), "messages.0.content: Field required"),
    (
        "5 text not a string",
        talk(user({"type": "text", "text": 1})),
        "messages.0.content.0.text.text: Input should be a valid string",
    ),
    ("5 messages not a list", words(messages="Hello"), "messages: Input should be a valid list"),
    (
        "5 message not an object",
        words(messages=["Hello"]),
        "messages.0: Input should be a valid dictionary",
    ),
    (
        "5 role",
        talk({"role": "robot", "content": "a"}),
        "messages.0.role: Input should be 'user', 'assistant' or 'system'",
    ),
    (
        "5 block type",
        talk(user({"type": "poem"})),
        "messages.0.content.0: Input tag 'poem' found using 'type'",
    ),
    ("5 stream not a boolean", words(stream="yes"), "stream: Input should be a valid boolean"),
    (
        "5 max_tokens not a number",
        words(max_tokens="many"),
        "max_tokens: Input should be a valid integer",
    ),
    (
        "5 max_tokens negative",
        words(max_tokens=-1),
        "max_tokens: Input should be greater than or equal to 0",
    ),
    (
        "5 image media type",
        talk(
            user(
                {
                    "type": "image",
                    "source": {"type": "base64", "media_type": "image/bmp", "data": ""},
                }
            )
        ),
        (
            "messages.0.content.0.image.source.base64.media_type: Input should be "
            "'image/jpeg', 'image/png', 'image/gif' or 'image/webp'"
        ),
    ),
    (
        "5 document source",
        talk(user({"type": "document", "source": {"type": "scroll"}})),
        "messages.0.content.0.document.source: Input tag 'scroll'",
    ),
    (
        "5 tool id pattern",
        talk(user(TEXT), assistant(USE | {"id": "a b"})),
        "messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
    ),
    (
        "5 tool input an object",
        talk(user(TEXT), assistant(USE | {"input": "a.txt"})),
        "messages.1.content.0.tool_use.input: Input should be a valid dictionary",
    ),
    (
        "5 tool name pattern",
        words(tools=[TOOL | {"name": "read file"}]),
        "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'",
    ),
    (
        "5 tool name length",
        words(tools=[TOOL | {"name": "a" * 129}]),
        "tools.0.custom.name: String should match pattern",
    ),
    (
        "5 schema missing",
        words(tools=[{"name": "a"}]),
        "tools.0.custom.input_schema: Field required",
    ),
    (
        "5 schema type missing",
        words(tools=[TOOL | {"input_schema": {}}]),
        "tools.0.custom.input_schema.type: Field required",
    ),
    (
        "5 schema type",
        words(tools=[TOOL | {"input_schema": {"type": "array"}}]),
        "tools.0.custom.input_schema.type: Input should be 'object'",
    ),
    (
        "5 schema invalid",
        words(
            tools=[
                TOOL | {"input_schema": {"type": "object", "properties": {"a": {"type": "text"}}}}
            ]
        ),
        "tools.0.custom.input_schema: JSON schema is invalid.",
    ),
    (
        "5 tool type",
        words(tools=[TOOL | {"type": "magic"}]),
        "tools.0: Input tag 'magic' found using 'type'",
    ),
    (
        "5 nested result block",
        talk(user(TEXT), assistant(USE), user(RESULT | {"content": [THOUGHT]})),
        "messages.2.content.0.tool_result.content.0: Input tag 'thinking'",
    ),
    (
        "7 no mark on redacted thinking",
        talk(user(TEXT), assistant({"type": "redacted_thinking", "data": "x"} | MARK), user(TEXT)),
        f"messages.1.content.0.redacted_thinking.cache_control: {EXTRA}",
    ),
    (
        "7 automatic mark of an unknown type",
        words(cache_control={"type": "forever"}),
        "cache_control.type: Input should be 'ephemeral'",
    ),
    (
        "3 fallback boundary without its models",
        talk(user(TEXT), assistant({"type": "fallback", "to": {"model": "b"}}), user(TEXT)),
        "messages.1.content.0.fallback.from: Field required",
    ),
    (
        "5 result that is an object",
        talk(user(TEXT), assistant(USE), user(RESULT | {"content": {}})),
        "messages.2.content.0.tool_result.content: Input should be a valid string or a valid list",
    ),
    (
        "2 more than 100,000 messages",
        words(messages=[{"role": "user", "content": "a"}] * 100_001),
        "messages: List should have at most 100000 items after validation, not 100001",
    ),
    (
        "8 settings in a message of the user",
        talk(user(TEXT), {"role": "user", "content": "a", "output_config": {}}),
        f"messages.1.output_config: {EXTRA}",
    ),
    (
        "5 a tool that is a word",
        words(tools=["read_file"]),
        "tools.0.custom: Input should be a valid dictionary",
    ),
    (
        "5 an image without its data",
        talk(user({"type": "image", "source": {"type": "base64", "media_type": "image/png"}})),
        "messages.0.content.0.image.source.base64.data: Field required",
    ),
    (
        "6 display of an unknown kind",
        words(thinking={"type": "adaptive", "display": "loud"}),
        "thinking.adaptive.display: Input should be 'summarized', 'omitted' or 'updates'",
    ),
    (
        "6 thinking of an unknown kind",
        words(thinking={"type": "deep"}),
        "thinking: Input tag 'deep' found using 'type'",
    ),
    (
        "6 thinking without a signature",
        talk(user(TEXT), assistant({"type": "thinking", "thinking": "x"}, TEXT), user(TEXT)),
        "messages.1.content.0.thinking.signature: Field required",
    ),
    (
        "6 thinking without text",
        talk(user(TEXT), assistant({"type": "thinking", "signature": "x"}, TEXT), user(TEXT)),
        "messages.1.content.0.thinking: each thinking block must contain thinking",
    ),
    (
        "6 binding needs its beta",
        words(thinking={"type": "adaptive", "block_binding": {}}),
        f"thinking.adaptive.block_binding: {EXTRA}",
    ),
    (
        "7 mark type",
        talk(user(TEXT | {"cache_control": {"type": "eternal"}})),
        "messages.0.content.0.text.cache_control.type: Input should be 'ephemeral'",
    ),
    (
        "7 mark lifetime",
        talk(user(TEXT | {"cache_control": {"type": "ephemeral", "ttl": "2h"}})),
        "messages.0.content.0.text.cache_control.ttl: Input should be '5m' or '1h'",
    ),
    (
        "7 no mark on thinking",
        talk(user(TEXT), assistant(THOUGHT | MARK, TEXT), user(TEXT)),
        f"messages.1.content.0.thinking.cache_control: {EXTRA}",
    ),
    (
        "7 no mark on empty text",
        talk(user({"type": "text", "text": ""} | MARK)),
        "messages.0.content.0.text: cache_control cannot be set for empty text blocks",
    ),
    (
        "8 editing needs its beta",
        words(context_management={"edits": []}),
        f"context_management: {EXTRA}",
    ),
    (
        "8 compaction needs its beta",
        words(compaction={"type": "summarize"}),
        "compaction: requires anthropic-beta: compact-2026-09-04",
    ),
    (
        "8 compaction block needs its beta",
        talk(assistant(COMPACTION), user(TEXT)),
        "messages.0.content.0: `compaction` blocks require anthropic-beta: compact-2026-09-04",
    ),
    (
        "8 compaction content null, not empty",
        talk(assistant(COMPACTION | {"content": ""}), user(TEXT)),
        "messages.0.content.0.compaction.content: ",
    ),
    (
        "8 dumped nulls",
        talk(assistant(COMPACTION | {"citations": None}), user(TEXT)),
        f"messages.0.content.0.compaction.citations: {EXTRA}",
    ),
]
