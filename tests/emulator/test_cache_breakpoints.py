"""The app's cache breakpoints against the emulator's cache: after wide rounds and compactions."""

from __future__ import annotations

import json
from typing import Any

import pytest

from conversations.context.view import cache_breakpoints, edits, rules
from conversations.context.view.edits import SpliceBlocks
from conversations.context.view.envelope import Envelope, build_envelope, join_body
from tests.context.samples import answer, prompt, result, results, round_of, text, use, view_of
from tests.emulator.samples import TOOL

LONG = "The quick brown fox jumps over the lazy dog, again and again. " * 200
MODEL = "claude-sonnet-5-5"
HEAD = build_envelope(model=MODEL, max_tokens=500, system=LONG, tools=[TOOL])
Split = tuple[int, int, int]


def split(ask: Any, made: Envelope, messages: str) -> Split:
    """Return the uncached, read and written tokens of a request."""
    answered = ask(join_body(made.text, messages).encode())
    assert answered.status == 200, answered.body
    usage = answered.events[0][1]["message"]["usage"]
    return (
        usage["input_tokens"],
        usage["cache_read_input_tokens"],
        usage["cache_creation_input_tokens"],
    )


def wide(count: int, name: str = "w") -> list[Any]:
    """Return a round of `count` parallel calls."""
    ids = [f"{name}{n}" for n in range(count)]
    calls = [use(name, "read_file", path="a.txt") for name in ids]
    return [
        answer("At once.", *calls),
        results(*(result(name, f"{name} {LONG[:500]}") for name in ids)),
    ]


@pytest.mark.parametrize("count", [1, 5, 8, 9, 10, 15, 40])
def test_a_round_of_parallel_calls_still_reads_the_whole_prefix(ask: Any, count: int) -> None:
    said = [prompt(LONG), *round_of("a", LONG, "read_file")]
    first = view_of(*said)
    fresh, _, written = split(ask, HEAD, first.body)
    assert fresh == 0
    second = view_of(*said, *wide(count))
    assert (cache_breakpoints.choose_breakpoint(second.messages) is not None) == (count > 8)
    fresh, read, added = split(ask, HEAD, second.body)
    assert (fresh, read) == (0, written)
    third = view_of(*said, *wide(count), *wide(count, "v"))
    assert split(ask, HEAD, third.body)[1] == written + added
    rules.check_rules(third)


def test_without_its_mark_the_same_round_pays_for_the_prefix_again(ask: Any) -> None:
    said = [prompt(LONG), *round_of("a", LONG, "read_file")]
    _, _, written = split(ask, HEAD, view_of(*said).body)
    plain = view_of(*said, *wide(15)).body.replace(cache_breakpoints.MARKS["5m"], "")
    assert split(ask, HEAD, plain)[1] < written / 2


def test_after_a_compaction_tools_and_system_prompt_are_still_read(ask: Any) -> None:
    view = view_of(prompt("Read it."), *round_of("a", LONG, "read_file"), *wide(2))
    _, _, written = split(ask, HEAD, view.body)
    short = json.dumps(result("a", "short"), separators=(",", ":"))
    compacted = edits.apply(view, "compaction", [SpliceBlocks(3, 0, 1, (short,))])
    fresh, read, again = split(ask, HEAD, compacted.body)
    # A request with only the head in common reads exactly what was written for the head.
    head = split(ask, HEAD, view_of(prompt("Something else.")).body)[1]
    assert fresh == 0
    assert 1_024 < head == read < written
    assert again < written - read
    bare = build_envelope(
        model=MODEL, max_tokens=500, system="", tools=[TOOL | {"description": LONG}]
    )
    split(ask, bare, view.body)
    assert split(ask, bare, compacted.body)[1] > 1_024


def test_what_binds_thinking_is_the_same_with_marks_and_without(ask: Any) -> None:
    thinking = {"type": "adaptive", "display": "summarized"}
    parts: dict[str, Any] = {
        "model": "claude-fable-5-2", "max_tokens": 2_000, "system": LONG, "tools": [TOOL],
        "thinking": thinking,
    }  # fmt: skip
    before, after = build_envelope(**parts, cached=False), build_envelope(**parts)
    assert before.binding == after.binding
    asked = json.loads(join_body(before.text, view_of(prompt("Hello")).body)) | {"stream": False}
    content = ask(asked).json["content"]
    assert content[0]["type"] == "thinking"
    said = [prompt("Hello"), answer(*content, *[text(str(n)) for n in range(20)]), prompt("More")]
    view = view_of(*said)
    assert view.body.count("cache_control") == 1
    # This model refuses thinking whose prefix has changed.
    split(ask, after, view.body)
    changed = build_envelope(**(parts | {"system": LONG + "!"}))
    assert ask(join_body(changed.text, view.body).encode()).status == 400


def test_a_summary_call_writes_nothing_to_the_cache(ask: Any) -> None:
    made = build_envelope(model=MODEL, max_tokens=500, system=LONG, cached=False)
    for _ in range(2):
        fresh, read, written = split(ask, made, view_of(prompt(LONG)).body)
        assert (read, written) == (0, 0)
        assert fresh > 1_024
