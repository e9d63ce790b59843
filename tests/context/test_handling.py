"""Rules for single tools, verbatim results and pins."""

from __future__ import annotations

import json
from typing import Any

import pytest

from conversations.context.policy.policy import PolicyError, build_policy, dump_policy
from conversations.context.steps.compaction import compact_results
from conversations.context.steps.ingest import shape_new_results
from conversations.context.steps.shrink import shrink_blocks
from conversations.context.steps.trim import drop_exchanges
from conversations.context.view import edits
from conversations.context.view.view import View
from tests.context.samples import (
    IMAGE,
    Shell,
    blocks,
    keeping,
    prompt,
    round_of,
    situation,
    text,
    view_of,
)
from tests.context.test_steps import LONG, after, exchanges, gauge_of

ROWS = json.dumps([{"id": n, "name": f"row {n}"} for n in range(4_000)])


def policy(*rules: str, **numbers: Any) -> Any:
    return build_policy("classic", {"tool_policies": list(rules), **numbers})


def shown(view: View, index: int = 2) -> str:
    return str(blocks(view, index)[0]["content"])


def test_a_cap_is_the_tools_own_limit_before_sending() -> None:
    view = view_of(prompt("a"), *round_of("t1", "line\n" * 2_000, name="logs"))
    change = shape_new_results(view, gauge_of(view, 1), policy("logs=cap 3000"))
    assert change is not None
    assert change.note.endswith("10,000 characters exceeded 3,000")
    assert len(shown(after(view, change))) <= 3_000
    assert shape_new_results(view, gauge_of(view, 1), policy("other=cap 3000")) is None


def test_json_keeps_its_structure_unless_the_tool_says_it_is_text() -> None:
    view = view_of(prompt("a"), *round_of("t1", ROWS, name="query"))
    done = after(view, shape_new_results(view, gauge_of(view, 1), policy("query=json")))
    assert json.loads(shown(done))[0] == {"id": 0, "name": "row 0"}
    done = after(view, shape_new_results(view, gauge_of(view, 1), policy("query=head_tail")))
    assert shown(done).startswith('[{"id": 0, "name": "row 0"}, ')
    assert shown(done).endswith('recall "t1" for the rest]')
    small = view_of(prompt("a"), *round_of("t1", [text(ROWS), text("[1]")], name="query"))
    done = after(small, shape_new_results(small, gauge_of(small, 1), policy("query=head_tail")))
    assert blocks(done, 2)[0]["content"][1] == text("[1]")


def test_kept_results_are_whole_until_they_are_dropped() -> None:
    said = [*round_of("t1", "x" * 50_000, name="plan"), *round_of("t2", LONG), *exchanges(9, 9_000)]
    view = view_of(prompt("a"), *said, prompt("now"))
    rules = policy("plan=keep", max_conversation_bytes=40_000)
    assert shape_new_results(view_of(prompt("a"), *said[:2]), gauge_of(view, 1), rules) is None
    done = after(view, compact_results(view, gauge_of(view, 50_000), rules))
    assert shown(done, 2) == "x" * 50_000
    assert len(shown(done, 4)) < 700
    assert 3 not in [
        m.seq for m in after(view, drop_exchanges(view, gauge_of(view, 150_000), rules)).messages
    ]


def test_compaction_can_keep_the_structure() -> None:
    listed = [text(LONG), IMAGE]
    view = view_of(
        prompt("a"), *round_of("t1", ROWS), *round_of("t2", ROWS, name="query"),
        *round_of("t3", listed), *round_of("t4", "ok"),
    )  # fmt: skip
    rules = policy("query=head_tail", structure_kept=True)
    done = after(view, compact_results(view, gauge_of(view, 50_000), rules))
    assert json.loads(shown(done, 2))[0] == {"id": 0, "name": "row 0"}
    assert "characters left out" in shown(done, 4)
    assert [block["type"] for block in blocks(done, 6)[0]["content"]] == ["text", "text"]


def test_verbatim_is_a_promise_with_a_size() -> None:
    said = [m for n in range(6) for m in round_of(f"r{n}", "y" * 7_000, name="criteria")]
    big = round_of("big", "z" * 9_000, name="criteria")
    view = view_of(prompt("a"), *said, *big, *round_of("last", "ok"))
    done = after(view, compact_results(view, gauge_of(view, 50_000), policy("criteria=verbatim")))
    lengths = [len(shown(done, 2 * n)) for n in range(1, 8)]
    # Four times 8,000 characters in all hold the first four; one over 8,000 is never held.
    assert [length > 6_000 for length in lengths] == [True] * 4 + [False] * 3


def test_a_verbatim_result_that_was_cut_is_no_longer_verbatim() -> None:
    cut = edits.SpliceBlocks(3, 0, 1, (json.dumps({"type": "tool_result", "tool_use_id": "c"}),))
    view = view_of(prompt("a"), *round_of("c", LONG, name="criteria"), *exchanges(9, 3_000))
    view = edits.apply(view, "compaction", [cut])
    rules = policy("criteria=verbatim", max_conversation_bytes=20_000)
    assert 3 not in [
        m.seq for m in after(view, drop_exchanges(view, gauge_of(view, 150_000), rules)).messages
    ]


@pytest.mark.parametrize("pins", [frozenset({"pin"}), frozenset({3}), frozenset({3, "pin"})])
def test_no_step_touches_what_is_pinned(pins: frozenset[str | int]) -> None:
    said = [*round_of("pin", "x" * 50_000), *exchanges(20, 3_000)]
    view = view_of(prompt("a"), *said, prompt("now"))
    for name in ("classic", "tool-budget", "rebuild", "gated-trim", "structured", "adaptive"):
        known = situation(view, 150_000, pins=pins)
        done = Shell(writes=keeping).prepare(view, known, build_policy(name)).view
        assert next(m for m in done.messages if m.seq == 3) == view.messages[2]
    fresh = view_of(prompt("a"), *round_of("pin", "x" * 50_000))
    assert Shell().prepare(fresh, situation(pins=pins), build_policy("classic")).view is fresh


def test_a_pinned_prompt_is_not_shrunk() -> None:
    view = view_of(prompt("p" * 50_000), *round_of("t1", "r" * 50_000))
    rules = build_policy("classic", {"max_conversation_bytes": 20_000})
    whole = Shell().prepare(view, situation(pins=frozenset({1, 3})), rules).view
    assert whole is view
    assert shrink_blocks(view, gauge_of(view, 150_000), rules) is not None


@pytest.mark.parametrize("rule", ["x", "x=", "x=cap", "x=cap 9", "x=drop", "a b=keep", 7])
def test_a_rule_that_is_none_is_refused(rule: Any) -> None:
    with pytest.raises(PolicyError):
        build_policy("classic", {"tool_policies": [rule]})


def test_rules_come_as_words_or_as_a_mapping() -> None:
    given = build_policy("classic", {"tool_policies": {"a": "keep", "b": "cap 500"}})
    assert given.tool_policies == ("a=keep", "b=cap 500")
    assert build_policy("classic", {"tool_policies": given.tool_policies}) == given
    assert json.loads(json.dumps(dump_policy(given)))["pins"] == []
    with pytest.raises(PolicyError):
        build_policy("classic", {"structure_kept": 1})
    with pytest.raises(PolicyError):
        build_policy("adaptive", {"low_water_percent": 90})
    with pytest.raises(PolicyError):
        build_policy("classic", {"pins": []})
