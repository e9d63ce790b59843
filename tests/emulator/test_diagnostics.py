"""Section 11: a request that names the previous answer gets the reason for a cache miss."""

from __future__ import annotations

from typing import Any

import pytest

from tests.emulator.samples import MARK, TEXT, TOOL, assistant, user

LONG = "The quick brown fox jumps over the lazy dog, again and again. " * 200
Body = dict[str, Any]


@pytest.fixture
def diagnosed_body(body: Any) -> Body:
    made: Body = body(
        system=[{"type": "text", "text": LONG} | MARK],
        tools=[TOOL],
        messages=[user(TEXT)],
        thinking={"type": "between_tools"},
        diagnostics={"previous_message_id": None},
    )
    return made


def grown(diagnosed_body: Body, answer: Any, **more: Any) -> Body:
    messages = [*diagnosed_body["messages"], assistant(*answer["content"]), user(TEXT)]
    named = {"previous_message_id": answer["id"]}
    return diagnosed_body | {"messages": messages, "diagnostics": named} | more


def reason(answered: Any) -> Any:
    assert answered.status == 200, answered.body
    return (answered.json["diagnostics"] or {}).get("cache_miss_reason")


def test_the_first_turn_has_nothing_to_compare(ask: Any, diagnosed_body: Body) -> None:
    assert ask(diagnosed_body).json["diagnostics"] is None
    assert "diagnostics" not in ask.say("Hello").json


def test_a_conversation_that_only_grows_has_no_reason(ask: Any, diagnosed_body: Body) -> None:
    first = ask(diagnosed_body).json
    assert reason(ask(grown(diagnosed_body, first))) is None


@pytest.mark.parametrize(
    ("more", "kind"),
    [
        ({"model": "claude-haiku-5-5"}, "model_changed"),
        ({"tools": [TOOL | {"description": "Other."}]}, "tools_changed"),
        ({"tools": [TOOL, TOOL | {"name": "b"}]}, "tools_changed"),
        ({"system": [{"type": "text", "text": f"{LONG}!"} | MARK]}, "system_changed"),
        ({"messages": [user({"type": "text", "text": "Other"})]}, "messages_changed"),
    ],
)
def test_what_changed_first_is_the_reason(
    ask: Any, diagnosed_body: Body, more: Body, kind: str
) -> None:
    first = ask(diagnosed_body).json
    written = first["usage"]["cache_creation_input_tokens"]
    answered = ask(grown(diagnosed_body, first, **more))
    missed = 0 if kind == "messages_changed" else written
    assert reason(answered) == {"type": kind, "cache_missed_input_tokens": missed}
    assert written > 1_000


def test_another_speed_is_another_model(ask: Any, diagnosed_body: Body) -> None:
    slow = diagnosed_body | {"model": "claude-opus-4-8", "thinking": {"type": "adaptive"}}
    first = ask(slow).json
    told = reason(ask(grown(slow, first, speed="fast")))
    assert told["type"] == "model_changed"


def test_several_changes_are_told_as_the_first(ask: Any, diagnosed_body: Body) -> None:
    first = ask(diagnosed_body).json
    other = {"model": "claude-opus-5-5", "thinking": {"type": "adaptive"}}
    told = reason(ask(grown(diagnosed_body, first, system="Other", tools=[], **other)))
    assert told["type"] == "model_changed"


@pytest.mark.parametrize(
    "more", [{"thinking": {"type": "adaptive"}}, {"tool_choice": {"type": "none"}}]
)
def test_other_parameters_are_no_text_and_unavailable(
    ask: Any, diagnosed_body: Body, more: Body
) -> None:
    first = ask(diagnosed_body).json
    assert reason(ask(grown(diagnosed_body, first, **more))) == {"type": "unavailable"}


def test_moved_marks_are_no_difference(ask: Any, diagnosed_body: Body) -> None:
    first = ask(diagnosed_body).json
    moved = grown(diagnosed_body, first, system=[{"type": "text", "text": LONG}])
    moved["messages"][-1] = user(TEXT | MARK)
    assert reason(ask(moved)) is None


@pytest.mark.parametrize("key", ["k@acme/red", "k@rival/blue"])
def test_an_answer_of_elsewhere_is_not_found(ask: Any, diagnosed_body: Body, key: str) -> None:
    first = ask(diagnosed_body, x_api_key="k@acme/blue").json
    assert reason(ask(grown(diagnosed_body, first), x_api_key="k2@acme/blue")) is None
    told = reason(ask(grown(diagnosed_body, first), x_api_key=key))
    assert told == {"type": "previous_message_not_found"}


def test_in_a_stream_it_comes_at_the_start(ask: Any, diagnosed_body: Body) -> None:
    first = ask(diagnosed_body).json
    changed = grown(diagnosed_body, first, system="Other", stream=True)
    start = ask(changed).events[0][1]["message"]
    assert start["diagnostics"]["cache_miss_reason"]["type"] == "system_changed"


@pytest.mark.parametrize("wrong", [{"previous_message_id": 7}, {"colour": "red"}, "msg_1"])
def test_a_wrong_question_is_refused(ask: Any, diagnosed_body: Body, wrong: Any) -> None:
    answered = ask(diagnosed_body | {"diagnostics": wrong})
    assert answered.status == 400
    assert answered.message.startswith("diagnostics")
