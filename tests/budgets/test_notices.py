"""What people are told of their budgets: the pill, each percent once, what stops them and when."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from conversations.accounts.preferences import read_preferences
from conversations.agent.ports import Refused, SearchesLimited, Sending
from conversations.agent.prices import LEAST_OUTPUT
from conversations.budgets.affordability import size_call
from conversations.budgets.crossings import record_crossings
from conversations.budgets.grants import grant_more
from conversations.budgets.notices import (
    Limits,
    Notice,
    TurnStop,
    dismiss_notice,
    find_conversation_limits,
    find_limits,
    list_notices,
)
from conversations.budgets.prices import load_price_list
from conversations.budgets.search_rounds import LEAST_SEARCHES
from conversations.budgets.units import UNITS
from conversations.log.chain import append_row, lock_site_chain
from conversations.log.leases import Lease
from conversations.models import (
    Budget,
    BudgetWindow,
    Conversation,
    Crossing,
    ModelPrice,
    ToolRule,
    ToolSwitch,
    User,
)
from conversations.models.periods import compute_bounds
from conversations.toolbox.toolset import build_toolset, offers_search
from conversations.toolbox.web_search import NAME, build_definition
from conversations.transcript.meter import read_meter
from conversations.turns import calls
from tests.support import people_and_turns, stored_turns
from tests.support.budget_rows import group, member

pytestmark = pytest.mark.django_db
DOLLAR = 1_000_000


def limits_of(user: User) -> Limits:
    user.refresh_from_db()
    return find_limits(
        user.pk, stored_turns.MODEL, put_away=read_preferences(user.preferences).put_away
    )


def stop_of(conversation: Conversation, tokens: Callable[[], int] | None = None) -> Notice | None:
    """Return what stops the next message of a conversation on its page."""
    return find_conversation_limits(conversation, searches=offers_search, tokens=tokens).stop


def least(tokens: int = 0) -> int:
    return size_call(load_price_list(stored_turns.MODEL, timezone.now()), tokens).cost


def spend(budget: Budget, amount: int, overrun: int = 0, *percents: int) -> BudgetWindow:
    """Make the present window as it is after so much was settled and so many percents passed."""
    starts, ends = compute_bounds(budget.period, budget.time_zone, timezone.now())
    window, _ = BudgetWindow.objects.update_or_create(
        budget=budget, user=budget.user, starts_at=starts, ends_at=ends,
        defaults={"limit": max(amount, budget.limit), "spent": amount, "overrun": overrun},
    )  # fmt: skip
    for percent in percents:
        crossing = Crossing(window=window, percent=percent, spent=amount, limit=budget.limit)
        append_row(crossing, lock_site_chain())
    return window


def test_without_a_budget_there_is_no_limit_and_two_questions() -> None:
    user = people_and_turns.person()
    with CaptureQueriesContext(connection) as found:
        said = find_limits(user.pk, stored_turns.MODEL)
    pill = said.pill
    assert (pill.is_limited, pill.is_over, pill.resets_at) == (False, False, None)
    assert (said.notices, said.stop) == ((), None)
    assert len(found) == 2


def test_the_tightest_budget_is_shown_and_where_it_comes_from() -> None:
    user = member("Research")
    spend(people_and_turns.limited(user, DOLLAR, "day"), 200_000)
    spend(group("Research", 10 * DOLLAR, kind="pool"), 9 * DOLLAR)
    people_and_turns.limited(user, 5 * DOLLAR, "lifetime")
    pill = limits_of(user).pill
    assert (pill.spent, pill.limit, pill.percent) == (9 * DOLLAR, 10 * DOLLAR, 90)
    assert pill.resets_at == compute_bounds("month", "UTC", timezone.now())[1]
    assert (pill.source, pill.is_over) == ("shared by group Research", False)


@pytest.mark.parametrize(("left", "is_over"), [(-5, True), (0, True), (-1, True), (1, False)])
def test_a_budget_stops_where_what_is_left_is_less_than_any_call_may_cost(
    left: int, is_over: bool
) -> None:
    user = people_and_turns.person()
    room = least() - 1 + left if left >= 0 else 0
    spend(people_and_turns.limited(user, DOLLAR), DOLLAR - room, -min(left, 0))
    said = limits_of(user)
    assert (said.stop is not None, said.pill.is_over) == (is_over, is_over)
    if said.stop is not None:
        assert said.stop.is_spent == (room == 0)
        assert said.stop.left == room
    assert 0 <= said.pill.percent <= 100


@pytest.mark.parametrize(
    ("unit", "limit", "spent", "is_over"),
    [
        ("turns", 3, 2, False), ("turns", 3, 3, True),
        ("tokens", 5_000, 5_000 - LEAST_OUTPUT, False),
        ("tokens", 5_000, 5_001 - LEAST_OUTPUT, True),
    ],
)  # fmt: skip
def test_turns_and_tokens_stop_too(unit: str, limit: int, spent: int, is_over: bool) -> None:
    user = people_and_turns.person()
    spend(people_and_turns.limited(user, limit, unit=unit), spent)
    assert (limits_of(user).stop is not None) == is_over


def test_a_long_conversation_is_stopped_before_a_short_one() -> None:
    user = people_and_turns.person()
    lease = people_and_turns.started_turn(user)
    budget = people_and_turns.limited(user, DOLLAR)
    conversation = people_and_turns.conversation_of(lease)
    tokens = read_meter(conversation).tokens
    spend(budget, DOLLAR - least(tokens))
    assert stop_of(conversation) is None
    assert stop_of(conversation, tokens=lambda: tokens + 1_000) is not None
    assert limits_of(user).stop is None


def test_of_several_that_stop_the_one_that_lasts_longest_is_named() -> None:
    user = people_and_turns.person()
    day, month = (
        people_and_turns.limited(user, DOLLAR, "day"),
        people_and_turns.limited(user, 2 * DOLLAR, "month"),
    )
    spend(day, DOLLAR, 0, 50, 80, 95)
    spend(month, 2 * DOLLAR)
    said = limits_of(user)
    assert said.stop is not None
    assert (said.stop.rule.id, said.stop.resets_at) == (
        month.pk,
        compute_bounds("month", "UTC", timezone.now())[1],
    )
    assert said.pill.limit == 2 * DOLLAR
    assert said.notices == ()
    spend(people_and_turns.limited(user, 5, "lifetime"), 0)
    stop = limits_of(user).stop
    assert stop is not None
    assert stop.resets_at is None


def test_a_notice_names_the_highest_percent_until_it_is_put_away_and_then_the_next_one() -> None:
    user = people_and_turns.person()
    budget = people_and_turns.limited(user, DOLLAR)
    window = spend(budget, DOLLAR // 2, 0, 50)
    [notice] = limits_of(user).notices
    assert (notice.percent, notice.name) == (50, f"{window.pk}:50")
    assert dismiss_notice(user_id=user.pk, name=notice.name)
    assert limits_of(user).notices == ()
    spend(budget, DOLLAR * 8 // 10, 0, 80)
    [notice] = limits_of(user).notices
    assert notice.percent == 80
    assert dismiss_notice(user_id=user.pk, name=notice.name)
    assert dismiss_notice(user_id=user.pk, name=notice.name)
    assert limits_of(user).notices == ()
    BudgetWindow.objects.update(starts_at=window.starts_at - timedelta(days=40))
    spend(budget, DOLLAR // 2, 0, 50)
    [notice] = limits_of(user).notices
    assert notice.percent == 50
    assert dismiss_notice(user_id=user.pk, name=notice.name)
    user.refresh_from_db()
    assert read_preferences(user.preferences).put_away == notice.name


@pytest.mark.parametrize(("spent", "crossed"), [(50_000, [50]), (49_999, [])])
def test_a_percent_is_passed_when_it_is_reached_exactly(spent: int, crossed: list[int]) -> None:
    user = people_and_turns.person()
    budget = people_and_turns.limited(user, 100_000, soft_percents="50")
    window = spend(budget, spent)
    record_crossings(user_id=user.pk, windows={window.pk})
    assert list(Crossing.objects.values_list("percent", flat=True)) == crossed


def test_nothing_but_a_present_notice_of_ones_own_is_put_away() -> None:
    ada, eve = people_and_turns.person("ada"), people_and_turns.person("eve")
    window = spend(people_and_turns.limited(ada, DOLLAR), DOLLAR // 2, 0, 50)
    for name in ("", "1:1", f"{window.pk}:80", "x" * 5_000, f"{window.pk}:50"):
        assert not dismiss_notice(user_id=eve.pk, name=name)
    eve.refresh_from_db()
    assert eve.preferences == {}
    assert len(limits_of(ada).notices) == 1


def test_a_grant_takes_back_what_was_told_and_lifts_the_stop() -> None:
    user = people_and_turns.person()
    budget = people_and_turns.limited(user, DOLLAR)
    spend(budget, DOLLAR, 0, 50, 80, 95)
    stopped = limits_of(user)
    assert stopped.stop is not None
    grant_more(budget=budget, amount=DOLLAR // 10, reason="a trial")
    [notice] = limits_of(user).notices
    assert notice.percent == 80
    grant_more(budget=budget, amount=9 * DOLLAR, reason="a trial")
    freed = limits_of(user)
    assert (freed.stop, freed.notices, freed.pill.percent) == (None, (), 9)
    assert freed.key != stopped.key
    assert freed.key == limits_of(user).key


def test_a_model_without_a_price_stops_nobody_who_has_money() -> None:
    user = people_and_turns.person()
    people_and_turns.limited(user, 5)
    assert limits_of(user).stop is not None
    ModelPrice.objects.filter(model=stored_turns.MODEL).delete()
    assert limits_of(user).stop is None


def test_what_is_asked_does_not_grow_and_windows_of_the_past_do_not_count() -> None:
    user = people_and_turns.person()
    budget = people_and_turns.limited(user, DOLLAR, "day")
    starts, _ = compute_bounds("day", "UTC", timezone.now())
    BudgetWindow.objects.bulk_create(
        BudgetWindow(
            budget=budget, user=user, starts_at=starts - timedelta(days=day), limit=100, spent=100
        )
        for day in range(1, 50)
    )
    for period in ("week", "month", "lifetime"):
        people_and_turns.limited(user, DOLLAR, period)
    spend(budget, 0)
    with CaptureQueriesContext(connection) as found:
        assert limits_of(user).pill.spent == 0
    # The person, places, windows, caps and prices.
    assert len(found) == 5
    spend(budget, DOLLAR // 2, 0, 50)
    with CaptureQueriesContext(connection) as found:
        assert len(limits_of(user).notices) == 1
    assert len(found) == 6


def test_the_budgets_of_other_people_are_theirs() -> None:
    spend(people_and_turns.limited(people_and_turns.person("eve"), 100), 100, 0, 50)
    ada = people_and_turns.person("ada")
    assert not limits_of(ada).pill.is_limited
    assert list_notices(ada.pk) == ()


@pytest.mark.parametrize("short", [0, 1])
@pytest.mark.parametrize("searches", [0, 2])
@pytest.mark.parametrize(("unit", "tokens"), [("money", 0), ("money", 9_000), ("tokens", 9_000)])
def test_a_page_stops_exactly_where_admission_refuses(
    unit: str, tokens: int, searches: int, short: int, settings: Any
) -> None:
    settings.AGENTWEB_WEB_SEARCH, settings.AGENTWEB_WEB_SEARCH_USES = True, searches
    user = people_and_turns.person()
    lease = people_and_turns.started_turn(user)
    conversation = people_and_turns.conversation_of(lease)
    conversation.web_search = "beside" if searches else ""
    prices = load_price_list(stored_turns.MODEL, timezone.now())
    # Fewer searches are offered before a call is refused.
    least = UNITS[unit].worst(size_call(prices, tokens, min(searches, LEAST_SEARCHES)))
    limit = 100 * DOLLAR
    budget = people_and_turns.limited(user, limit, unit=unit)
    # What another conversation of theirs holds counts, too.
    spend(budget, limit - least + short - 7)
    BudgetWindow.objects.filter(budget=budget).update(held=7)
    offers = stop_of(conversation, tokens=lambda: tokens) is None
    assert offers == (not short) == is_admitted(lease, tokens, searches)


@pytest.mark.parametrize("why", ["", "site", "rule", "chat", "egress", "uses"])
def test_a_search_that_is_not_offered_is_not_counted(why: str, settings: Any) -> None:
    user = people_and_turns.person()
    lease = people_and_turns.started_turn(user)
    conversation = people_and_turns.conversation_of(lease)
    conversation.web_search = "alone"
    match why:
        case "site":
            settings.AGENTWEB_DISABLED_TOOLS = (NAME,)
        case "rule":
            ToolRule.objects.create(tool=NAME, is_allowed=False)
        case "chat":
            ToolSwitch.objects.create(conversation=conversation, tool=NAME)
        case "egress":
            conversation.asks_before_egress = True
        case "uses":
            settings.AGENTWEB_WEB_SEARCH_USES = 0
    spend(people_and_turns.limited(user, DOLLAR), DOLLAR - least())
    served = [each["name"] for each in build_toolset(conversation).server_tools]
    assert served == ([] if why else [NAME])
    assert (stop_of(conversation, tokens=lambda: 0) is None) == bool(why)
    assert is_admitted(lease, 0, len(served)) == bool(why)


def test_the_next_turn_is_refused_by_page_and_admission_alike() -> None:
    user = people_and_turns.person()
    lease = people_and_turns.started_turn(user)
    budget = people_and_turns.limited(user, 3, unit="turns")
    spend(budget, 2)
    assert limits_of(user).stop is None
    assert is_admitted(lease, 10)
    assert limits_of(user).stop is not None
    assert not is_admitted(people_and_turns.started_turn(user), 10)
    # A turn counts once, and its conversation's next one comes when it is over.
    assert is_admitted(lease, 10)


def test_what_a_conversation_holds_itself_does_not_stop_its_next_message() -> None:
    """It is settled when the message has its turn; elsewhere a call would be refused by now."""
    user = people_and_turns.person()
    lease = people_and_turns.started_turn(user)
    envelope = stored_turns.ENVELOPE
    prices = load_price_list(stored_turns.MODEL, timezone.now())
    worst = size_call(prices, 0, output=envelope.max_tokens).cost
    people_and_turns.limited(user, worst + least() - 1)
    assert is_admitted(lease, 0)
    conversation = people_and_turns.conversation_of(lease)
    assert stop_of(conversation, tokens=lambda: 0) is None
    stop = limits_of(user).stop
    assert stop is not None
    assert not stop.is_spent
    assert not is_admitted(people_and_turns.started_turn(user), 0)


def is_admitted(lease: Lease, tokens: int, searches: int = 0) -> bool:
    """Say whether a call of that size can be opened, and keep it open."""
    tools = {"tools": [build_definition() | {"max_uses": searches}]} if searches else {}
    parameters = dict(stored_turns.ENVELOPE.parameters) | tools
    asked = Sending("reply", replace(stored_turns.ENVELOPE, parameters=(*parameters.items(),)),
                    "[]", tokens, None, 1)  # fmt: skip
    try:
        calls.open_call(lease=lease, sending=asked)
    except SearchesLimited as limited:
        return is_admitted(lease, tokens, limited.searches)
    except Refused:
        return False
    return True


def test_a_message_whose_first_call_exceeds_the_cap_of_its_turn_is_named_before_it_is_sent(
    settings: Any,
) -> None:
    user = people_and_turns.person()
    most = least()
    for cap, expected in ((most - 1, TurnStop(most - 1, most)), (most, None), (0, None)):
        settings.AGENTWEB_MAX_TURN_MICROS = cap
        assert limits_of(user).turn == expected
    settings.AGENTWEB_MAX_TURN_MICROS = most - 1
    budget = people_and_turns.limited(user, DOLLAR)
    assert limits_of(user).turn is not None
    spend(budget, DOLLAR)
    stopped = limits_of(user)
    assert stopped.stop is not None
    assert stopped.turn is None
    ModelPrice.objects.filter(model_id=stored_turns.MODEL).update(effective_to=timezone.now())
    assert limits_of(user).turn is None
