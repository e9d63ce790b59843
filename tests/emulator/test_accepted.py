"""Requests that must not be refused: the emulator is as strict as the API, and no stricter."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from agentweb.emulator.model_catalogue import MODELS
from tests.emulator.samples import (
    HOUR,
    MARK,
    RESULT,
    RESULT_2,
    SEARCH,
    SERVER_RESULT,
    SERVER_USE,
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
PAGE = {
    "type": "web_search_result",
    "url": "https://a.example",
    "title": "A",
    "encrypted_content": "eA==",
    "page_age": None,
}
NO_PAGE = {"type": "web_search_tool_result_error", "error_code": "unavailable"}
SECOND = {"tool_use_id": "s2"}
RAN = {
    "type": "code_execution_result",
    "stdout": "",
    "stderr": "",
    "return_code": 0,
    "content": [{"type": "code_execution_output", "file_id": "file_1"}],
}
CODE_USE = {"type": "server_tool_use", "id": "srvtoolu_2", "name": "code_execution", "input": {}}
CODE_RESULT = {
    "type": "code_execution_tool_result",
    "tool_use_id": "srvtoolu_2",
    "content": RAN,
}
BOUNDARY = {
    "type": "fallback",
    "from": {"model": "claude-fable-5-1"},
    "to": {"model": "claude-sonnet-5-5"},
    "trigger": {"type": "refusal", "category": None},
}

SYSTEM_MESSAGE = {"role": "system", "content": "Be brief."}
STRING_FORMAT = {"type": "json_schema", "schema": {"type": "string"}}
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
    ("5 an escaped pair, and no escape", talk(user(TEXT | {"text": "\U0001f600 \\ud83d"}))),
    ("5 stop sequences", words(stop_sequences=["\n\nHuman:", " a"])),
    ("5 system as blocks", words(system=[TEXT, TEXT | MARK])),
    (
        "5 a format",
        words(
            output_config={
                "format": {"type": "json_schema", "schema": {"type": "string"}},
                "effort": "low",
            }
        ),
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
    (
        "13 one id in two turns",
        {
            "tools": [TOOL],
            "messages": [user(TEXT), assistant(USE), user(RESULT), assistant(USE), user(RESULT)],
        },
    ),
    ("13 an assistant first", {"messages": [assistant(TEXT), user(TEXT)]}),
    (
        "13 two system messages at the end",
        {
            "model": "claude-opus-4-8",
            "messages": [user(TEXT), SYSTEM_MESSAGE, SYSTEM_MESSAGE],
        },
    ),
    ("13 no thinking", words(model="claude-haiku-5-5", thinking={"type": "disabled"})),
    ("6 progress only", words(thinking={"type": "between_tools"})),
    ("6 a display", words(thinking={"type": "adaptive", "display": "summarized"})),
    ("7 four marks", words(messages=[user(*[TEXT | MARK] * 4)])),
    ("7 long before short", words(tools=[TOOL | HOUR], messages=[user(TEXT | MARK)])),
    (
        "7 marks on results and nested blocks",
        talk(user(TEXT), assistant(USE | MARK), user(RESULT | {"content": [TEXT | MARK]} | MARK)),
    ),
    ("7 the automatic mark", words(cache_control={"type": "ephemeral", "ttl": "1h"})),
    (
        "5 pages and errors of a search",
        talk(
            user(TEXT),
            assistant(SERVER_USE, SERVER_RESULT | {"content": [PAGE]}, TEXT),
            user(TEXT),
            assistant(SERVER_USE | {"id": "s2"}, SERVER_RESULT | SECOND | {"content": NO_PAGE}),
            user(TEXT),
        ),
    ),
    ("5 code that ran", talk(user(TEXT), assistant(CODE_USE, CODE_RESULT, TEXT), user(TEXT))),
    (
        "5 code that waits for a tool of the caller",
        talk(
            user(TEXT),
            assistant(
                CODE_USE,
                USE | {"caller": {"type": "code_execution_20260521", "tool_id": "srvtoolu_2"}},
            ),
            user(RESULT),
        ),
    ),
    (
        "5 a search on some sites",
        words(tools=[SEARCH | {"allowed_domains": ["a.example"], "max_uses": 5}]),
    ),
    (
        "5 a search near somebody",
        words(tools=[SEARCH | {"user_location": {"type": "approximate", "city": "Lisbon"}}]),
    ),
    (
        "5 a search besides deferred tools",
        words(
            tools=[
                {"type": "tool_search_tool_bm25", "name": "tool_search_tool_bm25"},
                TOOL | {"defer_loading": True},
            ]
        ),
    ),
    ("3 a fallback boundary", talk(user(TEXT), assistant(TEXT, BOUNDARY, TEXT), user(TEXT))),
    ("7 a mark on a call", talk(user(TEXT), assistant(USE | MARK), user(RESULT | MARK))),
    ("7 a mark on an image and a document", talk(user(IMAGE | MARK, DOCUMENT | MARK, TEXT))),
    (
        "7 a mark on what a search found",
        talk(user(TEXT), assistant(SERVER_USE, SERVER_RESULT | MARK, TEXT), user(TEXT)),
    ),
    ("5 a container by name", words(container="container_1")),
    ("5 a container with skills", words(container={"id": None, "skills": []})),
    ("4 standard capacity only", words(service_tier="standard_only")),
    ("1 no geography", words(inference_geo=None)),
    (
        "5 an id of any letters",
        talk(
            user(TEXT),
            assistant(USE | {"id": "a-B_9"}),
            user(RESULT | {"tool_use_id": "a-B_9"}),
        ),
    ),
    ("5 a name of 128 letters", words(tools=[TOOL | {"name": "n" * 128}])),
    ("5 an empty input", talk(user(TEXT), assistant(USE | {"input": {}}), user(RESULT))),
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


def test_a_system_message_may_follow_a_server_tool_result(ask: Any, body: Any) -> None:
    told = {"role": "system", "content": "Now stop."}
    messages = [user(TEXT), assistant(SERVER_USE, SERVER_RESULT), told]
    assert ask(body(messages=messages, model="claude-opus-5-5")).status == 200
    messages[1]["content"].append(TEXT)
    refused = ask(body(messages=messages, model="claude-opus-5-5"))
    assert refused.message.startswith("messages.2: a `system` message must follow")


@pytest.mark.parametrize("key", ["sk-ant-api03-anything", "x", "sk-a@acme/blue"])
def test_any_key_is_accepted(ask: Any, body: Any, key: str) -> None:
    assert ask(body(), x_api_key=key).status == 200


@pytest.mark.parametrize("version", ["2023-06-01", "2026-10-21"])
def test_both_versions_of_the_api_are_served(ask: Any, body: Any, version: str) -> None:
    assert ask(body(), anthropic_version=version).status == 200


def test_an_unknown_beta_is_ignored(ask: Any, body: Any) -> None:
    assert ask(body(), anthropic_beta="tea-time-2026-12-24").status == 200
