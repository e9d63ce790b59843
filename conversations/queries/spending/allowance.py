"""A user's budgets as they stand: what is spent and held of each, and when it starts anew."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from conversations.allowances import Standing
from conversations.models import Budget
from conversations.queries.allowances import standings


@dataclass(frozen=True, slots=True)
class Allowance:
    """One budget; `spent` counts what settled above its reservation too."""

    period: str
    limit: int
    spent: int
    held: int
    resets_at: datetime | None
    note: str = ""
    unit: str = "money"
    #: Where it comes from, such as "from group Research".
    source: str = ""

    @property
    def used(self) -> int:
        return self.spent + self.held

    @property
    def left(self) -> int:
        return max(0, self.limit - self.used)

    @property
    def is_over(self) -> bool:
        return self.spent >= self.limit

    @property
    def is_near(self) -> bool:
        return not self.is_over and self.spent * 5 >= self.limit * 4


def allowances(user_id: int) -> tuple[Allowance, ...]:
    """Give the budgets that count, money before tokens and turns, the shortest period first."""
    units, periods = list(Budget.Unit), list(Budget.Period)

    def place(one: Standing) -> tuple[int, int]:
        return units.index(Budget.Unit(one.rule.unit)), periods.index(
            Budget.Period(one.rule.period)
        )

    return tuple(
        Allowance(
            period=one.rule.period,
            limit=one.limit,
            spent=one.spent,
            held=one.held,
            resets_at=one.ends_at,
            note=one.rule.note,
            unit=one.rule.unit,
            source=one.rule.source,
        )
        for one in sorted(standings(user_id), key=place)
    )
