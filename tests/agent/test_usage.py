from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conversations.agent.usage import MOST_TOKENS, merge_usage, read_usage

odd = (
    st.none()
    | st.booleans()
    | st.integers(-(10**12), 10**12)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=3)
    | st.lists(st.integers(), max_size=2)
)
FIGURES = (
    "input_tokens",
    "output_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
    "cache_creation",
)
HOUR, MINUTES = "ephemeral_1h_input_tokens", "ephemeral_5m_input_tokens"
split = st.dictionaries(st.sampled_from([HOUR, MINUTES]), odd)


@given(st.dictionaries(st.sampled_from(FIGURES), odd | split))
def test_no_figure_makes_a_count_negative_or_impossible(raw: dict[str, Any]) -> None:
    usage = read_usage(raw)
    counts = (usage.input, usage.output, usage.cache_read)
    for count in (*counts, usage.cache_write_5m, usage.cache_write_1h):
        assert 0 <= count <= 2 * MOST_TOKENS
    assert usage.context == usage.input + usage.cache_read + usage.cache_write
    assert json.loads(usage.raw) == raw


@given(st.lists(st.integers(0, MOST_TOKENS), min_size=5, max_size=5))
def test_possible_figures_are_taken_as_they_are(counts: list[int]) -> None:
    fresh, output, read, minutes, hour = counts
    usage = read_usage(
        {
            "input_tokens": fresh,
            "output_tokens": output,
            "cache_read_input_tokens": read,
            "cache_creation_input_tokens": min(minutes + hour, MOST_TOKENS),
            "cache_creation": {HOUR: hour, MINUTES: minutes},
        }
    )
    assert (usage.input, usage.output, usage.cache_read) == (fresh, output, read)
    assert (usage.cache_write_5m, usage.cache_write_1h) == (minutes, hour)
    assert not usage.is_clamped


@pytest.mark.parametrize("value", [-1, 10**15, "7", 1.5, True, False, [3]])
def test_an_impossible_figure_is_clamped_and_flagged(value: Any) -> None:
    usage = read_usage({"output_tokens": value})
    assert usage.output == (MOST_TOKENS if value == 10**15 else 0)
    assert usage.is_clamped


def test_a_missing_figure_is_no_data_and_no_flag() -> None:
    usage = read_usage({"output_tokens": None, "cache_creation": None})
    assert (usage.context, usage.output, usage.is_clamped) == (0, 0, False)


def test_cache_writes_without_a_split_are_those_we_asked_for() -> None:
    usage = read_usage({"cache_creation_input_tokens": 9})
    assert (usage.cache_write_5m, usage.cache_write_1h) == (9, 0)


def iteration(kind: str, fresh: int, output: int, read: int = 0) -> dict[str, Any]:
    return {
        "type": kind, "input_tokens": fresh, "output_tokens": output,
        "cache_read_input_tokens": read, "cache_creation_input_tokens": 0,
    }  # fmt: skip


def test_a_compaction_is_billed_and_is_not_the_context() -> None:
    rows = [iteration("compaction", 180_000, 3_500), iteration("message", 23_000, 1_000, 50)]
    whole = {"input_tokens": 23_000, "output_tokens": 1_000, "cache_read_input_tokens": 50}
    usage = read_usage(whole | {"iterations": rows})
    assert (usage.context, usage.output) == (23_050, 1_000)
    assert [(part.input, part.output) for part in usage.billed] == [
        (180_000, 3_500),
        (23_000, 1_000),
    ]
    assert (usage.spent.input, usage.spent.output, usage.spent.cache_read) == (203_000, 4_500, 50)


def test_an_on_demand_compaction_has_its_bill_in_one_iteration() -> None:
    raw = {"input_tokens": 0, "output_tokens": 0, "iterations": [iteration("compaction", 9, 3, 80)]}
    usage = read_usage(raw)
    assert usage.context == 0
    assert (usage.spent.input, usage.spent.output, usage.spent.cache_read) == (9, 3, 80)


def test_of_several_messages_the_last_is_the_context() -> None:
    rows = [iteration("message", 100, 5), iteration("message", 150, 7)]
    usage = read_usage({"input_tokens": 250, "output_tokens": 12, "iterations": rows})
    assert (usage.context, len(usage.billed)) == (150, 2)


@pytest.mark.parametrize("rows", [[iteration("message", 1, 1)], [{"type": 5}], "odd", [3]])
def test_iterations_that_do_not_add_up_never_lower_the_bill(rows: Any) -> None:
    usage = read_usage({"input_tokens": 250, "output_tokens": 12, "iterations": rows})
    assert (usage.spent.input, usage.spent.output) == (250, 12)


def test_what_was_cleared_is_known_apart() -> None:
    edits = [{"type": "clear", "cleared_tool_uses": 3, "cleared_input_tokens": 4_000}]
    usage = read_usage({"input_tokens": 50, "context_management": {"applied_edits": edits}})
    assert (usage.context, usage.uncleared, usage.cleared_uses) == (50, 4_050, 3)
    odd = read_usage(
        {
            "input_tokens": 50,
            "context_management": {"applied_edits": [{"cleared_input_tokens": -4}]},
        }
    )
    assert (odd.uncleared, odd.is_clamped) == (50, True)
    assert read_usage({"context_management": "x"}).cleared == 0


def test_a_figure_that_cannot_be_true_replaces_no_sane_one() -> None:
    said = merge_usage({}, {"input_tokens": 10, "output_tokens": 1, "speed": None})
    said = merge_usage(said, {"input_tokens": -1, "output_tokens": 3})
    said = merge_usage(said, {"output_tokens": "many"})
    usage = read_usage(said)
    assert (usage.input, usage.output) == (10, 3)
    assert (usage.is_clamped, usage.is_miscounted, usage.is_trusted) == (True, True, False)
    assert said["malformed"] == {"input_tokens": -1, "output_tokens": "many"}
    # Without a sane one before it, it is kept, and clamped when it is read.
    assert merge_usage({}, {"input_tokens": -1}) == {"input_tokens": -1}
