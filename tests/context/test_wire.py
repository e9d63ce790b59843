from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conversations.context.errors import WireError
from conversations.context.view import wire

scalars = st.none() | st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False)
values = st.recursive(
    scalars.filter(lambda value: value not in (float("inf"), float("-inf"))),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=12,
)


@settings(max_examples=60, deadline=None)
@given(st.lists(values))
def test_split_and_join_are_inverse(items: list[object]) -> None:
    text = wire.encode(items)
    assert wire.join(wire.split(text)) == text
    assert [wire.decode(piece) for piece in wire.split(text)] == wire.decode(text)


def test_split_keeps_numbers_escapes_and_key_order_as_they_stand() -> None:
    text = ' [ {"b":1.0e5,"a":"\\u00e9\\u0000"} , 12345678901234567890 ] '
    assert wire.split(text) == ['{"b":1.0e5,"a":"\\u00e9\\u0000"}', "12345678901234567890"]
    assert wire.split("[]") == wire.split(" [ ] ") == []


@pytest.mark.parametrize("text", ["", "{}", "[1 2]", "[1,]", "[1", "[1] x", "[] x", "[" * 100_000])
def test_what_is_no_array_is_not_split(text: str) -> None:
    with pytest.raises(WireError):
        wire.split(text)


@settings(max_examples=60, deadline=None)
@given(st.text(st.characters(exclude_categories=[])))
def test_encoded_text_can_be_carried_and_cleaning_changes_only_lone_surrogates(text: str) -> None:
    encoded = wire.encode(text)
    encoded.encode()
    assert json.loads(encoded) == wire.clean(text)
    assert wire.clean(wire.clean(text)) == wire.clean(text)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {1, 2}, object()])
def test_what_is_no_json_is_not_encoded(value: object) -> None:
    with pytest.raises(WireError):
        wire.encode(value)


@pytest.mark.parametrize("text", ["NaN", "[-Infinity]", "1e999", "{", "'a'", "[" * 100_000])
def test_what_is_no_json_is_not_decoded(text: str) -> None:
    with pytest.raises(WireError):
        wire.decode(text)


@settings(max_examples=200, deadline=None)
@given(st.text(st.sampled_from('\ud83d\udbff\ude00\udc00\\ndu8"🎉'), max_size=12))
def test_the_escape_of_a_lone_surrogate_is_read_like_the_character_that_replaces_it(
    text: str,
) -> None:
    escaped = json.dumps({text: [text]})
    read = json.loads(wire.clean(json.dumps(json.loads(escaped), ensure_ascii=False)))
    assert wire.decode(escaped) == json.loads(wire.clean_escapes(escaped)) == read


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        (r'["\uD83D\ude00", "\u00e9", 1.0]', None),
        (r'["a \\ud83d"]', None),
        (r'{"\ud83d": "\\\uDE00"}', r'{"\ufffd": "\\\ufffd"}'),
        (r'["\ud83d\ud83d\ude00\ude00"]', r'["\ufffd\ud83d\ude00\ufffd"]'),
    ],
)
def test_only_the_escapes_of_lone_surrogates_change(text: str, cleaned: str | None) -> None:
    assert wire.clean_escapes(text) == (cleaned or text)


def test_a_digest_names_its_algorithm() -> None:
    assert wire.digest("é").startswith("sha256:4a99557e4033c3539de2eb65472017cad5f9557f7a0625a0")
    assert wire.decode("1.5") == 1.5


def test_what_no_encoding_can_carry_is_replaced_where_text_enters() -> None:
    assert wire.clean("a\ud800b\udfff") == "a\ufffdb\ufffd"
    assert wire.encode(["\ud83d", "🎉"]) == '["\ufffd","🎉"]'
    assert wire.digest(wire.encode("\udc00")) == wire.digest('"\ufffd"')
