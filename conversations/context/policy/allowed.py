"""Limits on what a conversation may change of its owner's context policy.

A limit applies to what the conversation changes, by a number of its own or by its preset; the
owner's own values are never limited. A change beyond a limit is refused. A change made before the
limit was set counts as the nearest allowed value; if such values contradict others, the
conversation runs with its owner's policy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from conversations.context.policy.policy import (
    BOUNDS,
    NO_NUMBER,
    NO_OBJECT,
    POLICY_FIELDS,
    Policy,
    PolicyError,
    change_numbers,
    demand_consistent,
)
from conversations.context.translation import gettext_noop, mark_recorded

#: Marks a number that a conversation may not change at all.
FIXED = "fixed"
_NO_RANGE = mark_recorded(gettext_noop('is limited by [lowest, highest] or by "fixed"'))
_NO_END = mark_recorded(gettext_noop("needs a lowest or a highest value"))
_REVERSED = mark_recorded(gettext_noop("cannot be from %(least)s to %(most)s"))
_NOT_WHOLE = mark_recorded(gettext_noop("is limited by whole numbers from %(least)s to %(most)s"))
_FIXED_HERE = mark_recorded(gettext_noop("cannot be changed for this account"))
_NOT_ALLOWED = mark_recorded(gettext_noop("must be from %(least)s to %(most)s for this account"))


@dataclass(frozen=True, slots=True)
class Allowed:
    """The lowest and highest value of some numbers; (None, None) means fixed."""

    ranges: Mapping[str, tuple[int | None, int | None]] = field(default_factory=dict)

    def is_fixed(self, name: str) -> bool:
        return self.ranges.get(name) == (None, None)

    def limits(self, name: str) -> tuple[int, int] | None:
        """Return a number's lowest and highest value; None if it is fixed or not a number."""
        if name not in BOUNDS or self.is_fixed(name):
            return None
        least, most = self.ranges.get(name, (None, None))
        lowest, highest = BOUNDS[name]
        return lowest if least is None else least, highest if most is None else most

    def nearest(self, name: str, value: Any, own: Any) -> Any:
        """Return the allowed value nearest to `value`; `own` is the owner's value."""
        if value == own or name not in self.ranges:
            return value
        found = self.limits(name)
        return own if found is None else min(max(value, found[0]), found[1])


def read_allowed(data: object) -> Allowed:
    """Read {number: [lowest, highest] or "fixed"}, either end None; raises PolicyError."""
    if not isinstance(data, Mapping):
        raise PolicyError("policy_limits", NO_OBJECT)
    return Allowed({name: _read_range(name, bounds) for name, bounds in data.items()})


def _read_range(name: str, bounds: object) -> tuple[int | None, int | None]:
    if name not in POLICY_FIELDS:
        raise PolicyError(name, NO_NUMBER)
    if bounds == FIXED:
        return None, None
    if name not in BOUNDS or not isinstance(bounds, (list, tuple)) or len(bounds) != 2:
        raise PolicyError(name, _NO_RANGE)
    least, most = (_read_end(name, value) for value in bounds)
    if least is None and most is None:
        raise PolicyError(name, _NO_END)
    if least is not None and most is not None and least > most:
        raise PolicyError(name, _REVERSED % _write_ends(least, most))
    return least, most


def _write_ends(least: int, most: int) -> dict[str, str]:
    return {"least": f"{least:,}", "most": f"{most:,}"}


def _read_end(name: str, value: object) -> int | None:
    lowest, highest = BOUNDS[name]
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not lowest <= value <= highest:
        raise PolicyError(name, _NOT_WHOLE % _write_ends(lowest, highest))
    return value


def demand_allowed(policy: Policy, own: Policy, allowed: Allowed) -> None:
    """Raise PolicyError for the first value that the limits forbid; `own` is the owner's policy."""
    for name in allowed.ranges:
        value = getattr(policy, name)
        if value == allowed.nearest(name, value, getattr(own, name)):
            continue
        found = allowed.limits(name)
        if found is None:
            raise PolicyError(name, _FIXED_HERE)
        least, most = found
        raise PolicyError(name, _NOT_ALLOWED % _write_ends(least, most))


def clamp_policy(policy: Policy, own: Policy, allowed: Allowed) -> Policy:
    """Return the policy a conversation runs with, from the one it chose and its owner's."""
    near = {
        name: allowed.nearest(name, getattr(policy, name), getattr(own, name))
        for name in allowed.ranges
    }
    try:
        return demand_consistent(change_numbers(policy, **near))
    except PolicyError:
        return own
