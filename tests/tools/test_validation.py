"""Arguments are checked strictly, and refusals say what was expected."""

from __future__ import annotations

import math
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.framework.errors import InputError
from tools.framework.schema import build_input_schema
from tools.framework.validation import (
    MOST_CHARACTERS,
    MOST_OF_LONG,
    check_lengths,
    validate_arguments,
)


async def sample(
    context: object,
    text: str,
    count: int = 0,
    share: float = 0.0,
    is_on: bool = False,
    words: list[str] = [],  # noqa: B006
    table: dict[str, int] = {},  # noqa: B006
    free: dict = {},  # noqa: B006
    unit: Literal["a", "b"] = "a",
    maybe: int | None = None,
) -> str:
    return ""


SCHEMA = build_input_schema(sample)


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return {"x": value}


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"count": -3, "share": 1, "is_on": True, "words": [], "table": {}, "unit": "b"},
        {"share": 0.5, "words": ["x", ""], "table": {"k": 2**63 - 1}, "maybe": None},
        {"maybe": 4, "free": {"deep": [{"x": [1.5, None, True, "y"]}]}},
        {"free": nested(50)},
    ],
)
def test_what_fits_is_returned_as_it_is(arguments: dict[str, Any]) -> None:
    given_ = {"text": "t", **arguments}
    assert validate_arguments(given_, SCHEMA) is given_


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"text": 5}, "text: expected a string, got the integer 5"),
        ({"text": None}, "text: expected a string, got null"),
        ({"count": "5"}, "count: expected an integer, got the string '5'"),
        ({"count": True}, "count: expected an integer, got true"),
        ({"count": 5.0}, "count: expected an integer, got the number 5.0"),
        ({"count": 2**63}, "count: expected an integer, got an integer beyond 64 bits"),
        ({"count": 10**5_000}, "count: expected an integer, got an integer beyond 64 bits"),
        ({"share": False}, "share: expected a number, got false"),
        ({"share": math.nan}, "share: expected a number, got the number nan"),
        ({"share": math.inf}, "share: expected a number, got the number inf"),
        ({"is_on": 1}, "is_on: expected true or false, got the integer 1"),
        ({"words": "x"}, "words: expected a list, got the string 'x'"),
        ({"words": ["x", 1]}, "words[1]: expected a string, got the integer 1"),
        ({"table": []}, "table: expected an object, got a list"),
        ({"table": {"k": {}}}, "table['k']: expected an integer, got an object"),
        ({"free": {"x": [{"y": -math.inf}]}}, "free: expected finite numbers"),
        ({"free": nested(100)}, "at most 64 levels"),
        ({"free": (1,)}, "free: expected an object, got a tuple"),
        ({"unit": "c"}, "unit: expected one of 'a', 'b', got 'c'"),
        ({"unit": 1}, "unit: expected one of 'a', 'b', got the integer 1"),
        ({"maybe": "x"}, "maybe: expected an integer or null, got the string 'x'"),
        ({"other": 1}, "unknown argument 'other': this tool takes text, count, share"),
    ],
)
def test_what_does_not_fit_is_named_with_what_was_expected(
    arguments: dict[str, Any], said: str
) -> None:
    with pytest.raises(InputError) as refused:
        validate_arguments({"text": "t", **arguments}, SCHEMA)
    assert said in str(refused.value)


@pytest.mark.parametrize("value", [None, [], "x", 1, True])
def test_an_input_that_is_no_object_is_refused(value: object) -> None:
    with pytest.raises(InputError, match="must be an object"):
        validate_arguments(value, SCHEMA)


def test_a_missing_argument_is_named() -> None:
    with pytest.raises(InputError, match=r"^missing argument 'text': expected a string\.$"):
        validate_arguments({}, SCHEMA)


def test_all_problems_are_told_at_once_and_bounded() -> None:
    with pytest.raises(InputError) as refused:
        validate_arguments({f"x{n}": 1 for n in range(20)}, SCHEMA)
    assert str(refused.value).count(";") == 8
    assert "and 13 more." in str(refused.value)
    with pytest.raises(InputError) as refused:
        validate_arguments({"count": "x" * 10_000}, SCHEMA)
    assert len(str(refused.value)) < 300


def test_a_tool_without_arguments_says_so() -> None:
    async def nothing(context: object) -> str:
        return ""

    with pytest.raises(InputError, match="takes no arguments"):
        validate_arguments({"x": 1}, build_input_schema(nothing))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(st.dictionaries(st.sampled_from(["text", "count", "free", "words", "maybe", "x"]), JSON))
def test_any_input_is_accepted_or_refused_in_words(arguments: dict[str, Any]) -> None:
    try:
        checked = validate_arguments(arguments, SCHEMA)
    except InputError as error:
        said = str(error)
    else:
        said = "."
        assert type(checked.get("count", 0)) is int
        assert isinstance(checked["text"], str)
    assert said.endswith(".")


@pytest.mark.parametrize("wrap", [lambda text: text, lambda text: [[text]], lambda text: {text: 1}])
def test_a_text_that_may_not_be_long_is_short_wherever_it_stands(wrap: Any) -> None:
    long, short = "x" * (MOST_CHARACTERS + 1), "x" * MOST_CHARACTERS
    check_lengths({"text": wrap(short), "body": wrap(long), "count": 3}, frozenset(("body",)))
    check_lengths({"text": wrap(long)}, None)
    with pytest.raises(InputError, match="text: 4,001 characters, and at most 4,000"):
        check_lengths({"text": wrap(long)}, frozenset(("body",)))
    with pytest.raises(InputError):
        check_lengths({"body": wrap("x" * (MOST_OF_LONG + 1))}, frozenset(("body",)))
