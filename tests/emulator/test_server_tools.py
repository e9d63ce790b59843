"""Sections 3, 4, 5 and 8: tools that run on the API's side, in definitions, history and answers."""

from __future__ import annotations

from typing import Any, get_args, get_type_hints

import pytest
from anthropic.types import ToolUnionParam

from agentweb.emulator.prices import cost_micros
from agentweb.emulator.usage import Usage
from agentweb.emulator.validation.builtin_tools import OWN_TOOLS
from tests.emulator.samples import TEXT, TOOL, assistant, user
from tests.emulator.streams import assemble

SEARCH = {"type": "web_search_20260318", "name": "web_search"}
CODE = {"type": "code_execution_20260521", "name": "code_execution"}
FETCH = {"type": "web_fetch_20260318", "name": "web_fetch"}
AUTOMATIC = "compact-2026-01-12"


def kinds(message: Any) -> list[str]:
    return [block["type"] for block in message["content"]]


def test_a_search_runs_within_one_answer_and_is_counted(ask: Any) -> None:
    message = ask.say("search the web for tea", tools=[SEARCH]).json
    assert kinds(message) == ["server_tool_use", "web_search_tool_result", "text", "text"]
    use, result = message["content"][:2]
    assert use["id"].startswith("srvtoolu_")
    assert (use["input"], result["tool_use_id"]) == ({"query": "tea"}, use["id"])
    assert message["stop_reason"] == "end_turn"
    assert message["usage"]["server_tool_use"] == {
        "web_search_requests": 1,
        "web_fetch_requests": 0,
    }


def test_its_answer_cites_the_page_that_was_found(ask: Any) -> None:
    message = ask.say("search the web for tea", tools=[SEARCH]).json
    (citation,) = message["content"][-1]["citations"]
    (page,) = message["content"][1]["content"]
    assert citation["type"] == "web_search_result_location"
    assert (citation["url"], citation["title"]) == (page["url"], page["title"])


def test_it_streams_its_input_and_its_result_whole(ask: Any) -> None:
    asked = {"tools": [SEARCH], "text": "search the web for tea"}
    events = ask.say(**asked, stream=True).events
    assert kinds({"content": assemble(events)}) == kinds(ask.say(**asked).json)
    final = next(data for name, data in events if name == "message_delta")
    assert final["usage"]["server_tool_use"]["web_search_requests"] == 1


@pytest.mark.parametrize(
    ("more", "host"),
    [
        ({"allowed_domains": ["tea.example"]}, "tea.example"),
        ({"blocked_domains": ["pages.example"]}, "library.example"),
    ],
)
def test_what_is_found_lies_where_it_may(ask: Any, more: Any, host: str) -> None:
    message = ask.say("search the web for tea", tools=[SEARCH | more]).json
    assert message["content"][1]["content"][0]["url"].startswith(f"https://{host}/")


def test_used_up_searches_give_an_error_and_no_page(ask: Any) -> None:
    message = ask.say("search the web 3 times for tea", tools=[SEARCH | {"max_uses": 2}]).json
    results = [b["content"] for b in message["content"] if b["type"] == "web_search_tool_result"]
    assert results[-1] == {
        "type": "web_search_tool_result_error",
        "error_code": "max_uses_exceeded",
    }
    assert isinstance(results[1], list)
    assert message["usage"]["server_tool_use"]["web_search_requests"] == 2


@pytest.mark.parametrize("is_streamed", [True, False])
def test_a_search_that_gave_something_is_on_the_bill(ask: Any, is_streamed: bool) -> None:
    answered = ask.say(
        "search the web 3 times for tea", tools=[SEARCH | {"max_uses": 2}], stream=is_streamed
    )
    bill = ask.emulator.bills[answered.headers["request-id"]]
    tokens = cost_micros("claude-sonnet-5-5", bill.iterations)
    assert bill.cost_micros == tokens + 2 * 10_000


def test_after_ten_rounds_the_turn_pauses_and_goes_on_when_sent_back(ask: Any, body: Any) -> None:
    asked = body("search the web 13 times for tea", tools=[SEARCH])
    first = ask(asked).json
    assert (first["stop_reason"], kinds(first)[-1]) == ("pause_turn", "server_tool_use")
    assert first["usage"]["server_tool_use"]["web_search_requests"] == 9
    asked["messages"].append(assistant(*first["content"]))
    second = ask(asked).json
    assert (second["stop_reason"], kinds(second)[0]) == ("end_turn", "web_search_tool_result")
    assert second["usage"]["server_tool_use"]["web_search_requests"] == 4
    asked["messages"] += [assistant(*second["content"]), user(TEXT)]
    assert ask(asked).status == 200


def test_code_runs_in_a_container_that_can_be_kept(ask: Any, body: Any) -> None:
    asked = body("run code: print('hello')", tools=[CODE])
    message = ask(asked).json
    assert kinds(message) == ["server_tool_use", "bash_code_execution_tool_result", "text"]
    assert message["content"][1]["content"]["stdout"] == "hello\n"
    name = message["container"]["id"]
    asked["messages"] += [assistant(*message["content"]), user(TEXT)]
    asked["messages"] += [{"role": "user", "content": "run code: print('again')"}]
    asked["container"] = name
    assert ask(asked).json["container"]["id"] == name
    assert "container" not in ask.say("Hello").json


def test_the_first_version_of_the_tool_runs_code_and_no_shell(ask: Any) -> None:
    first = CODE | {"type": "code_execution_20250522"}
    message = ask.say("run code: print('hello')", tools=[first]).json
    assert kinds(message) == ["server_tool_use", "code_execution_tool_result", "text"]
    assert message["content"][0]["input"] == {"code": "print('hello')"}
    assert message["content"][1]["content"]["stdout"] == "hello\n"


@pytest.mark.parametrize(
    ("citations", "url", "kind"),
    [
        ({}, "https://tea.example/green", None),
        ({"citations": {"enabled": False}}, "https://tea.example/green", None),
        ({"citations": {"enabled": True}}, "https://tea.example/green", "char_location"),
        ({"citations": {"enabled": True}}, "https://tea.example/green.pdf", "page_location"),
    ],
)
def test_a_page_is_read_as_a_document_and_cited_where_it_may_be(
    ask: Any, body: Any, citations: Any, url: str, kind: str | None
) -> None:
    asked = body(f"Fetch {url}", tools=[FETCH | citations])
    message = ask(asked).json
    assert kinds(message)[:2] == ["server_tool_use", "web_fetch_tool_result"]
    page = message["content"][1]["content"]
    assert (page["url"], page["content"]["type"]) == (url, "document")
    found = [c["type"] for b in message["content"] for c in b.get("citations", ())]
    assert found == ([kind] if kind else [])
    assert message["usage"]["server_tool_use"] == {
        "web_search_requests": 0,
        "web_fetch_requests": 1,
    }
    asked["messages"] += [assistant(*message["content"]), user(TEXT)]
    assert ask(asked).status == 200


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"allowed_domains": ["other.example"]}, "url_not_allowed"),
        ({"blocked_domains": ["tea.example"]}, "url_not_allowed"),
    ],
)
def test_a_page_elsewhere_is_not_read(ask: Any, more: Any, code: str) -> None:
    message = ask.say("Fetch https://tea.example/green", tools=[FETCH | more]).json
    assert message["content"][1]["content"] == {
        "type": "web_fetch_tool_result_error",
        "error_code": code,
    }


def test_all_kinds_of_tools_wait_in_one_answer(ask: Any, body: Any) -> None:
    tools = {"tools": [SEARCH, FETCH, CODE, TOOL]}
    asked = body("emulator:rounds=search+fetch+bash+edit+tool,fetch,bash", **tools)
    first = ask(asked).json
    assert kinds(first) == [*["server_tool_use"] * 4, "tool_use"]
    called = first["content"][-1]["id"]
    result = {"type": "tool_result", "tool_use_id": called, "content": "9"}
    asked["messages"] += [assistant(*first["content"]), user(result)]
    second = ask(asked).json
    assert kinds(second)[:4] == [
        "web_search_tool_result",
        "web_fetch_tool_result",
        "bash_code_execution_tool_result",
        "text_editor_code_execution_tool_result",
    ]
    assert [block["tool_use_id"] for block in second["content"][:4]] == [
        block["id"] for block in first["content"][:4]
    ]
    assert second["container"]["id"]
    asked["messages"] += [assistant(*second["content"]), user(TEXT)]
    assert ask(asked).status == 200


def test_in_a_stream_the_container_comes_with_the_stop_reason(ask: Any) -> None:
    events = ask.say("run code: print('hello')", tools=[CODE], stream=True).events
    final = next(data for name, data in events if name == "message_delta")
    assert final["delta"]["container"]["expires_at"].endswith("Z")


def test_without_the_tool_nothing_is_searched(ask: Any) -> None:
    assert kinds(ask.say("search the web for tea").json) == ["text"]


def test_the_memory_tool_is_called_like_a_tool_of_the_caller(ask: Any) -> None:
    memory = {"type": "memory_20250818", "name": "memory"}
    text = 'call tool memory with {"command": "view", "path": "/memories"}'
    message = ask.say(text, tools=[memory]).json
    assert message["stop_reason"] == "tool_use"
    assert message["content"][-1]["input"]["command"] == "view"


def searching(trigger: int, **more: Any) -> dict[str, Any]:
    edit = {"type": "compact_20260112", "trigger": {"type": "input_tokens", "value": trigger}}
    return {"edits": [edit | more]}


def test_compaction_fires_several_times_in_a_request_with_server_tools(ask: Any, body: Any) -> None:
    text = "search the web 9 times, 22000 words each, for tea"
    asked = body(text, tools=[SEARCH], context_management=searching(50_000))
    answered = ask(asked, anthropic_beta=AUTOMATIC)
    message = answered.json
    rows = message["usage"]["iterations"]
    made = [row["type"] for row in rows]
    assert made.count("compaction") == kinds(message).count("compaction") >= 2
    assert made == ["message", *["compaction", "message"] * made.count("compaction")]
    told = [row for row in rows if row["type"] == "message"]
    for name in ("input_tokens", "output_tokens"):
        assert message["usage"][name] == sum(row[name] for row in told)
    bill = ask.emulator.bills[answered.headers["request-id"]]
    spent = [Usage(fresh=row["input_tokens"], output=row["output_tokens"]) for row in rows]
    assert bill.cost_micros == cost_micros("claude-sonnet-5-5", spent, searches=9)
    asked["messages"] += [assistant(*message["content"]), user(TEXT)]
    again = ask(asked, anthropic_beta=AUTOMATIC)
    assert again.status == 200, again.body
    assert again.json["usage"]["input_tokens"] < told[-1]["input_tokens"] + 50_000


def test_its_stream_adds_up_to_the_same_blocks(ask: Any, body: Any) -> None:
    text = "search the web 9 times, 22000 words each, for tea"
    asked = body(text, tools=[SEARCH], context_management=searching(50_000))
    whole = ask(asked, anthropic_beta=AUTOMATIC).json
    events = ask(asked | {"stream": True}, anthropic_beta=AUTOMATIC).events
    assert kinds({"content": assemble(events)}) == kinds(whole)
    start = events[0][1]["message"]["usage"]["input_tokens"]
    assert start < whole["usage"]["input_tokens"]


#: Without custom tools, and without toolsets, whose members are not checked.
KNOWN = [
    param
    for param in get_args(ToolUnionParam)
    if not get_type_hints(param).keys() & {"input_schema", "configs"}
]


@pytest.mark.parametrize("param", KNOWN, ids=lambda param: param.__name__)
def test_the_fields_of_every_tool_are_those_the_sdk_knows(param: Any, ask: Any, body: Any) -> None:
    """Section 5: a missing field refuses what the API accepts, an extra one hides a mistake."""
    hints = get_type_hints(param)
    for kind in get_args(hints["type"]):
        assert kind in OWN_TOOLS
        named = {"type": kind, "name": get_args(hints["name"])[0]}
        for field in hints.keys() - named.keys():
            answered = ask(body(tools=[named | {field: object_for(field)}]))
            assert answered.status == 200 or "All tools have defer_loading" in answered.message, (
                field,
                answered.body,
            )
        assert ask(body(tools=[named | {"colour": 1}])).message == (
            f"tools.0.{kind}.colour: Extra inputs are not permitted"
        )


def object_for(field: str) -> Any:
    """Return a valid value for a field of a tool."""
    values: dict[str, Any] = {
        "allowed_callers": ["direct"],
        "allowed_domains": ["a.example"],
        "blocked_domains": ["a.example"],
        "cache_control": {"type": "ephemeral"},
        "citations": {"enabled": True},
        "input_examples": [{"a": 1}],
        "response_inclusion": "full",
        "url_sources": {"user_input": {"type": "all"}},
        "user_location": {"type": "approximate", "city": "Lisbon", "country": "PT"},
    }
    return values.get(field, True if field in _SWITCHES else 3)


_SWITCHES = frozenset({"defer_loading", "strict", "use_cache"})
