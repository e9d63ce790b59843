"""Section 6: the signature of thinking covers everything before it, the model and the account."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from agentweb.emulator.app import create_app
from tests.emulator.samples import TEXT, TOOL, assistant, user

ADAPTIVE = {"type": "adaptive", "display": "summarized"}
CONTROLS = "thinking-binding-controls-2026-08-01"
DIFFERENT = "The block is bound to a different conversation."
Body = dict[str, Any]


@pytest.fixture
def told(ask: Any, body: Any) -> Body:
    """Return a conversation of two tool rounds with thinking in every answer."""
    grown: Body = body(
        "list files", thinking=ADAPTIVE, tools=[TOOL | {"name": "list_files"}], system="Be kind."
    )
    for turn in ("list files", "and again, list files", None):
        answer = ask(grown)
        assert answer.status == 200, answer.body
        content = answer.json["content"]
        results = [
            {"type": "tool_result", "tool_use_id": block["id"], "content": "a.txt, b.txt"}
            for block in content
            if block["type"] == "tool_use"
        ]
        grown["messages"].append({"role": "assistant", "content": content})
        grown["messages"].append(
            user(*results, *([TEXT | {"text": turn}] if turn else []))
            if results or turn
            else user(TEXT)
        )
    return grown


def thoughts(grown: Body) -> list[tuple[int, int]]:
    return [
        (index, at)
        for index, message in enumerate(grown["messages"])
        if isinstance(message["content"], list)
        for at, block in enumerate(message["content"])
        if block["type"] == "thinking"
    ]


def test_a_conversation_sent_back_as_it_was_is_accepted(ask: Any, told: Body) -> None:
    assert len(thoughts(told)) >= 3
    assert ask(told).status == 200


def _shorten_result(told: Body) -> None:
    told["messages"][2]["content"][0]["content"] = "a.txt"


def _edit_prompt(told: Body) -> None:
    told["messages"][0]["content"] = "list the files"


def _edit_words(told: Body) -> None:
    index, _ = thoughts(told)[-1]
    told["messages"][index - 1]["content"].append(TEXT)


def _drop_messages(told: Body) -> None:
    del told["messages"][:2]
    told["messages"][0]["content"] = "Hello"


def _change_system(told: Body) -> None:
    told["system"] = "Be rude."


def _change_tools(told: Body) -> None:
    told["tools"].append(TOOL)


def _take_from_the_middle(told: Body) -> None:
    index, at = thoughts(told)[1]
    del told["messages"][index]["content"][at]


@pytest.mark.parametrize(
    ("change", "hint"),
    [
        (_shorten_result, DIFFERENT),
        (_edit_prompt, DIFFERENT),
        (_edit_words, DIFFERENT),
        (_drop_messages, DIFFERENT),
        (_change_system, "The `system` prompt differs from the one this block was created with."),
        (_change_tools, "The `tools` differ"),
        (_take_from_the_middle, "The `thinking` block that preceded this one"),
    ],
)
def test_a_changed_prefix_breaks_the_thinking_behind_it(
    ask: Any, told: Body, change: Callable[[Body], None], hint: str
) -> None:
    change(told)
    answered = ask(told)
    assert answered.status == 400
    assert DIFFERENT in answered.message
    assert hint in answered.message
    assert (
        'set `thinking.block_binding.prefix_mismatch_behavior` to "drop_block"' in answered.message
    )


def _append(told: Body) -> None:
    told["messages"].append(user(TEXT))


def _mark(told: Body) -> None:
    told["messages"][2]["content"][0]["cache_control"] = {"type": "ephemeral"}
    told["cache_control"] = {"type": "ephemeral"}


def _other_params(told: Body) -> None:
    told |= {"max_tokens": 77, "metadata": {"user_id": "u"}, "tool_choice": {"type": "none"}}


def _defer(told: Body) -> None:
    told["tools"].append(TOOL | {"defer_loading": True})


def _drop_oldest_thinking(told: Body) -> None:
    index, at = thoughts(told)[0]
    del told["messages"][index]["content"][at]


def _shorthand(told: Body) -> None:
    told["messages"][0]["content"] = [{"type": "text", "text": told["messages"][0]["content"]}]
    told["system"] = [{"type": "text", "text": told["system"]}]


def _split_results(told: Body) -> None:
    head, *tail = told["messages"][2]["content"]
    told["messages"][2:3] = [user(head), user(*tail)] if tail else [user(head)]


@pytest.mark.parametrize(
    "change",
    [_append, _mark, _other_params, _defer, _drop_oldest_thinking, _shorthand, _split_results],
)
def test_what_changes_no_meaning_before_it_leaves_thinking_valid(
    ask: Any, told: Body, change: Callable[[Body], None]
) -> None:
    change(told)
    answered = ask(told)
    assert answered.status == 200, answered.body


def test_drop_block_takes_the_broken_thinking_out_and_says_so(ask: Any, told: Body) -> None:
    _shorten_result(told)
    told["thinking"] = ADAPTIVE | {"block_binding": {"prefix_mismatch_behavior": "drop_block"}}
    answered = ask(told, anthropic_beta=CONTROLS)
    assert answered.status == 200
    dropped = answered.json["input_transformations"]
    later = [f"messages.{index}.content.{at}" for index, at in thoughts(told) if index > 2]
    assert [entry["path"] for entry in dropped] == later
    assert {entry["reason"] for entry in dropped} == {"prefix_binding_mismatch"}


def test_an_account_from_before_the_rule_drops_without_being_asked(ask: Any, told: Body) -> None:
    ask.emulator.prefix_mismatch = "drop_block"
    _shorten_result(told)
    assert ask(told, anthropic_beta=CONTROLS).json["input_transformations"]


def test_what_is_dropped_is_told_only_to_who_asks_for_it(ask: Any, told: Body) -> None:
    """Section 6: an empty list if nothing was dropped, no such field without the beta."""
    assert ask(told, anthropic_beta=CONTROLS).json["input_transformations"] == []
    ask.emulator.prefix_mismatch = "drop_block"
    _shorten_result(told)
    assert "input_transformations" not in ask(told).json
    (start, *_) = ask(told | {"stream": True}, anthropic_beta=CONTROLS).events
    assert start[1]["message"]["input_transformations"]


def test_edited_thinking_is_refused_by_where_it_stands(ask: Any, told: Body) -> None:
    (first, at), (last, end) = thoughts(told)[0], thoughts(told)[-1]
    early, late = copy.deepcopy(told), copy.deepcopy(told)
    early["messages"][first]["content"][at]["thinking"] += "!"
    late["messages"][last]["content"][end]["thinking"] += "!"
    assert ask(early).message.endswith("Invalid `signature` in `thinking` block")
    assert "blocks in the latest assistant message cannot be modified" in ask(late).message


@pytest.mark.parametrize(
    ("maker", "reader", "reads"),
    [
        ("claude-opus-5", "claude-fable-5-1", True),
        ("claude-opus-5", "claude-opus-5-5", True),
        ("claude-opus-5-5", "claude-fable-5-1", True),
        ("claude-opus-5-5", "claude-sonnet-5-5", False),
        ("claude-opus-5-5", "claude-haiku-5-5", False),
        ("claude-sonnet-5-5", "claude-haiku-5-5", True),
        ("claude-fable-5-1", "claude-opus-5-5", False),
        ("claude-fable-5-1", "claude-opus-5", False),
        ("claude-opus-5-5", "claude-opus-5", False),
    ],
)
def test_newer_models_read_older_thinking_and_drop_what_they_may_not_read(
    ask: Any, body: Any, maker: str, reader: str, reads: bool
) -> None:
    first = body("Who are you?", model=maker, thinking=ADAPTIVE)
    content = ask(first).json["content"]
    second = first | {"model": reader}
    second["messages"] = [*first["messages"], {"role": "assistant", "content": content}, user(TEXT)]
    answered = ask(second, anthropic_beta=CONTROLS)
    assert answered.status == 200
    reasons = [drop["reason"] for drop in answered.json["input_transformations"]]
    assert reasons == ([] if reads else ["model_binding_mismatch"])


def test_thinking_of_an_account_bound_model_stays_in_its_organization(ask: Any, body: Any) -> None:
    first = body("Who are you?", thinking=ADAPTIVE)
    content = ask(first, x_api_key="a@acme").json["content"]
    first["messages"] += [{"role": "assistant", "content": content}, user(TEXT)]
    assert ask(first, x_api_key="b@acme").status == 200
    refused = ask(first, x_api_key="a@rival")
    assert refused.message.endswith("The block is bound to a different organization.")


def test_another_emulator_vouches_for_the_same_signatures(ask: Any, told: Body) -> None:
    assert type(ask)(create_app(seed=99))(told).status == 200


def test_omitted_thinking_is_an_empty_block_with_a_signature(ask: Any, body: Any) -> None:
    block = ask(body("Who are you?", thinking={"type": "adaptive"})).json["content"][0]
    assert (block["type"], block["thinking"]) == ("thinking", "")
    assert block["signature"]


def test_text_in_an_omitted_block_is_not_read(ask: Any, body: Any) -> None:
    """Section 13: that is not a change; text that was shown must not change."""
    asked = body("Who are you?", thinking={"type": "adaptive"})
    content = ask(asked).json["content"]
    content[0]["thinking"] = "Something else."
    later = [*asked["messages"], assistant(*content), user(TEXT)]
    assert ask(asked | {"messages": later}).status == 200


@pytest.mark.parametrize(
    ("model", "config", "thinks"),
    [
        ("claude-sonnet-5-5", None, False),
        ("claude-sonnet-5-5", {"type": "between_tools"}, False),
        ("claude-haiku-5-5", {"type": "disabled"}, False),
        ("claude-opus-5-5", None, True),
        ("claude-fable-5-2", None, True),
        ("claude-haiku-4-5", {"type": "enabled", "budget_tokens": 1_024}, True),
    ],
)
def test_a_model_thinks_when_asked_or_always(
    ask: Any, body: Any, model: str, config: Any, thinks: bool
) -> None:
    more = {"thinking": config} if config else {}
    content = ask(body("Who are you?", model=model, **more)).json["content"]
    assert (content[0]["type"] == "thinking") is thinks


@pytest.mark.parametrize(
    ("model", "thinks"),
    [
        ("claude-sonnet-5-5", True), ("claude-haiku-5-5", True), ("claude-opus-5", True),
        ("claude-sonnet-5", True), ("claude-opus-4-8", False), ("claude-opus-4-7", False),
        ("claude-sonnet-4-6", False), ("claude-haiku-4-5", False),
    ],
)  # fmt: skip
def test_some_models_think_when_nothing_is_said_of_it(
    ask: Any, body: Any, model: str, thinks: bool
) -> None:
    asked = body("Who are you?", model=model, system="Be brief.")
    assert (ask(asked).json["content"][0]["type"] == "thinking") is thinks
    # Thinking counts: an answer without tokens left for text has none.
    cut = ask(asked | {"max_tokens": 8}).json
    texts = [block for block in cut["content"] if block["type"] == "text"]
    assert (cut["stop_reason"], bool(texts)) == ("max_tokens", not thinks)


def test_words_between_tools_come_as_thinking_where_the_model_does_so(ask: Any, body: Any) -> None:
    offered = [TOOL | {"name": "list_files"}]
    narrated = ask(body("list files", tools=offered, thinking=ADAPTIVE)).json["content"]
    spoken = ask(body("list files", tools=offered, model="claude-opus-5")).json["content"]
    assert [block["type"] for block in narrated] == ["thinking", "thinking", "tool_use"]
    assert [block["type"] for block in spoken] == ["text", "tool_use"]


@pytest.mark.parametrize(
    ("model", "keeps"),
    [("claude-opus-4-5", True), ("claude-sonnet-4-5", False), ("claude-haiku-4-5", False)],
)
def test_older_models_read_only_the_thinking_of_the_running_turn(
    ask: Any, body: Any, model: str, keeps: bool
) -> None:
    asked = body("Who are you?", model=model, thinking={"type": "enabled", "budget_tokens": 1_024})
    content = ask(asked).json["content"]
    assert content[0]["type"] == "thinking"
    counts = [
        ask(asked | {"messages": [*asked["messages"], assistant(*said), user(TEXT)]}).json["usage"][
            "input_tokens"
        ]
        for said in (content, content[1:])
    ]
    assert (counts[0] > counts[1]) is keeps


def test_the_newest_model_is_strict_with_every_account(ask: Any, body: Any) -> None:
    ask.emulator.prefix_mismatch = "drop_block"
    asked = body("Who are you?", model="claude-fable-5-2")
    content = ask(asked).json["content"]
    asked["messages"] = [user(TEXT), assistant(*content), user(TEXT)]
    assert DIFFERENT in ask(asked).message
