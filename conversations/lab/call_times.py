"""When each call of a replay is made: as recorded, or on a simulated clock.

Without recorded times the rounds of a turn follow each other in seconds, and people return after
minutes. The pauses repeat in a fixed order, one in five longer than the prompt cache lives, so that
every long conversation has cold caches and every run is the same.
"""

from __future__ import annotations

from conversations.lab.records import Record, list_calls

ROUND_SECONDS = 8
PAUSES = (60, 150, 40, 900, 90)


def schedule_calls(record: Record) -> dict[int, float]:
    """Return the second at which the call for each answer begins, by the answer's index."""
    if record.times:
        return {at: record.times[at] for at in list_calls(record.messages)}
    found: dict[int, float] = {}
    now, turns = 0.0, 0
    for at in list_calls(record.messages):
        if at and record.messages[at - 1].kind == "prompt" and found:
            now += PAUSES[turns % len(PAUSES)]
            turns += 1
        elif found:
            now += ROUND_SECONDS
        found[at] = now
    return found
