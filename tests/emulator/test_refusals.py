"""Requests that the API refuses, and counts of their tokens, each with its text."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.emulator.rule_refusals import RULES
from tests.emulator.shape_refusals import SHAPES
from tests.emulator.tool_refusals import TOOL_RULES


@pytest.mark.parametrize(("rule", "change", "text"), [*RULES, *SHAPES, *TOOL_RULES])
def test_a_wrong_request_is_refused_with_its_text(
    ask: Any, body: Any, rule: str, change: dict[str, Any], text: str
) -> None:
    answered = ask(body(**copy.deepcopy(change)))
    assert answered.status == 400, rule
    assert answered.json["error"]["type"] == "invalid_request_error"
    assert answered.json["request_id"] == answered.headers["request-id"]
    assert answered.message.startswith(text)


@pytest.mark.parametrize(("rule", "change", "text"), [*RULES, *SHAPES])
def test_a_count_is_refused_like_its_message(
    ask: Any, body: Any, rule: str, change: dict[str, Any], text: str
) -> None:
    """Section 2: the same validation, but fields that only concern sampling are unknown there."""
    full = body(**copy.deepcopy(change))
    full.pop("max_tokens")
    answered = ask(full, path="/v1/messages/count_tokens")
    sampling = {"max_tokens", "stream", "temperature", "top_p", "top_k"} & set(change)
    assert answered.status == (200 if sampling == {"max_tokens"} else 400), rule
    if not sampling:
        assert answered.message.startswith(text)
