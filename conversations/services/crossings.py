"""Soft crossings: each window tells each of its budget's percents once, when it is passed.

What counts is the person's standing, as everywhere: the limit of now, and what was used under
another allowance in the same time. A window of the past tells nothing any more.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from django.utils import timezone

from conversations.allowances import Standing
from conversations.models import Crossing
from conversations.queries.allowances import places, standing, windows_of
from conversations.services.chain import extend, locked_site


def tell_crossings(*, user_id: int, windows: AbstractSet[int]) -> None:
    """Record what the person's windows, locked by the caller, have passed."""
    found = places(user_id, timezone.now())
    present = list(windows_of(found)) if found else []
    passed: dict[tuple[int, int], Standing] = {}
    for place in found:
        one = standing(place, present)
        for window in present:
            if place.is_of(window) and window.pk in windows:
                passed |= {(window.pk, p): one for p in place.rule.percents if p <= one.percent}
    if not passed:
        return
    told = Crossing.objects.filter(window__in={window for window, _ in passed})
    known = set(told.values_list("window", "percent"))
    rows = [
        Crossing(window_id=window, percent=percent, spent=one.spent, limit=one.limit)
        for (window, percent), one in passed.items()
        if (window, percent) not in known
    ]
    if rows:
        extend(rows, locked_site())
