"""The least that a conversation could have cost a policy that knows the future.

It knows every later call, the pauses and which facts each call will need, keeps the same promise as
the preset beside it, and is never without a fact, so its view is at least as good. The optimum is
exact, by dynamic programming over the calls before which it reduces, for this class of policies:

- A reduction leaves the newest messages, as many as `adaptive` leaves, and of older ones a passage
  of 500 characters around each fact that will be needed before the next reduction. What left may
  come back in a later reduction. All that it leaves is written to the cache again.
- Between two reductions nothing leaves. A call reads the context of the call before from the cache
  and writes what is new; if the cache has expired, it writes everything. Where an hour can be paid
  for, the call before a pause of up to an hour pays it for what it writes, if that is cheaper.
- It reduces only above the promised size, and no context exceeds the window.

It needs no summaries, lists, notices or recalls, and no more of old messages than the known facts;
prices are those of short requests. So it is a bound for what policies of this kind can reach rather
than an aim: a real one cannot know any of this. Other kinds, say one that gives up facts for money
or keeps fewer recent messages, could be cheaper still.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate

from conversations.context.policy.policy import PRESETS
from conversations.context.steps.adaptive import RECENT_MESSAGES, RECENT_PERCENT
from conversations.context.view import wire
from conversations.context.view.cache_breakpoints import SECONDS
from conversations.context.view.cost_decision import Rates
from conversations.context.view.view import Message, View
from conversations.lab.cache_blocks import BlockReader
from conversations.lab.call_times import schedule_calls
from conversations.lab.fact_search import FactSearch
from conversations.lab.records import Record, list_calls
from conversations.lab.replay_setup import World
from conversations.lab.said_texts import read_texts

#: Tokens of the newest messages that stay, and of a passage of 500 characters.
RECENT = PRESETS["adaptive"].low_water_tokens * RECENT_PERCENT // 100
PASSAGE = 220
_MILLION = 1_000_000
_NEVER = float("inf")


@dataclass(frozen=True, slots=True)
class _Call:
    """One call: tokens of all messages before it and of its answer; the pause before it.

    `recent` are the tokens of the messages that a reduction before it leaves, from index `first`
    on. `needs` are its facts: the newest message that has one, and the tokens of its passage.
    """

    before: int
    output: int
    pause: float
    recent: int
    first: int
    needs: tuple[tuple[int, int], ...]


class Clairvoyant:
    """What is known of one conversation, for any promise and window."""

    def __init__(self, record: Record, world: World, search: FactSearch) -> None:
        reader = BlockReader(world.tokenizer)
        self._head = reader.line(world.envelope(record), View()).tokens
        sizes = [reader.answer_tokens(message) for message in record.messages]
        self._calls = list(_list_calls(record, search, sizes))
        self._rates = world.rates
        self._costs: dict[tuple[int, int], int] = {}

    def find_cost(self, promise: int, window: int) -> int:
        """Return the least cost in micro-dollars; 0 without prices, or if nothing fits."""
        if (promise, window) not in self._costs:
            found = _NEVER if self._rates is None else self._minimise(self._rates, promise, window)
            self._costs[promise, window] = 0 if found == _NEVER else round(found / _MILLION)
        return self._costs[promise, window]

    def _minimise(self, rates: Rates, promise: int, window: int) -> float:
        count = len(self._calls)
        #: The least cost of the calls before each one, if there is a reduction before it.
        best = [0.0, *[_NEVER] * count]
        for start in range(count):
            if best[start] == _NEVER:
                continue
            for end, cost, size in self._extend(rates, start, window):
                if best[start] + cost < best[end] and (size > promise or end == count):
                    best[end] = best[start] + cost
        written = sum(call.output for call in self._calls) * rates.output
        return best[count] + written

    def _extend(self, rates: Rates, start: int, window: int) -> Iterator[tuple[int, float, int]]:
        """Yield ends of a stretch without a reduction, its cost, and the size reached before it.

        The stretch has the calls from `start` to before `end`.
        """
        calls, head, base = self._calls, self._head, self._calls[start]
        kept = base.recent if start else base.before
        first = base.first if start else 0
        cost = _write_first(rates, head, kept, is_cold=not start or base.pause > _longest(rates))
        size, new, passages = head + kept, kept, 0
        for end in range(start + 1, len(calls) + 1):
            call = calls[end - 1]
            # What a reduction leaves is sent in any case: presets shorten it where it is too long.
            if size + passages > window and end > start + 1:
                return
            passages += sum(tokens for newest, tokens in call.needs if newest < first)
            # Passages are written by the reduction and read by all later calls of the stretch.
            carried = passages * (rates.cache_write + (end - 1 - start) * rates.cache_read)
            if end == len(calls):
                yield end, cost + carried, size + passages
                return
            grown = head + kept + calls[end].before - base.before
            yield end, cost + carried, grown + passages
            added = grown - size
            cost += _bill_next(rates, size, added, new, calls[end].pause)
            size, new = grown, added


def _longest(rates: Rates) -> int:
    """Return the seconds for which a cache can be kept."""
    return SECONDS["1h"] if rates.cache_write_1h else SECONDS["5m"]


def _write_first(rates: Rates, head: int, kept: int, *, is_cold: bool) -> float:
    """Bill the first call behind a reduction: at most system prompt and tools are read."""
    return head * (rates.cache_write if is_cold else rates.cache_read) + kept * rates.cache_write


def _bill_next(rates: Rates, size: int, added: int, new: int, pause: float) -> float:
    """Bill the input of a call that adds to a request of `size`, which had written `new` tokens."""
    warm = size * rates.cache_read + added * rates.cache_write
    if pause <= SECONDS["5m"]:
        return warm
    cold = (size + added) * rates.cache_write
    if pause > _longest(rates):
        return cold
    return min(cold, warm + new * (rates.cache_write_1h - rates.cache_write))


def _list_calls(record: Record, search: FactSearch, sizes: list[int]) -> Iterator[_Call]:
    starts = [0, *accumulate(sizes)]
    times, ats = schedule_calls(record), list_calls(record.messages)
    needs = _find_needs(record, search, sizes, ats)
    earlier = 0.0
    for number, at in enumerate(ats):
        first = _find_recent(sizes, at)
        pause = times[at] - earlier if number else 0.0
        earlier = times[at]
        yield _Call(
            starts[at], sizes[at], pause, starts[at] - starts[first], first, tuple(needs[number])
        )


def _find_recent(sizes: list[int], at: int) -> int:
    """Return the index of the first message that a reduction before message `at` leaves."""
    first, used = at, 0
    while first and (first == at or (at - first < RECENT_MESSAGES and used < RECENT)):
        first -= 1
        used += sizes[first]
    return first if used <= RECENT or first == at - 1 else first + 1


def _find_needs(
    record: Record, search: FactSearch, sizes: list[int], ats: tuple[int, ...]
) -> list[list[tuple[int, int]]]:
    """Find for each call its facts: the newest message before it with each, and its passage."""
    texts = ["\n".join(_read_message(message)) for message in record.messages]
    constant = "\n".join([record.system, *map(wire.encode, record.tools)])
    found: list[list[tuple[int, int]]] = [[] for _ in ats]
    for fact in (*record.facts, *search.own_facts):
        number = bisect_right(ats, fact.used_at) - 1
        holding = [at for at in range(ats[number]) if fact.text in texts[at]]
        if holding and fact.text not in constant:
            found[number].append((holding[-1], min(PASSAGE, sizes[holding[-1]])))
    return found


def _read_message(message: Message) -> Iterator[str]:
    for block in message.blocks:
        yield from read_texts(block.value)
