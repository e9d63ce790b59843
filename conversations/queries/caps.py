"""What one turn may use: the person's numbers, else the groups' largest, else the site's.

Apart from budgets: caps end a turn that runs away, whoever pays for it.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib.auth.models import Group
from django.db.models import Q

from conversations.conf import conf
from conversations.models import TurnCap

_NAMES = ("micros", "rounds", "tool_calls", "seconds")


@dataclass(frozen=True, slots=True)
class TurnCaps:
    """Money in micro-dollars (0: no cap), model calls, tool calls and seconds."""

    micros: int
    rounds: int
    tool_calls: int
    seconds: int


def turn_caps(user_id: int) -> TurnCaps:
    """Give what counts; one query."""
    mine = Q(user=user_id) | Q(group__in=Group.objects.filter(user=user_id))
    rows = list(TurnCap.objects.filter(mine))
    site = TurnCaps(
        conf.max_turn_micros, conf.max_rounds, conf.max_tool_calls, conf.max_turn_seconds
    )
    return TurnCaps(*(_number(rows, name, getattr(site, name)) for name in _NAMES))


def _number(rows: list[TurnCap], name: str, site: int) -> int:
    given = [(row.user_id, getattr(row, name)) for row in rows if getattr(row, name) is not None]
    own = [number for user, number in given if user is not None]
    groups = [number for user, number in given if user is None]
    if own:
        return int(own[0])
    if name == "micros" and 0 in groups:
        # No cap is the largest.
        return 0
    return max(groups, default=site)
