"""Section 10: a request with several errors is refused for the first of them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.emulator.samples import MARK, TEXT, THOUGHT, TOOL, USE, assistant, user

#: Each invalid in its own way, in the order of the checks.
WRONGS: list[tuple[dict[str, Any], int, str]] = [
    ({"colour": "red"}, 400, "colour: Extra inputs are not permitted"),
    ({"model": "claude-nobody"}, 404, "model: claude-nobody"),
    ({"max_tokens": 900_000}, 400, "max_tokens: 900000 > 128000"),
    ({"temperature": 1}, 400, "`temperature` is deprecated"),
    ({"thinking": {"type": "enabled", "budget_tokens": 1_024}}, 400, '"thinking.type.enabled"'),
    ({"tools": [TOOL, TOOL]}, 400, "tools: Tool names must be unique."),
    ({"system": [{"type": "text", "text": " "}]}, 400, "system: text content blocks"),
    (
        {"messages": [user(TEXT), assistant(THOUGHT, USE), user(TEXT)]},
        400,
        "messages.1: `tool_use`",
    ),
    ({"cache_control": {"type": "ephemeral"}}, 400, "A maximum of 4 blocks"),
]


@pytest.mark.parametrize("first", range(len(WRONGS)))
def test_what_is_wrong_first_is_told_first(ask: Any, body: Any, first: int) -> None:
    marked = [{"type": "text", "text": "Be kind."} | MARK] * 4
    asked = body(system=marked)
    for change, _, _ in reversed(WRONGS[first:]):
        asked |= change
    _, status, text = WRONGS[first]
    answered = ask(asked)
    assert answered.status == status
    assert answered.message.startswith(text)


def test_the_key_is_looked_at_before_the_body_and_the_size_before_the_key(ask: Any) -> None:
    assert ask(b"{", x_api_key=None).status == 401
    assert ask(b"{", anthropic_version=None).message.startswith("anthropic-version")
    assert ask(b" " * (32 * 1_048_576 + 1), x_api_key=None).status == 413


def test_a_signature_is_looked_at_after_every_rule_and_before_the_window(
    ask: Any, body: Any
) -> None:
    said = [user(TEXT | {"text": "1" * 3_000_000}), assistant(THOUGHT, TEXT), user(TEXT)]
    answered = ask(body(messages=said))
    assert answered.message.startswith("messages.1.content.0: Invalid `signature`")
