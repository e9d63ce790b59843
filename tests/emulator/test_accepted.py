"""What must not be refused: the emulator is strict where the API is, and nowhere else."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from agentweb.emulator.catalogue import MODELS
from tests.emulator.samples import (
    HOUR,
    MARK,
    RESULT,
    RESULT_2,
    TEXT,
    TOOL,
    USE,
    USE_2,
    assistant,
    talk,
    user,
    words,
)

PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJg"
    "gg=="
)
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}
DOCUMENT = {
    "type": "document",
    "title": "Notes",
    "source": {"type": "text", "media_type": "text/plain", "data": "Some notes."},
    "citations": {"enabled": True},
}
FOUND = {"type": "search_result", "source": "https://a.example", "title": "A", "content": [TEXT]}
SERVER_USE = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
SERVER_RESULT = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}

ACCEPTED = [
    ("5 a string is one text block", words(messages=[{"role": "user", "content": "Hello"}])),
    (
        "5 one role twice in a row",
        talk(user(TEXT), user(TEXT), assistant(TEXT), assistant(TEXT), user(TEXT)),
    ),
    (
        "5 results in two messages of one turn",
        talk(user(TEXT), assistant(USE, USE_2), user(RESULT), user(RESULT_2)),
    ),
    ("5 an empty result", talk(user(TEXT), assistant(USE), user(RESULT | {"content": ""}))),
    (
        "5 a result without content",
        talk(user(TEXT), assistant(USE), user({"type": "tool_result", "tool_use_id": "toolu_1"})),
    ),
    (
        "5 a result with an empty list",
        talk(user(TEXT), assistant(USE), user(RESULT | {"content": []})),
    ),
    ("5 a failed result", talk(user(TEXT), assistant(USE), user(RESULT | {"is_error": True}))),
    ("5 text behind results", talk(user(TEXT), assistant(USE), user(RESULT, TEXT))),
    ("5 results in another order", talk(user(TEXT), assistant(USE, USE_2), user(RESULT_2, RESULT))),
    (
        "5 text between calls",
        talk(user(TEXT), assistant(TEXT, USE, TEXT, USE_2), user(RESULT, RESULT_2)),
    ),
    (
        "5 nested blocks",
        talk(
            user(TEXT), assistant(USE), user(RESULT | {"content": [TEXT, IMAGE, DOCUMENT, FOUND]})
        ),
    ),
    ("5 images and documents", talk(user(TEXT, IMAGE, DOCUMENT, FOUND))),
    ("5 a tool that is not offered", words(messages=[user(TEXT), assistant(USE), user(RESULT)])),
    (
        "5 a server tool with its result",
        talk(user(TEXT), assistant(SERVER_USE, SERVER_RESULT, TEXT), user(TEXT)),
    ),
    ("5 a paused turn sent back", talk(user(TEXT), assistant(SERVER_USE, SERVER_RESULT))),
    ("5 null for what may be absent", words(system="Be kind.", stop_sequences=None, metadata=None)),
    ("5 system as blocks", words(system=[TEXT, TEXT | MARK])),
    (
        "5 a format",
        words(output_config={"format": {"type": "json_schema", "schema": {}}, "effort": "low"}),
    ),
    ("5 tool choice none without tools", words(tool_choice={"type": "none"})),
    (
        "5 a deferred tool besides a loaded one",
        words(tools=[TOOL, TOOL | {"name": "b", "defer_loading": True}]),
    ),
    (
        "5 tools of the API itself",
        words(
            tools=[
                {"type": "memory_20250818", "name": "memory"},
                {"type": "web_search_20260318", "name": "web_search", "max_uses": 3},
            ]
        ),
    ),
    (
        "5 a schema with more in it",
        words(
            tools=[
                TOOL
                | {
                    "input_schema": {
                        "type": "object",
                        "properties": {"a": {"type": ["string", "null"], "enum": ["x"]}},
                        "required": ["a"],
                        "additionalProperties": False,
                        "$defs": {},
                    }
                }
            ]
        ),
    ),
    ("5 a long idle maximum", words(max_tokens=128_000)),
    ("5 pre-warming", words(max_tokens=0)),
    ("6 no thinking asked", words(thinking={"type": "disabled"})),
    ("6 progress only", words(thinking={"type": "between_tools"})),
    ("6 a display", words(thinking={"type": "adaptive", "display": "summarized"})),
    ("7 four marks", words(messages=[user(*[TEXT | MARK] * 4)])),
    ("7 long before short", words(tools=[TOOL | HOUR], messages=[user(TEXT | MARK)])),
    (
        "7 marks on results and nested blocks",
        talk(user(TEXT), assistant(USE | MARK), user(RESULT | {"content": [TEXT | MARK]} | MARK)),
    ),
    ("7 the automatic mark", words(cache_control={"type": "ephemeral", "ttl": "1h"})),
    ("11 diagnostics", words(diagnostics={"previous_message_id": None})),
    ("1 geography and tier", words(inference_geo="us", service_tier="auto")),
]


@pytest.mark.parametrize(("rule", "change"), ACCEPTED)
def test_what_the_sheet_accepts_is_accepted(
    ask: Any, body: Any, rule: str, change: dict[str, Any]
) -> None:
    answered = ask(body(**copy.deepcopy(change)))
    assert answered.status == 200, (rule, answered.body)


@pytest.mark.parametrize("model", [model.id for model in MODELS])
def test_every_model_takes_a_tool_conversation(ask: Any, body: Any, model: str) -> None:
    change = talk(user(TEXT, IMAGE), assistant(TEXT, USE), user(RESULT), model=model)
    assert ask(body(**change)).status == 200


def test_a_prefill_is_taken_up_by_models_that_have_it(ask: Any, body: Any) -> None:
    change = talk(user(TEXT), assistant(TEXT), model="claude-haiku-4-5")
    assert ask(body(**change)).status == 200


@pytest.mark.parametrize(
    "messages",
    [
        [user(TEXT), {"role": "system", "content": "Be brief."}],
        [user(TEXT), {"role": "system", "content": [TEXT]}, assistant(TEXT), user(TEXT)],
        [user(TEXT), assistant(USE), user(RESULT), {"role": "system", "content": "Now stop."}],
    ],
)
def test_a_system_message_may_stand_behind_the_user(ask: Any, body: Any, messages: Any) -> None:
    assert ask(body(messages=messages, model="claude-opus-5-5")).status == 200


@pytest.mark.parametrize("key", ["sk-ant-api03-anything", "x", "sk-a@acme/blue"])
def test_any_key_opens_the_door(ask: Any, body: Any, key: str) -> None:
    assert ask(body(), x_api_key=key).status == 200


@pytest.mark.parametrize("version", ["2023-06-01", "2026-10-21"])
def test_both_versions_of_the_api_are_served(ask: Any, body: Any, version: str) -> None:
    assert ask(body(), anthropic_version=version).status == 200


def test_an_unknown_beta_is_ignored(ask: Any, body: Any) -> None:
    assert ask(body(), anthropic_beta="tea-time-2026-12-24").status == 200
