"""Budget notices: soft percents and limits that a person has reached, and the pill on pages.

There is one notice for each budget in its present window: the highest percent that was passed and
still holds. A budget stops a person as soon as it does not allow the smallest call that could
answer them, by the check that admission uses (`affordability.py`), so that nobody writes a message
that cannot be answered; a limit a minute only where no answer fits in a whole minute, as calls wait
for the next. What their conversation itself holds is settled by then and does not count. A
dismissed soft notice comes back with the next percent or window.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from django.utils import timezone
from django.utils.translation import gettext as _

from conversations.accounts.people import save_preferences
from conversations.accounts.preferences import read_preferences
from conversations.agent.prices import PriceMissing
from conversations.budgets.affordability import TurnRoom, check_call, size_call
from conversations.budgets.caps import resolve_turn_caps
from conversations.budgets.effective import BudgetStatus, Rule
from conversations.budgets.prices import load_price_list
from conversations.budgets.search_rounds import LEAST_SEARCHES
from conversations.budgets.status import (
    EffectiveBudget,
    compute_status,
    filter_windows,
    find_effective_budgets,
)
from conversations.budgets.units import MONEY, CallSize
from conversations.context.view import wire
from conversations.db import transact
from conversations.log.context_size import count_context_tokens
from conversations.models import BudgetWindow, Conversation, Crossing, Reservation, User

#: Later than the end of every window that has one.
_NEVER = datetime.max.replace(tzinfo=UTC)
#: Dismissed notices that are stored for one person.
MOST_DISMISSED = 40


@dataclass(frozen=True, slots=True)
class BudgetPill:
    """What is left of the tightest budget.

    `is_limited` is False if no budget applies. `is_over`: no further call fits in it.
    """

    is_limited: bool
    spent: int
    limit: int
    percent: int
    label: str
    resets_at: datetime | None
    is_over: bool
    #: What it counts: money (in micro-dollars), tokens, turns or requests.
    unit: str = MONEY.name
    #: Where it comes from, such as "from group Research".
    source: str = ""
    #: Held for calls in progress.
    held: int = 0

    @property
    def left(self) -> int:
        return max(0, self.limit - self.spent - self.held)


@dataclass(frozen=True, slots=True)
class Notice:
    """The present use of a budget.

    `percent` was passed at `at`; both are None if only the limit is reached. `is_over`: no further
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
        """The name by which it is dismissed."""
        return f"{self.window}:{self.percent}"

    @property
    def is_spent(self) -> bool:
        return self.spent >= self.limit

    @property
    def left(self) -> int:
        return max(0, self.limit - self.spent - self.held)


@dataclass(frozen=True, slots=True)
class TurnStop:
    """The cap on the money of one turn, and the most that its first call can cost, above it."""

    limit: int
    cost: int


@dataclass(frozen=True, slots=True)
class Limits:
    """What a page shows of budgets.

    `stop` is the exhausted budget with the latest reset; one for all models goes before one for the
    chosen model, which the person can avoid by another choice. `turn` is set when no budget stops
    the next message, but its first call would exceed the cap of one turn.
    """

    pill: BudgetPill
    notices: tuple[Notice, ...] = ()
    stop: Notice | None = None
    turn: TurnStop | None = None
    #: The models and families of which a limit is used up.
    closed: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """A digest that changes only if a page has something new to show."""
        return wire.digest(repr(self))[-16:]


def find_limits(
    user_id: int,
    model: str,
    *,
    put_away: str = "",
    tokens: Callable[[], int] = lambda: 0,
    conversation: Conversation | None = None,
    searches: Callable[[Conversation], bool] | None = None,
) -> Limits:
    """Return what a page shows before a call of `model` with `tokens` estimated tokens; seven
    queries at most. `conversation` is the one the person writes in, `searches` tells whether its
    calls offer web search.
    """
    present = find_effective_budgets(user_id, timezone.now())
    windows = list(filter_windows(present)) if present else []
    closed = _list_closed(present, windows)
    found = [budget for budget in present if budget.rule.counts_model(model)]
    statuses = [compute_status(budget, windows) for budget in found]
    settled, refusing = statuses, frozenset[int]()
    cap, turn = resolve_turn_caps(user_id).micros, None
    if found or cap:
        is_searched = bool(conversation and searches and searches(conversation))
        size = _size_least_call(model, tokens(), is_searched=is_searched)
        turn = _check_turn(size, cap)
        settled, refusing = _settle_own_holds(size, found, windows, statuses, conversation)
    notices = _build_notices(found, settled, windows, refusing)
    stops = [notice for notice in notices if notice.is_over]
    stop = max(stops, key=lambda one: (not one.rule.model, one.resets_at or _NEVER), default=None)
    hidden = put_away.split()
    soft = [one for one in notices if not one.is_over and one.name not in hidden]
    return Limits(
        build_budget_pill(statuses, stop.rule if stop else None),
        tuple(soft) if stop is None else (),
        stop,
        turn if stop is None else None,
        closed,
    )


def _list_closed(found: Iterable[EffectiveBudget], windows: list[BudgetWindow]) -> tuple[str, ...]:
    """Return the models and families of which a limit is used up."""
    scoped = (budget for budget in found if budget.rule.model)
    used_up = {one.rule.model for one in scoped if compute_status(one, windows).room <= 0}
    return tuple(sorted(used_up))


def find_conversation_limits(
    conversation: Conversation,
    *,
    searches: Callable[[Conversation], bool],
    put_away: str = "",
    tokens: Callable[[], int] | None = None,
) -> Limits:
    """Return what the owner of a conversation sees of budgets on its page."""
    measured = tokens or (lambda: count_context_tokens(conversation))
    return find_limits(
        conversation.owner_id,
        conversation.model,
        put_away=put_away,
        tokens=measured,
        conversation=conversation,
        searches=searches,
    )


def list_notices(user_id: int) -> tuple[Notice, ...]:
    """Return the notices of a person, the most urgent first; three queries."""
    found = find_effective_budgets(user_id, timezone.now())
    windows = list(filter_windows(found)) if found else []
    statuses = [compute_status(budget, windows) for budget in found]
    used_up = [one.rule.id for one in statuses if one.is_over and not one.rule.is_rate]
    return _build_notices(found, statuses, windows, used_up)


@transact
def dismiss_notice(*, user_id: int, name: str) -> bool:
    """Store that a present notice was dismissed; False if there is none of that name.

    Names of windows that are over are removed.
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
    """Summarize the budget that stops the person, else the one with the least left in percent.

    A limit a minute has too short a window to be watched.
    """
    rows = [one for one in found if not one.rule.is_rate]
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
    label = ", ".join(filter(None, (labels[one.rule.period], one.rule.model_name)))
    return BudgetPill(
        True, one.spent, one.limit, one.percent, label, one.ends_at,
        is_over=bool(stopping), unit=one.rule.unit, source=one.rule.own_source, held=one.held,
    )  # fmt: skip


def _size_least_call(model: str, tokens: int, *, is_searched: bool) -> CallSize:
    """Return the size of a call with `tokens` estimated tokens and the shortest answer."""
    prices = load_price_list(model, timezone.now())
    return size_call(prices, tokens, LEAST_SEARCHES if is_searched else 0)


def _settle_own_holds(
    size: CallSize,
    found: list[EffectiveBudget],
    windows: list[BudgetWindow],
    statuses: list[BudgetStatus],
    conversation: Conversation | None,
) -> tuple[list[BudgetStatus], frozenset[int]]:
    """Return the statuses, and the ids of the budgets that do not allow the call.

    Where one of these has holds, those of the conversation itself are left out.
    """
    refusing = _find_refusing(size, statuses)
    has_holds = any(one.held for one in statuses if one.rule.id in refusing)
    if conversation is None or not has_holds:
        return statuses, refusing
    settled = _without_own_holds(conversation, found, windows, statuses)
    return settled, _find_refusing(size, settled)


def _find_refusing(size: CallSize, statuses: Iterable[BudgetStatus]) -> frozenset[int]:
    """Return the ids of the budgets that do not allow the call.

    If a price is missing every call is refused, with a text for an administrator, so only budgets
    that are used up stop the person.
    """
    rows = list(statuses)
    try:
        return check_call(size, rows).rule_ids
    except PriceMissing:
        return frozenset(one.rule.id for one in rows if one.room <= 0)


def _check_turn(size: CallSize, cap: int) -> TurnStop | None:
    """Return why the first call of a turn would not be admitted; None if it would."""
    try:
        verdict = check_call(size, (), TurnRoom(cap))
    except PriceMissing:
        return None
    return TurnStop(cap, verdict.cost) if verdict.turn is not None else None


def _without_own_holds(
    conversation: Conversation,
    found: Iterable[EffectiveBudget],
    windows: list[BudgetWindow],
    statuses: Iterable[BudgetStatus],
) -> list[BudgetStatus]:
    """Leave out what the conversation's own calls hold: they end before its next turn."""
    own: dict[int, int] = {}
    rows = Reservation.objects.filter(call__conversation=conversation, is_open=True)
    for window, amount in rows.values_list("window", "amount"):
        own[window] = own.get(window, 0) + amount
    return [
        replace(one, held=one.held - sum(own.get(w.pk, 0) for w in windows if budget.counts(w)))
        for budget, one in zip(found, statuses, strict=True)
    ]


def _build_notices(
    found: Iterable[EffectiveBudget],
    statuses: Iterable[BudgetStatus],
    windows: list[BudgetWindow],
    refusing: Collection[int],
) -> tuple[Notice, ...]:
    pairs = list(zip(found, statuses, strict=True))
    passed = _read_crossings(windows if any(map(_may_have_crossed, pairs)) else [])
    merged = []
    for budget, one in pairs:
        window = next((each.pk for each in windows if budget.is_of(each)), None)
        crossings = passed.get(window or 0, [])
        notice = _build_notice(one, window, crossings, is_over=one.rule.id in refusing)
        if notice.is_over or notice.percent is not None:
            merged.append(notice)
    return tuple(sorted(merged, key=lambda each: (not each.is_over, -(each.percent or 0))))


def _may_have_crossed(pair: tuple[EffectiveBudget, BudgetStatus]) -> bool:
    return pair[1].percent >= min(pair[0].rule.percents, default=101)


def _read_crossings(windows: list[BudgetWindow]) -> dict[int, list[Crossing]]:
    passed: dict[int, list[Crossing]] = {}
    if windows:
        for row in Crossing.objects.filter(window__in=windows).order_by("percent"):
            passed.setdefault(row.window_id, []).append(row)
    return passed


def _build_notice(
    one: BudgetStatus, window: int | None, passed: list[Crossing], *, is_over: bool
) -> Notice:
    # A grant or a higher limit may have lowered the percent since it was passed.
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
        is_over,
    )
