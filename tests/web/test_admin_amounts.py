"""Amounts in the admin: limits are entered as people write them, and held is not spent."""

from __future__ import annotations

import re
from uuid import uuid4

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse

from conversations.budgets.current_use import compute_current_use
from conversations.budgets.grants import grant_more
from conversations.models import (
    ApiCall,
    Budget,
    BudgetWindow,
    Grant,
    LedgerEntry,
    Reservation,
    TurnCap,
    User,
)
from conversations.models.periods import format_moment
from conversations.rendering.numbers import dollars
from tests.support import budget_rows, people_and_turns
from tests.support.stored_turns import played
from tests.web.test_admin_budgets import (
    MILLION,
    change,
    correct_page,
    grant_page,
    root,
    send,
    words,
)
from tests.web.test_admin_people import client_of, url
from tests.web.test_admin_review import listed, staff

__all__ = ("root",)
pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("unit", "given", "stored", "shown"),
    [
        ("money", "60", 60 * MILLION, "60.00"),
        ("money", "$1,250.000001", 1_250_000_001, "1250.000001"),
        ("tokens", "500,000", 500_000, "500000"),
        ("turns", "20", 20, "20"),
    ],
)
def test_a_limit_is_written_as_in_grants_and_files_and_shown_so_again(
    unit: str, given: str, stored: int, shown: str, root: Client
) -> None:
    posted = {
        "scope": "site", "kind": "pool", "unit": unit, "period": "day", "time_zone": "UTC",
        "limit": given, "soft_percents": "50", "is_active": "on",
    }  # fmt: skip
    assert root.post(reverse("admin:conversations_budget_add"), posted).status_code == 302
    budget = Budget.objects.get()
    assert budget.limit == stored
    assert f'name="limit" value="{shown}"' in root.get(change(budget)).content.decode()
    assert root.post(change(budget), posted | {"limit": shown}).status_code == 302
    budget.refresh_from_db()
    assert budget.limit == stored
    assert LogEntry.objects.latest("pk").get_change_message() == "No fields changed."
    look = words(staff("bob").get(change(budget)))
    assert dollars(stored) in look if unit == "money" else f"{stored:,}" in look
    assert str(stored) not in look or stored < 1_000


@pytest.mark.parametrize(
    ("unit", "given", "told"),
    [
        ("money", "12,50", "commas stand between thousands alone"),
        ("money", "0,125", "commas stand between thousands alone"),
        ("tokens", "00,500", "no whole number of tokens"),
        ("money", "0.0000001", "no amount that micro-dollars can say"),
        ("money", "-1", "It is from $0.00 to $1,000,000,000.00."),
        ("money", "1000000001", "It is from $0.00 to $1,000,000,000.00."),
        ("money", "sixty", "no amount of dollars"),
        ("tokens", "2.5", "no whole number of tokens"),
        ("turns", "$20", "no whole number of turns"),
        ("money", "", "This field is required."),
    ],
)
def test_a_limit_that_is_none_is_refused_in_words(
    unit: str, given: str, told: str, root: Client
) -> None:
    budget = Budget.objects.create(scope="site", kind="pool", unit=unit, period="day", limit=7)
    posted = {
        "scope": "site", "kind": "pool", "unit": unit, "period": "day", "time_zone": "UTC",
        "limit": given, "soft_percents": "50", "is_active": "on",
    }  # fmt: skip
    assert told in words(root.post(change(budget), posted))
    budget.refresh_from_db()
    assert budget.limit == 7


def test_what_a_member_holds_is_not_shown_as_spent() -> None:
    user = budget_rows.member("Research")
    budget = budget_rows.group("Research", 9 * MILLION)
    lease = people_and_turns.started_turn(user)
    spent = budget_rows.play(lease)
    window = BudgetWindow.objects.get()
    BudgetWindow.objects.update(held=MILLION, limit=9 * MILLION)
    one = compute_current_use([budget])[budget.pk]
    assert (one.spent, one.held, one.total) == (spent, MILLION, spent + MILLION)
    assert Reservation.objects.filter(window=window, is_open=True).count() == 0


def test_who_may_see_people_but_no_budgets_sees_none_on_their_page() -> None:
    ada = people_and_turns.person()
    grant_more(budget=people_and_turns.limited(ada, 5), amount=7, reason="The report is due")
    some = staff("bob")
    assert "The report is due" in words(some.get(url(ada)))
    cid = User.objects.create(username="cid", is_staff=True)
    cid.user_permissions.add(Permission.objects.get(codename="view_user"))
    page = words(client_of(cid).get(url(ada)))
    assert "ada" in page
    assert "The report is due" not in page
    assert "Budgets that count" not in page


def test_a_window_begins_and_ends_in_the_time_zone_of_its_budget(root: Client) -> None:
    budget_rows.site(9 * MILLION, kind="pool", period="month", time_zone="Europe/Vienna")
    budget_rows.play(people_and_turns.started_turn(people_and_turns.person()))
    window = BudgetWindow.objects.get()
    page = words(listed(root, BudgetWindow))
    for at in (window.starts_at, window.ends_at):
        assert at is not None
        assert format_moment(at, "Europe/Vienna") in page
    assert " at 00:00 (Europe/Vienna)" in page
    assert str(window).endswith("-01 00:00")


def test_a_grant_on_a_persons_own_budget_is_not_said_to_be_for_all() -> None:
    ada = people_and_turns.person()
    grant_more(budget=people_and_turns.limited(ada, 5), amount=7, reason="because")
    page = words(client_of(ada).get(reverse("usage")))
    assert "of it granted on top" in page
    assert "granted to all" not in page


def test_a_small_limit_is_not_shown_as_nothing() -> None:
    assert str(Budget(limit=1_500, unit="money", period="day")) == "$0.0015 a day"
    assert str(Budget(limit=1_250_500_000, unit="money", period="day")) == "$1,250.50 a day"


@pytest.mark.parametrize("powers", [(), ("change_user", "add_turncap")])
def test_who_may_only_view_a_cap_reads_its_money_in_dollars(powers: tuple[str, ...]) -> None:
    ada = people_and_turns.person()
    cap = TurnCap.objects.create(user=ada, micros=2_500_000)
    looking = staff("bob", *powers)
    for page in (change(cap), url(ada)):
        html = looking.get(page).content.decode()
        assert "$2.50" in words(html)
        assert not re.search("2500000|2,500,000", html)
    assert (
        'value="2.50"'
        in staff("cid", "change_user", "change_turncap").get(url(ada)).content.decode()
    )
    bea = people_and_turns.person("bea")
    has_field = 'name="turn_cap-0-micros"' in looking.get(url(bea)).content.decode()
    assert has_field == bool(powers)


def test_grants_are_found_by_the_person_they_are_for(root: Client) -> None:
    ada, bob = people_and_turns.person(), budget_rows.member("Research", name="bob")
    people_and_turns.limited(people_and_turns.person("cid"), 5)
    grant_more(budget=people_and_turns.limited(ada, 5), amount=7, reason="an own budget")
    grant_more(budget=budget_rows.group("Research", 5), amount=7, reason="one member", user=bob)
    page = listed(root, Grant)
    keys = {one.username: one.pk for one in User.objects.all()}
    assert [name for name in ("ada", "bob", "cid") if f"?user={keys[name]}" in page] == [
        "ada",
        "bob",
    ]
    for name, found in (("ada", "an own budget"), ("bob", "one member")):
        page = listed(root, Grant, f"?user={keys[name]}")
        assert [why for why in ("an own budget", "one member") if why in page] == [found]
    assert "an own budget" not in listed(root, Grant, "?user=x")


def test_a_form_gone_back_to_says_that_it_was_used(root: Client) -> None:
    played("ada")
    budget = budget_rows.site(5 * MILLION)
    bob = people_and_turns.person("bob")
    window = BudgetWindow.objects.get()
    call = ApiCall.objects.filter(purpose="reply").latest("pk")
    grant = {"user": "ada", "amount": "7", "until": "2999-01-01"}
    pages: list[tuple[str, dict[str, str], dict[str, str]]] = [
        (grant_page(budget), grant, {"user": bob.username}),
        (grant_page(budget), grant, {"amount": "9"}),
        (grant_page(budget), grant, {"until": ""}),
        (correct_page(window), {"amount": "3"}, {"amount": "4"}),
        (reverse("admin:apicall_correct", args=[call.pk]), {"amount": "5"}, {"amount": "6"}),
    ]
    for page, given, other in pages:
        key = str(uuid4())
        for _ in range(2):
            assert send(root, page, form=key, **given).status_code == 302
        refused = send(root, page, form=key, **given | other)
        assert (refused.status_code, "This form was used already" in words(refused)) == (400, True)
    rows = Grant.objects.values_list("user__username", "amount")
    assert list(rows) == [("ada", 7 * MILLION)] * 3
    entries = LedgerEntry.objects.filter(kind="adjust", window=window).order_by("pk")
    assert list(entries.values_list("amount", flat=True)) == [3 * MILLION, 5 * MILLION]
