"""What the API keeps of the last request, read from the stored usage of the last replies."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from conversations.context.policy.cache_lifetime import CachedPrefix
from conversations.context.view import wire
from conversations.log.turn_state import Reply, _read_cached

BEGAN = datetime(2026, 11, 20, tzinfo=UTC)


class Call(NamedTuple):
    """A reply: seconds since the one before, tokens kept for an hour, tokens read, edits, model."""

    passed: int
    hour: int
    read: int
    edits: int
    model: str


CALLS = st.lists(
    st.builds(
        Call,
        st.integers(0, 5_000),
        st.sampled_from([0, 0, 900]),
        st.integers(0, 50_000),
        st.integers(0, 1),
        st.sampled_from(["m", "m", "other"]),
    ),
    max_size=12,
)


def list_replies(calls: list[Call]) -> list[Reply]:
    """Return the replies, newest first."""
    found, at = [], BEGAN
    for seq, call in enumerate(calls, 1):
        at += timedelta(seconds=call.passed)
        created = {"ephemeral_5m_input_tokens": 7, "ephemeral_1h_input_tokens": call.hour}
        usage = {
            "input_tokens": 3,
            "output_tokens": 5,
            "cache_read_input_tokens": call.read,
            "cache_creation_input_tokens": 7 + call.hour,
            "cache_creation": created,
        }
        counts = 3, 5, call.read, 7 + call.hour
        found.append(
            Reply(
                at,
                wire.encode(usage),
                "complete",
                *counts,
                turn_id=seq,
                model=call.model,
                binding="",
                view_tokens=0,
                overhead_tokens=0,
                view_edits=call.edits,
                answer_id=seq,
                seq=seq,
                estimate=1,
            )
        )
    return found[::-1]


@given(CALLS)
def test_it_is_what_every_reply_of_the_model_left_one_after_the_other(calls: list[Call]) -> None:
    replies, expected, before = list_replies(calls), CachedPrefix(), None
    for one in reversed(replies):
        if one.model != "m":
            continue
        figures = wire.decode(one.usage)
        hour = figures["cache_creation"]["ephemeral_1h_input_tokens"]
        size = 3 + one.cache_read_tokens + one.cache_write_tokens  # type: ignore[operator]
        passed = (one.sent_at - before.sent_at).total_seconds() if before else 0.0
        is_changed = before is not None and before.view_edits != one.view_edits
        lifetime = "1h" if hour else "5m"
        expected = expected.after_call(passed, lifetime, size, is_changed=is_changed)  # type: ignore[arg-type]
        before = one
    assert _read_cached(replies, "m") == expected
