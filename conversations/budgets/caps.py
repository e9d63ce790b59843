"""Turn caps: the person's numbers, else the largest of the groups', else the site's settings.

They are independent of budgets: a cap ends a runaway turn, whatever budget pays for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.contrib.auth.models import Group
from django.db.models import Q

from conversations.conf import conf
from conversations.log.settings_version import cached_by_settings_version, may_have_rows
from conversations.models import TurnCap

_NAMES = ("micros", "rounds", "tool_calls", "seconds")


@dataclass(frozen=True, slots=True)
class TurnCaps:
    """Money in micro-dollars (0: no cap), model calls, tool calls and seconds."""

    micros: int
    rounds: int
    tool_calls: int
    seconds: int


@dataclass(frozen=True, slots=True)
class Cap:
    """One of the caps, and where it comes from."""

    name: str
    number: int
    source: str


def resolve_turn_caps(user_id: int) -> TurnCaps:
    """Return the caps that apply to a person; one query."""
    return TurnCaps(*(cap.number for cap in list_turn_caps(user_id)))


def list_turn_caps(user_id: int) -> tuple[Cap, ...]:
    """Return the caps that apply to a person, each with its source; one query."""
    rows = _list_rows(user_id)
    site = (conf.max_turn_micros, conf.max_rounds, conf.max_tool_calls, conf.max_turn_seconds)
    return tuple(
        _resolve_cap(rows, name, number) for name, number in zip(_NAMES, site, strict=True)
    )


@cached_by_settings_version
def _list_rows(user_id: int) -> tuple[TurnCap, ...]:
    if not may_have_rows(TurnCap):
        return ()
    mine = Q(user=user_id) | Q(group__in=Group.objects.filter(user=user_id))
    return tuple(TurnCap.objects.filter(mine).select_related("group"))


def _resolve_cap(rows: Sequence[TurnCap], name: str, site: int) -> Cap:
    limits = [(row, int(getattr(row, name))) for row in rows if getattr(row, name) is not None]
    if own := [number for row, number in limits if row.user_id is not None]:
        return Cap(name, own[0], "set for this person")
    if not limits:
        return Cap(name, site, "the site")
    # 0 micro-dollars means no cap, which is the largest.
    row, number = max(limits, key=lambda pair: (name == "micros" and not pair[1], pair[1]))
    return Cap(name, number, f"from group {row.group}")
