"""A person's own limit: one more budget of each call, which lifts none and only they change."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import IntegrityError, transaction
from django.urls import reverse
from django.utils import timezone

from conversations.audit.verify import Tally, verify_everything
from conversations.budgets.grants import BudgetError, grant_more, set_exempt, set_limit
from conversations.budgets.import_budgets import COLUMNS, import_budgets
from conversations.budgets.own_limit import OwnLimitRefused, find_own_limit, set_own_limit
from conversations.budgets.status import list_statuses
from conversations.budgets.usage.allowance import list_allowances
from conversations.budgets.usage.days import make_named_span
from conversations.budgets.usage.person import sum_usage
from conversations.library.conversations import delete_conversation
from conversations.library.erase import erase_conversation
from conversations.models import Budget, BudgetWindow, MoneyRecord, Reservation
from conversations.rendering.numbers import dollars
from tests.support import people_and_turns, stored_turns
from tests.support.budget_rows import PLENTY, clean, group, member, play, refusal, site, worst
from tests.web.pages import client_of

pytestmark = pytest.mark.django_db


def test_it_applies_beside_the_allowance_and_lifts_nothing() -> None:
    user = member("Research")
    allowed = group("Research", PLENTY)
    set_own_limit(user=user, text="$40.00")
    own = Budget.objects.get(kind="own")
    assert {one.rule.id: one.limit for one in list_statuses(user.pk)} == {
        allowed.pk: PLENTY, own.pk: 40_000_000
    }  # fmt: skip
    lease = people_and_turns.started_turn(user)
    sent = people_and_turns.opened(lease)
    held = {row.window.budget: row.amount for row in Reservation.objects.all()}
    assert held == dict.fromkeys((allowed, own), worst(lease))
    stored_turns.close(lease, sent.call, people_and_turns.complete())
    # Neither counts what was spent under the other a second time.
    spent = [one.spent for one in list_statuses(user.pk)]
    assert spent[0] == spent[1] > 0
    Budget.objects.filter(pk=allowed.pk).update(limit=1)
    assert "(from group Research)" in refusal(people_and_turns.started_turn(user, "More"))
    assert clean()
    found = {one.table for one in verify_everything(Tally())}
    assert "budgetwindow" not in found


def test_it_stops_the_person_and_is_raised_and_removed_by_them() -> None:
    user = member()
    set_own_limit(user=user, text="0.000001")
    assert "(set by this person)" in refusal(people_and_turns.started_turn(user))
    set_own_limit(user=user, text="5")
    cost = play(people_and_turns.started_turn(user, "More"))
    own = find_own_limit(user.pk)
    assert own is not None
    assert (own.limit, own.spent) == (5_000_000, cost)
    set_own_limit(user=user, text=" ")
    set_own_limit(user=user, text="")
    assert find_own_limit(user.pk) is None
    # Set anew in the same month it counts what was spent under it before.
    set_own_limit(user=user, text="6")
    again = find_own_limit(user.pk)
    assert again is not None
    assert (again.limit, again.spent) == (6_000_000, cost)
    assert BudgetWindow.objects.filter(budget__kind="own").count() == 1
    assert [record.content == "" for record in MoneyRecord.objects.filter(table="budget")] == (
        [False] * 4
    )


@pytest.mark.parametrize("text", ["0", "-1", "twelve", "1" * 17, "12,50"])
def test_what_is_no_amount_is_refused(text: str) -> None:
    user = people_and_turns.person()
    with pytest.raises(OwnLimitRefused, match="amount in dollars"):
        set_own_limit(user=user, text=text)
    assert not Budget.objects.exists()


def test_it_is_not_above_what_the_site_allows() -> None:
    user = people_and_turns.person()
    site(2_000_000)
    site(1, model="opus")
    site(1, period="day")
    with pytest.raises(OwnLimitRefused, match=r"You may spend \$2\.00 a month"):
        set_own_limit(user=user, text="2.01")
    set_own_limit(user=user, text="2")


def test_it_holds_for_the_exempt_and_staff_change_nothing_of_it() -> None:
    user, boss = people_and_turns.person(), people_and_turns.person("boss")
    site(1)
    set_own_limit(user=user, text="0.000001")
    set_exempt(user=user, is_exempt=True, reason="a trial", actor=boss)
    assert [one.rule.kind for one in list_statuses(user.pk)] == ["own"]
    assert "(set by this person)" in refusal(people_and_turns.started_turn(user))
    own = Budget.objects.get(kind="own")
    with pytest.raises(BudgetError, match="Only the person"):
        grant_more(budget=own, amount=1, reason="more")
    line = "user,ada,own,money,month,9,UTC,,yes,,\nuser,ada,own,money,month,,,,no,,\n"
    plan = import_budgets(text=f"{','.join(COLUMNS)}\n{line}", actor=boss)
    assert [one.verb for one in plan.lines] == ["same", "same"]
    set_limit(user=user, kind="per_member", unit="money", period="month", limit=7)
    own.refresh_from_db()
    assert (own.limit, own.is_active) == (1, True)
    for wrong in ({"scope": "site"}, {"user": user, "kind": "pool"}):
        with pytest.raises(IntegrityError), transaction.atomic():
            Budget.objects.create(**{"kind": "own", "limit": 1} | wrong)


def test_the_usage_page_sets_shows_and_removes_it() -> None:
    user = people_and_turns.person()
    client = client_of(user)
    page = client.get(reverse("usage")).content.decode()
    assert "Your own limit" in page
    assert 'name="remove"' not in page
    assert client.post(reverse("own_limit"), {"amount": "12.50"}).status_code == 302
    page = client.get(reverse("usage")).content.decode()
    assert 'value="12.50"' in page
    assert "you have set for yourself" in page
    assert "this person" not in page
    [own] = list_allowances(user.pk)
    assert own.is_own
    assert own.counts_from == Budget.objects.get().created_at
    refused = client.post(reverse("own_limit"), {"amount": "a lot"})
    assert refused.status_code == 400
    assert 'value="a lot"' in refused.content.decode()
    refused = client.post(reverse("own_limit"))
    assert refused.status_code == 400
    assert "could not make sense of this request" in refused.content.decode()
    assert list_allowances(user.pk) == (own,)
    assert client.post(reverse("own_limit"), {"amount": "9", "remove": "1"}).status_code == 302
    assert list_allowances(user.pk) == ()
    client.post(reverse("own_limit"), {"amount": "12.50"})
    assert client.post(reverse("own_limit"), {"amount": ""}).status_code == 302
    assert list_allowances(user.pk) == ()


def test_what_was_spent_before_in_the_month_is_named_as_not_counted() -> None:
    user = people_and_turns.person()
    play(people_and_turns.started_turn(people_and_turns.person("bob")))
    lease = people_and_turns.started_turn(user)
    cost = play(lease)
    set_own_limit(user=user, text="0.30")
    play(people_and_turns.started_turn(user, "More"))
    assert list_allowances(user.pk)[0].spent_before == cost
    page = client_of(user).get(reverse("usage")).content.decode()
    assert f"{dollars(cost)} was spent this month before that and does not count." in page
    # Of what is erased only its day is known, and today is not over.
    people_and_turns.answered(lease)
    total = sum_usage(user, make_named_span("month", timezone.now().date())).total.micros
    conversation = people_and_turns.conversation_of(lease)
    delete_conversation(conversation=conversation)
    later = timezone.now() + timedelta(days=31)
    assert erase_conversation(conversation_id=conversation.pk, now=later)
    assert list_allowances(user.pk)[0].spent_before == 0
    Budget.objects.update(created_at=timezone.now() + timedelta(days=1))
    assert list_allowances(user.pk)[0].spent_before == total


def test_what_counts_from_an_earlier_limit_of_the_month_is_not_named_as_not_counted() -> None:
    user = people_and_turns.person()
    uncounted = play(people_and_turns.started_turn(user))
    set_own_limit(user=user, text="0.30")
    counted = play(people_and_turns.started_turn(user, "More"))
    set_own_limit(user=user, text="")
    uncounted += play(people_and_turns.started_turn(user, "Without any"))
    set_own_limit(user=user, text="0.40")
    (own,) = list_allowances(user.pk)
    assert (own.spent, own.counted_before, own.spent_before) == (counted, counted, uncounted)
    page = client_of(user).get(reverse("usage")).content.decode()
    assert f"{dollars(uncounted)} was spent this month before that and does not count." in page
    assert f"{dollars(counted)} was spent under an earlier limit this month and counts." in page


def test_staff_see_it_and_cannot_change_it() -> None:
    user = people_and_turns.person()
    boss = people_and_turns.person("boss", is_staff=True, is_superuser=True)
    set_own_limit(user=user, text="12.50")
    own, client = Budget.objects.get(), client_of(boss)
    page = client.get(reverse("admin:conversations_user_change", args=[user.pk]))
    assert "set by this person" in page.content.decode()
    address = reverse("admin:conversations_budget_change", args=[own.pk])
    assert "set by the person" in client.get(address).content.decode()
    grant = reverse("admin:budget_grant", args=[own.pk])
    assert grant not in page.content.decode() + client.get(address).content.decode()
    client.post(address, {"limit": "99"})
    own.refresh_from_db()
    assert own.limit == 12_500_000
    form = {
        "scope": "user", "user": user.pk, "kind": "own", "unit": "money", "period": "day",
        "time_zone": "UTC", "limit": "1", "soft_percents": "50", "is_active": "on",
    }  # fmt: skip
    added = client.post(reverse("admin:conversations_budget_add"), form)
    assert "Only the person sets this" in added.content.decode()
