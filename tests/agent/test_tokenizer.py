"""Counting an answer that was cut: each family's weights, and agreement with the emulator."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentweb.emulator.model_catalogue import MODELS
from agentweb.emulator.tokens import count_text
from conversations.agent.answer import Answer
from conversations.agent.tokenizer import CALL_TOKENS, NEWER, OLDER, Family, find_family
from conversations.context.view import wire
from tests.agent.streams import opened, start, text, thought

FAMILIES = {"older": OLDER, "newer": NEWER}
#: A text, and what it counts in hundredths of a token: in the older family, in the newer.
COUNTS = [
    ("abc", 3 * 26, 3 * 32 + 15),
    ("ABC DEF", 6 * 128, 6 * 157 + 2 * 15),
    ("2026", 4 * 54, 4 * 46 + 15),
    ("{}\n", 2 * 73 + 8, 2 * 96 + 15),
    ("äß", 2 * 59, 2 * 56 + 15),
    ("数据", 2 * 101, 2 * 100 + 15),
    ("😀", 320, 310 + 15),
    ("\0\x1f", 2 * 73, 2 * 96 + 15),
]


@pytest.mark.parametrize(("words", "older", "newer"), COUNTS)
def test_a_text_counts_by_the_classes_of_its_characters(words: str, older: int, newer: int) -> None:
    assert OLDER.count(words) == -(-older // 100)
    assert NEWER.count(words) == -(-newer // 100)


def test_an_empty_text_counts_nothing_and_a_blank_one_a_token() -> None:
    assert (OLDER.count(""), OLDER.count(" "), NEWER.count("\t")) == (0, 1, 1)


@given(st.text(), st.sampled_from(sorted(FAMILIES)))
def test_two_implementations_of_the_law_agree(words: str, name: str) -> None:
    # What no encoding can carry is replaced before it is counted.
    assert FAMILIES[name].count(wire.clean(words)) == count_text(words, name)  # type: ignore[arg-type]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.id)
def test_the_generation_in_its_name_says_the_family_of_a_model(model: object) -> None:
    assert find_family(model.id) is FAMILIES[model.tokenizer]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("model", "family"),
    [
        ("claude-3-5-sonnet-20241022", OLDER),
        ("claude-sonnet-4-20250514", OLDER),
        ("claude-opus-4-7", NEWER),
        ("claude-haiku-6", NEWER),
        ("something-else", NEWER),
        ("", NEWER),
    ],
)
def test_an_unknown_model_counts_as_one_of_the_newer_family(model: str, family: Family) -> None:
    assert find_family(model) is family


def test_what_has_come_of_every_block_counts_thinking_and_half_a_call_too() -> None:
    answer = Answer()
    call = {"type": "tool_use", "id": "t1", "name": "look", "input": {}}
    piece = {"type": "input_json_delta", "partial_json": '{"pa'}
    events = [start(), *thought(0, "Well"), *text(1, "As far"), opened(2, call)]
    for event in [*events, {"type": "content_block_delta", "index": 2, "delta": piece}]:
        answer.feed(event)
    parts = [NEWER.count("Well"), NEWER.count("As far"), NEWER.count('look{"pa') + CALL_TOKENS]
    assert answer.tokens("claude-sonnet-5-5") == sum(parts)


def test_what_no_model_writes_counts_nothing() -> None:
    answer = Answer()
    result = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": [{"a": "b" * 99}]}
    for event in [
        start(),
        opened(0, {"type": "redacted_thinking", "data": "x" * 99}),
        opened(1, result),
    ]:
        answer.feed(event)
    assert answer.tokens("claude-sonnet-5-5") == 0
