"""What a person is to be told of their budgets: soft percents that were passed, limits reached.

One notice for each budget in its present window: the highest percent that was passed. It names
where the budget comes from and when it starts anew; the page shows that in the reader's time zone.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.utils import timezone

from conversations.allowances import Rule
from conversations.models import Crossing
from conversations.queries.allowances import places, standing, windows_of


@dataclass(frozen=True, slots=True)
class Notice:
    """What is spent of what now; `percent` was passed at `at`, None: only the limit is reached."""

    rule: Rule
    #: Names the window, so that what a person has put away comes back with the next one.
    window: int | None
    percent: int | None
    at: datetime | None
    spent: int
    held: int
    limit: int
    resets_at: datetime | None
    is_over: bool


def notices(user_id: int, now: datetime | None = None) -> tuple[Notice, ...]:
    """Give the notices of a person, the most urgent first; three queries."""
    found = places(user_id, now or timezone.now())
    windows = list(windows_of(found)) if found else []
    passed: dict[int, Crossing] = {}
    if windows:
        for row in Crossing.objects.filter(window__in=windows).order_by("percent"):
            passed[row.window_id] = row
    given = []
    for place in found:
        one = standing(place, windows)
        window = next((each for each in windows if place.is_of(each)), None)
        crossing = passed.get(window.pk) if window else None
        if crossing is not None or one.is_over:
            given.append(
                Notice(
                    place.rule,
                    window.pk if window else None,
                    crossing.percent if crossing else None,
                    crossing.created_at if crossing else None,
                    one.spent,
                    one.held,
                    one.limit,
                    one.ends_at,
                    one.is_over,
                )
            )
    return tuple(sorted(given, key=lambda each: (not each.is_over, -(each.percent or 0))))
