"""Budget notices: what a person is told about soft percents and limits, and the pill on pages.

There is one notice for each budget in its present window: the highest percent that was passed and
still holds. A budget stops a person as soon as what is left is less than the least another call
could use, so that nobody writes a message that cannot be answered. A dismissed soft notice comes
back with the next percent or window.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from conversations.accounts.people import save_preferences
from conversations.accounts.preferences import read_preferences
from conversations.agent.prices import LEAST_OUTPUT, PriceMissing
from conversations.budgets.effective import BudgetStatus, Rule
from conversations.budgets.prices import load_price_list
from conversations.budgets.status import (
    EffectiveBudget,
    compute_status,
    filter_windows,
    find_effective_budgets,
)
from conversations.budgets.units import MONEY, UNITS, CallSize, Unit
from conversations.context.view import wire
from conversations.log.context_size import count_context_tokens
from conversations.models import BudgetWindow, Conversation, Crossing, User

#: Ends later than every window that has an end.
_NEVER = datetime.max.replace(tzinfo=UTC)
#: Dismissed notices that are stored for one person.
MOST_DISMISSED = 40
#: The least that another call can use, by unit.
Least = dict[str, int]


@dataclass(frozen=True, slots=True)
class BudgetPill:
    """What is left of the tightest budget.

    `is_limited` is False where no budget applies. `is_over`: no other call fits in it.
    """

    is_limited: bool
    spent: int
    limit: int
    percent: int
    label: str
    resets_at: datetime | None
    is_over: bool
    #: What it counts: money (in micro-dollars), tokens or turns.
    unit: str = MONEY.name
    #: Where it comes from, such as "from group Research".
    source: str = ""
    #: Held for calls that are under way.
    held: int = 0


@dataclass(frozen=True, slots=True)
class Notice:
    """What is spent of a budget now.

    `percent` was passed at `at`; both are None where only the limit is reached. `is_over`: no other
    call fits.
    """

    rule: Rule
    #: The window, so that a dismissed notice comes back with the next one.
    window: int | None
    percent: int | None
    at: datetime | None
    spent: int
    held: int
    limit: int
    resets_at: datetime | None
    is_over: bool

    @property
    def name(self) -> str:
        """The name under which it is dismissed."""
        return f"{self.window}:{self.percent}"

    @property
    def is_spent(self) -> bool:
        return self.spent >= self.limit

    @property
    def left(self) -> int:
        return max(0, self.limit - self.spent)


@dataclass(frozen=True, slots=True)
class Limits:
    """What a page shows of budgets; `stop` is the budget that stops the person for longest."""

    pill: BudgetPill
    notices: tuple[Notice, ...] = ()
    stop: Notice | None = None

    @property
    def key(self) -> str:
        """A digest that stays the same as long as a page has nothing new to show."""
        return wire.digest(repr(self))[-16:]


def find_limits(
    user_id: int, model: str, *, put_away: str = "", tokens: Callable[[], int] = lambda: 0
) -> Limits:
    """Return what a person is shown before calls of a model with so many tokens; five queries at
    most.
    """
    found = find_effective_budgets(user_id, timezone.now())
    windows = list(filter_windows(found)) if found else []
    least = _find_least_amounts(model, tokens()) if found else {}
    told = _build_notices(found, windows, least)
    stops = [notice for notice in told if notice.is_over]
    stop = max(stops, key=lambda notice: notice.resets_at or _NEVER, default=None)
    hidden = put_away.split()
    soft = [one for one in told if not one.is_over and one.name not in hidden]
    return Limits(
        build_budget_pill(
            [compute_status(budget, windows) for budget in found], stop.rule if stop else None
        ),
        tuple(soft) if stop is None else (),
        stop,
    )


def find_conversation_limits(
    conversation: Conversation, *, put_away: str = "", tokens: Callable[[], int] | None = None
) -> Limits:
    """Return what the owner of a conversation is shown on its page."""
    measured = tokens or (lambda: count_context_tokens(conversation))
    return find_limits(
        conversation.owner_id, conversation.model, put_away=put_away, tokens=measured
    )


def list_notices(user_id: int, now: datetime | None = None) -> tuple[Notice, ...]:
    """Return the notices of a person, the most urgent first; three queries."""
    found = find_effective_budgets(user_id, now or timezone.now())
    return _build_notices(found, list(filter_windows(found)) if found else [], {})


@transaction.atomic
def dismiss_notice(*, user_id: int, name: str) -> bool:
    """Remember that a present notice was dismissed; False where there is none of that name.

    Names of windows that are over are dropped.
    """
    user = User.objects.select_for_update().only("preferences").get(pk=user_id)
    present = list_notices(user_id)
    if name not in [one.name for one in present]:
        return False
    windows = {str(one.window) for one in present}
    before = read_preferences(user.preferences).put_away.split()
    kept = [one for one in before if one.partition(":")[0] in windows and one != name]
    save_preferences(
        user_id=user_id, changes={"put_away": " ".join([*kept, name][-MOST_DISMISSED:])}
    )
    return True


def build_budget_pill(found: Iterable[BudgetStatus], stopped_by: Rule | None = None) -> BudgetPill:
    """Summarize the budget that stops the person, else the one with least left in percent."""
    rows = list(found)
    if not rows:
        return BudgetPill(False, 0, 0, 0, _("No limit"), None, False)
    stopping = [one for one in rows if one.rule == stopped_by]
    one = max(stopping or rows, key=lambda one: (one.percent, one.spent + one.held))
    labels = {
        "hour": _("this hour"),
        "day": _("today"),
        "week": _("this week"),
        "month": _("this month"),
        "lifetime": _("in all"),
    }
    return BudgetPill(
        True, one.spent, one.limit, one.percent, labels[one.rule.period], one.ends_at,
        is_over=bool(stopping), unit=one.rule.unit, source=one.rule.own_source, held=one.held,
    )  # fmt: skip


def _build_notices(
    found: Iterable[EffectiveBudget], windows: list[BudgetWindow], least: Least
) -> tuple[Notice, ...]:
    pairs = [(budget, compute_status(budget, windows)) for budget in found]
    passed = _read_crossings(windows if any(map(_may_have_crossed, pairs)) else [])
    given = []
    for budget, one in pairs:
        window = next((each.pk for each in windows if budget.is_of(each)), None)
        notice = _build_notice(
            one, window, passed.get(window or 0, []), least.get(one.rule.unit, 1)
        )
        if notice.is_over or notice.percent is not None:
            given.append(notice)
    return tuple(sorted(given, key=lambda each: (not each.is_over, -(each.percent or 0))))


def _may_have_crossed(pair: tuple[EffectiveBudget, BudgetStatus]) -> bool:
    return pair[1].percent >= min(pair[0].rule.percents, default=101)


def _read_crossings(windows: list[BudgetWindow]) -> dict[int, list[Crossing]]:
    passed: dict[int, list[Crossing]] = {}
    if windows:
        for row in Crossing.objects.filter(window__in=windows).order_by("percent"):
            passed.setdefault(row.window_id, []).append(row)
    return passed


def _build_notice(
    one: BudgetStatus, window: int | None, passed: list[Crossing], least: int
) -> Notice:
    # A grant or a higher limit may have lowered the percent since.
    last = next((row for row in reversed(passed) if row.percent <= one.percent), None)
    return Notice(
        one.rule,
        window,
        last.percent if last else None,
        last.created_at if last else None,
        one.spent,
        one.held,
        one.limit,
        one.ends_at,
        one.limit - one.spent < least,
    )


def _find_least_amounts(model: str, tokens: int) -> Least:
    """Return what a call with so many input tokens and the shortest answer can use, by unit."""
    size = CallSize(load_price_list(model, timezone.now()), tokens, LEAST_OUTPUT)
    return {unit.name: _find_least_amount(unit, size) for unit in UNITS.values()}


def _find_least_amount(unit: Unit, size: CallSize) -> int:
    try:
        return max(1, unit.worst(size))
    except PriceMissing:
        return 1
