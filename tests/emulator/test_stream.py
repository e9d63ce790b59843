"""Section 3: the grammar of a stream, and that its parts add up to the full answer."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentweb.emulator.app import create_app
from agentweb.emulator.scenes.scene import Raw, Reply, Text, ToolUse
from agentweb.emulator.tokens import count_text, fit_text
from tests.emulator.conftest import Asker, request
from tests.emulator.samples import TOOL
from tests.emulator.streams import assemble


@pytest.mark.parametrize("model", ["claude-sonnet-5-5", "claude-opus-5-5", "claude-opus-4-6"])
@pytest.mark.parametrize(
    "text", ["Hello", "Show me a table", "read a.txt and b.txt", "Answer in 900 words"]
)
@pytest.mark.parametrize("display", ["omitted", "summarized"])
def test_a_stream_adds_up_to_the_whole_answer(
    ask: Any, model: str, text: str, display: str
) -> None:
    asked = request(
        text, model=model, tools=[TOOL], thinking={"type": "adaptive", "display": display}
    )
    whole = Asker(create_app())(asked).json
    events = Asker(create_app())(asked | {"stream": True}).events
    streamed = assemble(events)
    final = next(data for name, data in events if name == "message_delta")
    assert [_lasting(block) for block in streamed] == [
        _lasting(block) for block in whole["content"]
    ]
    assert final["delta"]["stop_reason"] == whole["stop_reason"]
    assert final["usage"]["output_tokens"] == whole["usage"]["output_tokens"]
    assert final["usage"]["input_tokens"] == whole["usage"]["input_tokens"]


def _lasting(block: Any) -> Any:
    """Return a block without what depends on the bytes of the request."""
    return {name: value for name, value in block.items() if name not in {"id", "signature"}}


reply_blocks = st.one_of(
    st.builds(Text, st.text(min_size=1, max_size=300)),
    st.builds(
        ToolUse,
        st.just("read_file"),
        st.dictionaries(st.text(max_size=9), st.text(max_size=60) | st.integers(), max_size=4),
    ),
    st.just(Raw({"type": "redacted_thinking", "data": "x"})),
)


@settings(max_examples=60, deadline=None)
@given(blocks=st.lists(reply_blocks, max_size=5), seed=st.integers(0, 9))
def test_whatever_the_model_says_streams_by_the_grammar(blocks: list[Any], seed: int) -> None:
    app = create_app(scenes=[lambda _: Reply(tuple(blocks))], seed=seed)
    sent = assemble(Asker(app)(request(stream=True)).events)
    assert [block["type"] for block in sent] == [_kind(block) for block in blocks]
    for made, got in zip(blocks, sent, strict=True):
        if isinstance(made, Text):
            assert got["text"] == made.text
        if isinstance(made, ToolUse):
            assert got["input"] == made.input


def _kind(block: Any) -> str:
    match block:
        case Text():
            return "text"
        case ToolUse():
            return "tool_use"
        case _:
            return str(block.block["type"])


def test_a_signature_comes_last_in_its_block(ask: Any) -> None:
    events = ask.say("Hello", model="claude-opus-5-5", stream=True).events
    first = [data for name, data in events if data.get("index") == 0]
    assert first[-2]["delta"]["type"] == "signature_delta"


def test_a_tool_input_starts_with_an_empty_delta(ask: Any) -> None:
    events = ask.say("list files", tools=[TOOL | {"name": "list_files"}], stream=True).events
    partial = [
        d["delta"]["partial_json"]
        for n, d in events
        if n == "content_block_delta" and "partial_json" in d["delta"]
    ]
    assert partial[0] == ""
    assert json.loads("".join(partial)) == {}


def test_pings_come_between(ask: Any) -> None:
    names = [
        name for name, _ in ask.say("Answer in 3000 words", max_tokens=9_000, stream=True).events
    ]
    assert names[1] == "ping"
    assert names.count("ping") > 2


def test_deltas_are_of_uneven_size(ask: Any) -> None:
    events = ask.say("Answer in 300 words", stream=True).events
    sizes = {len(d["delta"]["text"]) for n, d in events if n == "content_block_delta"}
    assert len(sizes) > 5


def test_deltas_that_travel_together_are_the_same_as_one_by_one(ask: Any) -> None:
    """A fault or a pace needs single deltas; without them the bytes are the same."""
    asked = request("Show me a table", stream=True, model="claude-opus-5-5")
    alone = Asker(create_app())(asked, x_emulator_pace="0.00001").body
    assert Asker(create_app())(asked).body == alone


def test_max_tokens_cuts_the_text_and_says_so(ask: Any) -> None:
    answered = ask.say("Answer in 500 words", max_tokens=50)
    assert answered.json["stop_reason"] == "max_tokens"
    assert answered.json["usage"]["output_tokens"] <= 50
    assert answered.json["content"][0]["text"]


def test_a_stop_sequence_ends_the_answer_before_it(ask: Any) -> None:
    answered = ask.say("Show me a table", stop_sequences=["```python"]).json
    assert (answered["stop_reason"], answered["stop_sequence"]) == ("stop_sequence", "```python")
    assert "```" not in answered["content"][0]["text"]


def test_a_full_window_stops_the_answer(ask: Any, body: Any) -> None:
    prompt = "1 " * 370_000 + "Answer in 6000 words"
    answered = ask(body(prompt, model="claude-haiku-4-5", max_tokens=64_000)).json
    assert answered["stop_reason"] == "model_context_window_exceeded"
    assert answered["usage"]["input_tokens"] + answered["usage"]["output_tokens"] <= 200_000


def test_a_prompt_beyond_the_window_is_refused_with_its_figures(ask: Any, body: Any) -> None:
    answered = ask(body("1" * 500_000, model="claude-haiku-4-5"))
    assert answered.status == 400
    used = int(answered.message.removeprefix("prompt is too long: ").split()[0])
    assert answered.message == f"prompt is too long: {used} tokens > 200000 maximum"


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("The quick brown fox jumps over the lazy dog. " * 100, 2.8, 3.8),
        ("def add(a: int, b: int) -> int:\n    return a + b\n" * 50, 1.6, 3.3),
        ('{"name":"value","count":12,"list":[1,2,3]}' * 50, 1.3, 2.4),
        ("日本語のテキストです。" * 50, 0.9, 1.7),
    ],
)
def test_characters_per_token_are_those_measured(text: str, low: float, high: float) -> None:
    assert low <= len(text) / count_text(text, "newer") <= high


@settings(max_examples=80, deadline=None)
@given(st.text(max_size=200), st.integers(0, 60))
def test_a_fitted_text_is_a_prefix_within_the_limit(text: str, limit: int) -> None:
    cut = fit_text(text, limit, "newer")
    assert text.startswith(cut)
    assert count_text(cut, "newer") <= limit
