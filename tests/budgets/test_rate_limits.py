"""Limits a minute: what is counted in which minute, what waits for the next, what never fits."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from conversations.agent.ports import Ending, ModelFailed, RateLimitReached, Refused, ReplyAhead
from conversations.budgets.admission import SHORTEST, demand_next_call
from conversations.budgets.notices import find_limits, list_notices
from conversations.budgets.spending import filter_spending
from conversations.budgets.usage.allowance import list_allowances
from conversations.context.view.envelope import build_envelope
from conversations.log.leases import Lease
from conversations.models import (
    ApiCall,
    Budget,
    BudgetWindow,
    Crossing,
    LedgerEntry,
    MoneyRecord,
)
from conversations.models.periods import compute_bounds
from conversations.transcript.words import describe_rate_limit, explain_not_sent
from conversations.turns import calls
from tests.support import people_and_turns, stored_turns
from tests.support.budget_rows import PLENTY, clean, group, member, padded, play, refusal, site

pytestmark = pytest.mark.django_db
MINUTE = {"period": "minute"}
NOON = datetime(2026, 11, 26, 12, 0, 20, tzinfo=UTC)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[datetime]:
    """Let a test set the time: the only item."""
    now = [NOON]
    monkeypatch.setattr("django.utils.timezone.now", lambda: now[0])
    return now


def reached(lease: Lease, **how: Any) -> RateLimitReached:
    with pytest.raises(RateLimitReached) as error:
        people_and_turns.opened(lease, **how)
    return error.value


@pytest.mark.parametrize("zone", ["UTC", "Europe/Vienna", "Asia/Kathmandu", "Africa/Monrovia"])
def test_a_minute_is_one_of_utc_wherever_its_days_begin(zone: str) -> None:
    # Vienna's clocks show 02:00 to 03:00 twice on this day.
    at = datetime(2026, 10, 25, 0, 59, 59, 999_999, tzinfo=UTC)
    begins = at.replace(second=0, microsecond=0)
    assert compute_bounds("minute", zone, at) == (begins, begins + timedelta(minutes=1))
    assert compute_bounds("minute", zone, at + timedelta(microseconds=1))[0] == begins + timedelta(
        minutes=1
    )


def test_so_many_requests_are_made_a_minute_and_the_next_waits(clock: list[datetime]) -> None:
    user = member()
    site(2, unit="requests", **MINUTE)
    lease = people_and_turns.started_turn(user)
    play(lease)
    play(lease)
    error = reached(lease)
    assert (error.code, error.seconds, error.waits_for) == ("rate_limit", 40.0, "requests 2")
    assert error.text == (
        "The limit of 2 requests a minute (the same for everybody) is reached."
        " It starts anew on 26 November 2026 at 12:01 (UTC)."
    )
    clock[0] = NOON + timedelta(seconds=39, microseconds=999_999)
    reached(lease)
    clock[0] = NOON + timedelta(seconds=40)
    play(lease)
    assert list(ApiCall.objects.order_by("pk").values_list("sent_at", flat=True)) == [
        NOON, NOON, NOON + timedelta(seconds=40)
    ]  # fmt: skip
    assert [row.spent for row in BudgetWindow.objects.order_by("starts_at")] == [2, 1]
    assert clean()


def test_a_request_that_failed_counts_and_is_billed_nowhere(clock: list[datetime]) -> None:
    user = member()
    site(1, unit="requests", **MINUTE)
    people_and_turns.limited(user, PLENTY)
    lease = people_and_turns.started_turn(user)
    sent = people_and_turns.opened(lease)
    failed = Ending("error", failure=ModelFailed("unreachable", "Down"))
    stored_turns.close(lease, sent.call, failed)
    kinds = LedgerEntry.objects.exclude(kind="reserve").order_by("window__budget__unit")
    assert list(kinds.values_list("kind", "amount")) == [("release", 0), ("settle", 1)]
    reached(lease)
    assert clean()


def test_tokens_of_a_minute_are_held_and_given_back(clock: list[datetime]) -> None:
    user = member()
    lease = people_and_turns.started_turn(user)
    site(padded(lease) + 2_000, unit="tokens", **MINUTE)
    sent = people_and_turns.opened(lease)
    assert reached(lease).waits_for.startswith("tokens ")
    stored_turns.close(lease, sent.call, people_and_turns.complete())
    # What it has used leaves room for less than was asked for, and for too little to be of use.
    reached(lease)
    clock[0] += timedelta(minutes=1)
    people_and_turns.opened(lease)
    assert clean()


def test_an_answer_is_shortened_to_the_minute_but_not_to_nothing(clock: list[datetime]) -> None:
    user = member()
    lease = people_and_turns.started_turn(user)
    long = build_envelope(model=stored_turns.MODEL, max_tokens=9_000, system="Be brief.")
    tokens = people_and_turns.sending(lease, long).estimated_tokens * 125 // 100
    budget = site(2 * (tokens + 6_000), unit="tokens", **MINUTE)
    assert not people_and_turns.opened(lease, long).is_limited
    # 3,000 are left for the answer of the second.
    reached(lease, envelope=long)
    Budget.objects.filter(pk=budget.pk).update(limit=2 * tokens + 9_000 + SHORTEST + 7)
    assert people_and_turns.opened(lease, long).is_limited
    assert ApiCall.objects.latest("pk").max_tokens == SHORTEST + 7
    # A whole minute is less than was asked for: that is what there is.
    clock[0] += timedelta(minutes=1)
    Budget.objects.filter(pk=budget.pk).update(limit=tokens + 2_500)
    people_and_turns.opened(lease, long)
    assert ApiCall.objects.latest("pk").max_tokens == 2_500


def test_what_fits_in_no_minute_is_refused_at_once_and_said_before(clock: list[datetime]) -> None:
    user = member("Research")
    lease = people_and_turns.started_turn(user)
    group("Research", 900, unit="tokens", **MINUTE)
    text = refusal(lease)
    assert text == (
        f"This call may use up to {padded(lease) + 1_024:,} tokens, and the limit of 900 tokens a"
        " minute (from group Research) never allows that. A new or a shorter chat needs less."
    )
    stop = find_limits(user.pk, stored_turns.MODEL).stop
    assert stop is not None
    assert stop.rule.is_rate


def test_tools_run_before_a_call_that_waits_and_not_before_one_that_never_fits(
    clock: list[datetime],
) -> None:
    user = member()
    budget = site(1, unit="requests", **MINUTE)
    lease = people_and_turns.started_turn(user)
    sent = people_and_turns.opened(lease)
    demand_next_call(lease=lease, call_id=sent.call)
    Budget.objects.filter(pk=budget.pk).update(limit=0)
    with pytest.raises(Refused) as refused:
        demand_next_call(lease=lease, call_id=sent.call)
    assert refused.value.code == "budget"


def test_what_no_minute_helps_is_refused_in_a_full_minute_too(clock: list[datetime]) -> None:
    user = member()
    site(1, unit="requests", **MINUTE)
    lease = people_and_turns.started_turn(user)
    play(lease)
    people_and_turns.limited(user, 1)
    assert "monthly budget" in refusal(lease)


def test_a_full_minute_stops_no_page_and_tells_nobody(clock: list[datetime]) -> None:
    user = member()
    site(1, unit="requests", **MINUTE)
    lease = people_and_turns.started_turn(user)
    play(lease)
    limits = find_limits(user.pk, stored_turns.MODEL)
    assert (limits.stop, limits.notices, limits.pill.is_limited) == (None, (), False)
    assert list_notices(user.pk) == ()
    assert not Crossing.objects.exists()
    assert not filter_spending().exists()
    (one,) = list_allowances(user.pk)
    assert (one.period, one.used, one.limit) == ("minute", 1, 1)
    assert not one.is_over
    assert not one.is_near


def test_the_strictest_of_all_minutes_applies_and_names_its_source(clock: list[datetime]) -> None:
    user = member("Research")
    site(3, unit="requests", **MINUTE)
    site(9, unit="requests", kind="pool", **MINUTE)
    group("Research", 2, unit="requests", **MINUTE)
    people_and_turns.limited(user, 1, unit="requests", model="sonnet", **MINUTE)
    lease = people_and_turns.started_turn(user)
    play(lease)
    error = reached(lease)
    assert error.waits_for == "requests 1 sonnet"
    assert "of 1 request a minute (Sonnet, set for this person) is reached" in error.text
    Budget.objects.filter(model="sonnet").update(is_active=False)
    play(lease)
    assert "(from group Research)" in reached(lease).text
    assert MoneyRecord.objects.filter(content__contains='"period":"minute"').count() == 4


def test_turns_a_minute_count_a_turn_once(clock: list[datetime]) -> None:
    user = member()
    site(1, unit="turns", **MINUTE)
    lease = people_and_turns.started_turn(user)
    play(lease)
    play(lease)
    other = people_and_turns.started_turn(user, "Another")
    assert reached(other).waits_for == "turns 1"
    clock[0] += timedelta(minutes=1)
    play(other)
    play(lease)
    assert clean()


def test_a_summary_leaves_nothing_of_the_minute_for_the_reply_that_can_wait(
    clock: list[datetime],
) -> None:
    user = member()
    site(1, unit="requests", **MINUTE)
    lease = people_and_turns.started_turn(user)
    ahead = ReplyAhead(stored_turns.MODEL, 400)
    sending = people_and_turns.sending(lease)
    calls.open_call(lease=lease, sending=replace(sending, ahead=ahead))
    reached(lease)


def test_a_limit_a_minute_is_said_in_words() -> None:
    assert describe_rate_limit("") == ""
    assert describe_rate_limit("tokens 5000") == "5,000 tokens a minute"
    assert describe_rate_limit("requests 1 opus") == "1 request a minute for Opus"
    said = "Not sent: no answer fits in the limit a minute. Your message is kept here."
    assert explain_not_sent("minute") == said
