"""Charts of a conversation: size of each request, cache use, cost, and kinds of content.

All but `draw_kinds` are made from the call index alone. `draw_kinds` replays the path: it carries
the parts along from call to call and weighs them again after each transformation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

from django.utils.translation import gettext as _

from conversations.charts import Chart, Limit, Mark, Series, draw_areas, draw_bars, draw_lines
from conversations.context.steps.meter_parts import PARTS, Part, PartCounter
from conversations.context.view.view import Message, View
from conversations.inspector.call_index import CallRow, ChangeRow
from conversations.inspector.composition import COLOURS, name_parts
from conversations.log.path import Change, fold_entry
from conversations.reductions.policy_outline import PolicyOutline
from conversations.reductions.words import describe_kind
from conversations.rendering.numbers import dollars, tokens

#: Columns of a chart; columns up to which each can be seen and clicked.
MOST, DENSE = 400, 80
Address = Callable[[str, int], str]


def sample_calls(calls: Sequence[CallRow], most: int = MOST) -> list[CallRow]:
    """Return at most `most` calls: the largest request of each group, and the last call."""
    if len(calls) <= most:
        return list(calls)
    borders = [at * len(calls) // most for at in range(most + 1)]
    found = [
        max(calls[low:high], key=lambda call: call.tokens_in or 0)
        for low, high in pairwise(borders)
    ]
    return [*found[:-1], calls[-1]]


def draw_sizes(
    calls: Sequence[CallRow],
    changes: Iterable[ChangeRow],
    ahead: PolicyOutline | None,
    address: Address,
) -> Chart:
    """Draw the size of each request, with thresholds and the transformations in between."""
    shown = sample_calls([call for call in calls if call.is_reply])
    labels = _build_labels(shown)
    found = [Series(_("reported"), tuple(call.tokens_in for call in shown), 0)]
    limits = _build_limits(shown, ahead)
    marks = _build_marks(shown, changes, address)
    if len(shown) > DENSE:
        return draw_areas(labels, found, show=tokens, marks=marks, limits=limits)
    links = [address("call", call.n) for call in shown]
    return draw_bars(labels, found, show=tokens, marks=marks, limits=limits, links=links)


def draw_cache(calls: Sequence[CallRow]) -> Chart:
    """Draw how each request was billed: read from the cache, written to it, neither."""
    shown = sample_calls([call for call in calls if call.is_reply])
    found = [
        Series(_("read from the cache"), tuple(call.cache_read for call in shown), 0),
        Series(_("written to the cache"), tuple(call.cache_write for call in shown), 1),
        Series(_("neither"), tuple(call.fresh for call in shown), 5),
    ]
    draw = draw_areas if len(shown) > DENSE else draw_bars
    return draw(_build_labels(shown), found, show=tokens)


def draw_cost(calls: Sequence[CallRow]) -> Chart:
    """Draw the cumulated cost of all calls."""
    spent, sums = 0, {}
    for call in calls:
        spent += call.cost_micros or 0
        sums[call.n] = spent
    shown = sample_calls(calls)
    found = [Series(_("cost in all"), tuple(sums[call.n] for call in shown), 0)]
    return draw_lines(_build_labels(shown), found, show=dollars)


def draw_kinds(entries: Iterable[Message | Change], calls: Sequence[CallRow]) -> Chart:
    """Draw what each request was made of, in estimated tokens; raises one of DAMAGE."""
    wanted = sample_calls([call for call in calls if call.is_reply])
    parts = dict(_weigh_entries(entries, {call.tip for call in wanted}))
    shown = [call for call in wanted if call.tip in parts]
    names = name_parts()
    found = [
        Series(names[part], tuple(parts[call.tip][part] for call in shown), COLOURS[part])
        for part in PARTS
        if part in COLOURS and any(parts[call.tip][part] for call in shown)
    ]
    return draw_areas(_build_labels(shown), found, show=tokens)


def _weigh_entries(
    entries: Iterable[Message | Change], tips: set[int]
) -> Iterable[tuple[int, Counter[Part]]]:
    scales, view, parts = PartCounter(), View(), Counter[Part]()
    for entry in entries:
        view = fold_entry(view, entry)
        if isinstance(entry, Message):
            parts.update(scales.message(entry))
        elif entry.outcome == "applied":
            parts = scales.messages(view.messages)
        if entry.seq in tips:
            yield entry.seq, parts.copy()


def _build_labels(calls: Iterable[CallRow]) -> list[str]:
    return [f"#{call.n}" for call in calls]


def _build_limits(shown: Sequence[CallRow], ahead: PolicyOutline | None) -> list[Limit]:
    """Return the thresholds that are close enough to be drawn."""
    most = max((call.tokens_in or 0 for call in shown), default=0)
    steps = ahead.steps if ahead else ()
    return [
        Limit(step.tokens, f"{tokens(step.tokens)}: {step.short}")
        for step in steps
        if step.tokens and step.tokens <= 2 * most
    ]


def _build_marks(
    shown: Sequence[CallRow], changes: Iterable[ChangeRow], address: Address
) -> list[Mark]:
    """Place each transformation before the first call that followed it."""
    found: dict[int, list[ChangeRow]] = {}
    at = 0
    for change in changes:
        if change.outcome != "applied":
            continue
        while at < len(shown) and shown[at].tip < change.seq:
            at += 1
        found.setdefault(at, []).append(change)
    return [
        Mark(at, _describe_changes(each), address("change", each[-1].seq))
        for at, each in found.items()
    ]


def _describe_changes(changes: Sequence[ChangeRow]) -> str:
    first, last = changes[0], changes[-1]
    names = ", ".join(dict.fromkeys(describe_kind(change.kind) for change in changes))
    return f"{names}: {tokens(first.before)} → {tokens(last.after)}"
