"""When each call of a replay is made: as recorded, else as the recorded cache shows it, else drawn.

A recording with times is replayed with them. One with the API's counters shows which pauses were
longer than its prompt cache lived: a call that read clearly less than the request before it had.
Such a pause is the usual long one, all others of it are short. Without either, pauses before a
prompt are the quantiles of a lognormal distribution, in a fixed order, so that every run is the
same. Its median is a minute, and as many are longer than five minutes (16 %) as before the 293
prompts of the recordings with counters, where 47 were; so one in 125 is longer than an hour. The
rounds of a turn follow each other in seconds (16 of 1,859 recorded ones met a cold cache).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import cycle
from statistics import NormalDist

from conversations.lab.records import Record, list_calls

ROUND_SECONDS = 8
#: Median, and the deviation of the logarithm with which 16 % are longer than 300 seconds.
_MEDIAN, _DEVIATION = 60, 1.62
#: Number of pauses until they repeat, and a step through them that is coprime to it.
_PAUSES, _STEP = 125, 77
#: Seconds of a pause that the counters show to be longer, or not.
LONG, SHORT = 900, 60
#: A request that read less than this share of the one before, in percent, met a cold cache.
_WARM = 70
#: Tokens below which a request says nothing: system prompt and tools may be cached for all.
_LEAST = 25_000


def _list_pauses() -> Iterator[int]:
    normal = NormalDist()
    for number in range(_PAUSES):
        share = (number * _STEP % _PAUSES + 0.5) / _PAUSES
        yield round(_MEDIAN * math.exp(_DEVIATION * normal.inv_cdf(share)))


#: Seconds before a prompt.
PAUSES = tuple(_list_pauses())


def schedule_calls(record: Record) -> dict[int, float]:
    """Return the second at which the call for each answer begins, by the answer's index."""
    if record.times:
        return {at: record.times[at] for at in list_calls(record.messages)}
    found: dict[int, float] = {}
    now = 0.0
    cold = set(find_cold_calls(record))
    shown = {reading.at for reading in record.readings}
    drawn = cycle(PAUSES)
    for at in list_calls(record.messages):
        is_prompt = bool(at) and record.messages[at - 1].kind == "prompt"
        if at in cold:
            now += LONG
        elif found and is_prompt:
            now += SHORT if at in shown else next(drawn)
        elif found:
            now += ROUND_SECONDS
        found[at] = now
    return found


def find_cold_calls(record: Record) -> Iterator[int]:
    """Yield the answers whose calls met a cold cache, by the recorded counters."""
    before = 0
    for reading in record.readings:
        is_grown = reading.context * 100 >= before * 95
        if before > _LEAST and is_grown and reading.cached * 100 < before * _WARM:
            yield reading.at
        before = reading.context
