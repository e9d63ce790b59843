"""What a call is billed for: as the API reported it, else estimated. Nothing that was sent is free.

Exact is what comes with the end of the answer. All else is an estimate, marked as one, never below
what the API can bill and bounded:

- Before the first event (a stop, a deadline, a lost connection): the request with the margin for
  its estimate's error, at the highest price of input, and IN_FLIGHT tokens of answer, as dear as
  the workspace may make them. A request that the API refused, or that was never sent, costs
  nothing.
- In mid-stream: the input as reported; of the output what had arrived by the model's tokenizer.
  Thinking is shown as a summary, so where the answer thought, TOKENS_PER_SECOND more. There, and if
  it was this side that ended the stream, IN_FLIGHT tokens more, which may have been on their way.
  The start reports the first round of the API's own tools alone: each further one that had begun
  reads the request again, from the cache if it is long enough for one, and writes what was added
  to it, with the margin.
- A call whose worker died: as before the first event; the answer by the time until its last
  checkpoint, or the end of its lease.

An answer is never estimated above its limit. A figure that cannot be true is replaced by the
nearest possible one, that of the model's window; it never makes a call cheaper than its estimate.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from django.utils import timezone

from conversations.agent.ports import Ending
from conversations.agent.tokenizer import find_family
from conversations.agent.usage import UNASKED, Usage
from conversations.budgets.affordability import pad_estimate
from conversations.budgets.prices import find_window
from conversations.budgets.search_rounds import LEAST_CACHED, count_new, count_reread
from conversations.context.view import wire
from conversations.context.view.envelope import count_searches, read_lifetime
from conversations.models import ApiCall, Draft

#: No model writes faster.
TOKENS_PER_SECOND = 200
#: Tokens that may have been written but not read when this side ends a stream.
IN_FLIGHT = 200
#: Failures with which this side ends a stream that the API may be writing.
_OURS = frozenset({"protocol_error", "timeout"})


@dataclass(frozen=True, slots=True)
class Timing:
    """Milliseconds until the first event (None: there was none) and until the end."""

    first_event: int | None
    duration: int


@dataclass(frozen=True, slots=True)
class Billed:
    """What a call is billed for (None: nothing), its token counts (None: unknown), and the basis:
    exact, estimated, clamped or none.
    """

    usage: Usage | None
    counts: Usage | None
    basis: str


def bill_ending(call: ApiCall, ending: Ending, timing: Timing) -> Billed:
    """Return what a call that ended is billed for."""
    reported = ending.usage
    if reported is None or (ending.status == "complete" and not reported.spent.total):
        return _bill_unreported(call, ending)
    usage, is_clamped = _limit_usage(call, _book_lifetime(call, reported))
    basis = "exact"
    # The stop reason comes with the final usage, whatever fails later.
    if not ending.stop_reason or not reported.is_final:
        usage, basis = _cut_usage(call, usage, ending, timing), "estimated"
    if is_clamped and reported.is_miscounted:
        came = min(ending.received_tokens, call.max_tokens)
        usage = usage.raise_to(call.estimated_tokens, came)
    return Billed(usage, usage.spent, "clamped" if is_clamped else basis)


def bill_lost_call(call: ApiCall, now: datetime | None = None) -> Usage:
    """Return what a call whose worker died is billed for at most."""
    draft = Draft.objects.filter(call=call).first()
    now = now or timezone.now()
    # The worker lived no longer than its lease; that of a side call is over.
    until = min(now, call.turn.lease_until or now)
    seconds = max(0.0, (until - call.sent_at).total_seconds())
    came = find_family(call.model).count(draft.text + draft.thinking) if draft else 0
    parameters = wire.decode(call.envelope.text)
    written = max(came, round(seconds * TOKENS_PER_SECOND))
    return _estimate_unread(call, written, count_searches(parameters))


def _bill_unreported(call: ApiCall, ending: Ending) -> Billed:
    """Bill a call whose usage was not reported; its token counts stay unknown."""
    if ending.status == "complete":
        came = min(ending.received_tokens, call.max_tokens)
        basis = "clamped" if ending.usage and ending.usage.is_clamped else "estimated"
        return Billed(Usage(call.estimated_tokens, came, 0, 0, 0), None, basis)
    if ending.failure is not None and not ending.failure.may_cost:
        return Billed(None, None, "none")
    return Billed(_estimate_unread(call, 0), None, "estimated")


def _estimate_unread(call: ApiCall, written: int, searches: int = 0) -> Usage:
    """Return the most that a request costs with so many tokens of answer, and some in flight."""
    request = pad_estimate(call.estimated_tokens)
    return replace(
        _count_written(call, count_new(request, searches)),
        output=min(written + IN_FLIGHT, call.max_tokens),
        cache_read=count_reread(request, searches),
        searches=searches,
        # Which country the workspace keeps it in, only an answer would have told.
        factors=UNASKED,
    )


def _count_written(call: ApiCall, tokens: int) -> Usage:
    """Return the usage of input that is all written to the cache: its highest price."""
    usage = Usage(0, 0, 0, tokens, 0)
    return usage.cached_for_an_hour() if _is_cached_for_an_hour(call) else usage


def _is_cached_for_an_hour(call: ApiCall) -> bool:
    return read_lifetime(call.envelope.text) == "1h"


def _book_lifetime(call: ApiCall, reported: Usage) -> Usage:
    """Return the usage of rounds of the API's own tools at the one lifetime of the request."""
    is_sum = reported.first is not None and reported.cache_write_5m
    return reported.cached_for_an_hour() if is_sum and _is_cached_for_an_hour(call) else reported


def _cut_usage(call: ApiCall, reported: Usage, ending: Ending, timing: Timing) -> Usage:
    """Return what a stream without its end is billed for."""
    written = ending.received_tokens
    if ending.has_thought and timing.first_event is not None:
        milliseconds = timing.duration - timing.first_event
        written += -(-milliseconds * TOKENS_PER_SECOND // 1_000)
    ours = ending.status == "stopped" or (ending.failure and ending.failure.code in _OURS)
    if ours or ending.has_thought:
        written += IN_FLIGHT
    came, searches = min(written, call.max_tokens), ending.received_searches
    if not reported.context:
        # A compaction reports its input only at its end.
        found = reported.cut(0, came, searches)
        unread = _count_written(call, pad_estimate(call.estimated_tokens))
        return replace(
            found, cache_write_5m=unread.cache_write_5m, cache_write_1h=unread.cache_write_1h
        )
    return _add_rounds(call, reported.cut(reported.input, came, searches), ending.added_by_rounds)


def _add_rounds(call: ApiCall, usage: Usage, added: tuple[int, ...]) -> Usage:
    """Add the further rounds that had begun to the usage of the first one."""
    if not added:
        return usage
    first, is_cached = usage.context, usage.read > usage.input
    sizes = [first + before for before in (0, *added[:-1])]
    fresh = sum(size for size in sizes if size < LEAST_CACHED and not is_cached)
    written = _count_written(call, usage.input + pad_estimate(added[-1]))
    return replace(
        usage,
        input=usage.input + fresh,
        cache_read=usage.cache_read + sum(sizes) - fresh,
        cache_write_5m=usage.cache_write_5m + written.cache_write_5m,
        cache_write_1h=usage.cache_write_1h + written.cache_write_1h,
        first=first,
    )


def _limit_usage(call: ApiCall, reported: Usage) -> tuple[Usage, bool]:
    """Return the usage without what is impossible, and whether any figure was."""
    usage = reported
    if usage.searches and usage.searches > (most := _count_offered_searches(call)):
        # More searches than were offered are impossible.
        usage = replace(usage, searches=most, is_clamped=True)
    if usage.most > max(call.max_tokens, pad_estimate(call.estimated_tokens)):
        # Only an unexpected figure is worth looking the window up.
        usage = usage.clamp(find_window(call.model) or usage.most)
    return usage, usage.is_clamped


def _count_offered_searches(call: ApiCall) -> int:
    return count_searches(wire.decode(call.envelope.text))
