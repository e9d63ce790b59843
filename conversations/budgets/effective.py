"""Which budgets apply to a person, where each comes from, and its present use.

All pools apply: the site's and those of the person's groups. For each unit, period and model scope
one allowance applies: the person's own, else the largest of the groups', else the site's. A budget
with a model scope applies to the calls of its models alone, and beside the budgets of all models.
What a person has set for themselves applies beside all of these and replaces none.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from conversations.models.catalogue import is_model_in
from conversations.rendering.model_names import name_scope

#: Scopes in ascending order of precedence.
_SCOPES = ("site", "group", "user")


@dataclass(frozen=True, slots=True)
class Rule:
    """A budget as data; `group` is its group's name, `percents` are the shares to notify at."""

    id: int
    scope: str
    kind: str
    unit: str
    period: str
    zone: str
    limit: int
    percents: tuple[int, ...] = ()
    group: str = ""
    note: str = ""
    #: The model or the family whose calls alone count; "": all.
    model: str = ""

    def counts_model(self, model: str) -> bool:
        """Return whether calls of a model count."""
        return is_model_in(self.model, model)

    @property
    def model_name(self) -> str:
        """The scope's name for people, such as Opus; "" for all models."""
        return name_scope(self.model)

    @property
    def is_pool(self) -> bool:
        return self.kind == "pool"

    @property
    def is_rate(self) -> bool:
        """Whether it limits a minute: a call that does not fit now waits for the next one."""
        return self.period == "minute"

    @property
    def slot(self) -> tuple[str, str, str]:
        """What one allowance applies for: unit, period and model scope."""
        return self.unit, self.period, self.model

    @property
    def is_own(self) -> bool:
        """Whether the person has set it for themselves."""
        return self.kind == "own"

    @property
    def own_source(self) -> str:
        """Where the budget comes from, in words for the person themselves."""
        if self.is_own:
            return "set by yourself"
        return "set for you" if self.scope == "user" else self.source

    @property
    def source(self) -> str:
        """Where the budget comes from."""
        if self.is_own:
            return "set by this person"
        match self.scope, self.is_pool:
            case "site", True:
                return "shared by everybody"
            case "site", False:
                return "the same for everybody"
            case "group", True:
                return f"shared by group {self.group}"
            case "group", False:
                return f"from group {self.group}"
            case _:
                return "set for this person"


def list_outranked(rules: Iterable[Rule], by: Rule) -> tuple[Rule, ...]:
    """Return the allowances that would apply without `by`, in order of precedence."""
    if by.is_pool or by.is_own:
        return ()
    rivals = (rule for rule in rules if (rule.kind, rule.slot) == (by.kind, by.slot))
    others = (rule for rule in rivals if rule.id != by.id)
    return tuple(sorted(others, key=_rank, reverse=True))


def choose_effective(rules: Iterable[Rule]) -> tuple[Rule, ...]:
    """Return the budgets that apply, of the active ones of the site, the groups and the person."""
    always: list[Rule] = []
    chosen: dict[tuple[str, str, str], Rule] = {}
    for rule in rules:
        if rule.is_pool or rule.is_own:
            always.append(rule)
        else:
            chosen[rule.slot] = max(chosen.get(rule.slot, rule), rule, key=_rank)
    return tuple(sorted((*always, *chosen.values()), key=lambda rule: rule.id))


def _rank(rule: Rule) -> tuple[int, int, int]:
    return _SCOPES.index(rule.scope), rule.limit, -rule.id


@dataclass(frozen=True, slots=True)
class BudgetStatus:
    """The use of a budget in its present window.

    `limit` includes grants, `spent` includes what settled above its hold. An allowance also counts
    the person's use in the same period under another allowance, so that changing the allowance does
    not give them a second limit.
    """

    rule: Rule
    starts_at: datetime
    ends_at: datetime | None
    limit: int
    spent: int
    held: int

    @property
    def left(self) -> int:
        """What may still be held; negative if the limit was lowered below the use."""
        return self.limit - self.spent - self.held

    @property
    def room(self) -> int:
        """The most that a call may use, now or in the next minute of a limit a minute."""
        return self.limit if self.rule.is_rate else self.left

    @property
    def percent(self) -> int:
        return compute_percent(self.spent, self.limit)

    @property
    def is_over(self) -> bool:
        return self.spent >= self.limit


def compute_percent(spent: int, limit: int) -> int:
    """Return the share of the limit that is spent, in whole percent, 100 at most."""
    return min(100, spent * 100 // limit) if limit > 0 else 100
