"""The Spending page: near the limit first, as admission counts; limits set in place; all as CSV."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone, translation

from conversations.budgets.bulk_changes import (
    BulkChange,
    BulkKind,
    perform_change,
    plan_change,
)
from conversations.budgets.grants import BudgetError, grant_more
from conversations.budgets.import_budgets import import_budgets
from conversations.budgets.notices import list_notices
from conversations.budgets.spending import (
    filter_people,
    filter_spending,
    forecast_spending,
    read_spending_row,
)
from conversations.budgets.status import list_statuses
from conversations.models import Budget, BudgetWindow, CostCentre, Crossing, MoneyRecord, User
from conversations.models.periods import compute_bounds, load_zone
from tests.support import people_and_turns
from tests.web.test_admin_review import staff, superuser

pytestmark = pytest.mark.django_db
PAGE = "admin:spending"
NEEDED = ("view_budget", "view_budgetwindow", "view_user")


@pytest.fixture
def root() -> Client:
    return superuser()


def used(budget: Budget, spent: int, user: User | None = None, **more: int) -> BudgetWindow:
    starts, ends = compute_bounds(budget.period, budget.time_zone, timezone.now())
    values = {"limit": budget.limit, "ends_at": ends, "spent": spent} | more
    # A limit of a person who has spent something has its window at once.
    window, _ = BudgetWindow.objects.update_or_create(
        budget=budget, user=user, starts_at=starts, defaults=values
    )
    return window


def person(name: str, limit: int, spent: int) -> User:
    user = people_and_turns.person(name)
    used(people_and_turns.limited(user, limit), spent, user)
    return user


def shares(**where: Any) -> list[tuple[str, int, int]]:
    now = timezone.now()
    rows = [read_spending_row(window, now) for window in filter_spending(now=now, **where)]
    return [(str(row.user or row.budget.group or "site"), row.spent, row.limit) for row in rows]


def test_the_nearest_to_its_limit_comes_first_and_a_budget_of_nothing_before_all() -> None:
    group = Group.objects.create(name="Research")
    pool = Budget.objects.create(scope="group", group=group, kind="pool", limit=100)
    used(pool, 50)
    used(Budget.objects.create(scope="site", kind="pool", limit=1_000), 200)
    person("ada", 100, 90)
    person("bea", 1_000, 100)
    person("cid", 0, 0)
    names = ["cid", "ada", "Research", "site", "bea"]
    assert [name for name, _, _ in shares()] == names
    assert [name for name, _, _ in shares(scope="user")] == ["cid", "ada", "bea"]
    assert shares(scope="group") == shares(name="sear") == [("Research", 50, 100)]
    assert shares(scope="site") == [("site", 200, 1_000)]
    assert shares(name="bE") == [("bea", 100, 1_000)]


def test_people_are_found_by_group_and_cost_centre_and_budgets_by_model() -> None:
    groups = [Group.objects.create(name=name) for name in ("Research", "Research 2", "Sales")]
    centre = CostCentre.objects.create(code="4711", name="Selling")
    ada, bea = person("ada", 100, 90), person("bea", 100, 80)
    ada.groups.set(groups[:2])
    bea.groups.add(groups[1])
    User.objects.filter(pk=bea.pk).update(cost_centre=centre)
    pool = Budget.objects.create(scope="group", group=groups[0], kind="pool", limit=100)
    used(pool, 10)
    used(people_and_turns.limited(ada, 100, model="opus"), 1, ada)

    def names(**where: str) -> list[str]:
        return [name for name, _, _ in shares(**where)]

    assert names(group="research") == ["ada", "Research", "ada"], "the group of this very name"
    assert sorted(names(group="search")) == ["Research", "ada", "ada", "bea"]
    assert names(group="sales") == names(centre="47") == []
    assert names(centre="4711") == names(centre="ELLI") == ["bea"]
    assert shares(model="op") == [("ada", 1, 100)]
    assert [each.username for each in filter_people(group="research")] == ["ada"]
    assert [each.username for each in filter_people(centre="selling")] == ["bea"]


def test_a_day_ends_where_the_zone_of_the_budget_says() -> None:
    """With Kiritimati 14 hours before UTC and Pago Pago 11 behind it."""
    user, now = people_and_turns.person(), datetime(2026, 11, 20, 12, tzinfo=UTC)
    for zone in ("Pacific/Kiritimati", "Pacific/Pago_Pago"):
        budget = people_and_turns.limited(user, 100, "day", time_zone=zone, model=zone[8:12])
        for spent, hours in ((3, 72), (2, 48), (1, 24)):
            starts, ends = compute_bounds("day", zone, now - timedelta(hours=hours))
            BudgetWindow.objects.create(
                budget=budget, user=user, spent=spent, limit=50, starts_at=starts, ends_at=ends
            )

    def begun(day: date) -> list[date]:
        rows = list(filter_spending(day=day, now=now))
        assert {read_spending_row(row, now).limit for row in rows} <= {50}, "the limit of then"
        return [row.starts_at.astimezone(load_zone(row.budget.time_zone)).date() for row in rows]

    for day, size in ((18, 2), (19, 2), (20, 1)):
        assert begun(date(2026, 11, day)) == [date(2026, 11, day)] * size
    assert begun(date(2026, 11, 21)) == begun(date(9999, 12, 31)) == []


@pytest.mark.parametrize("limits", [(600, 700), (700, 700)])
def test_a_row_says_what_admission_counts(limits: tuple[int, int]) -> None:
    user, other = people_and_turns.person("ada"), people_and_turns.person("bea")
    groups = [Group.objects.create(name=name) for name in ("one", "two")]
    for group in groups:
        user.groups.add(group)
    site = Budget.objects.create(scope="site", limit=500)
    small, large = (
        Budget.objects.create(scope="group", group=group, limit=limit)
        for group, limit in zip(groups, limits, strict=True)
    )
    for at, budget in enumerate((site, small, large), 1):
        used(budget, at, user, overrun=10, held=100)
    used(site, 7, other)
    (status,) = list_statuses(user.pk)
    assert (status.spent, status.held, status.limit) == (36, 300, 700)
    assert shares() == [("ada", 36, 700), ("bea", 7, 500)]
    own = people_and_turns.limited(user, 400)
    used(own, 4, user)
    (status,) = list_statuses(user.pk)
    assert shares(name="ada") == [("ada", status.spent, status.limit)] == [("ada", 40, 400)]


def test_a_forecast_goes_on_as_since_the_beginning_and_is_not_made_too_early() -> None:
    begins = datetime(2026, 11, 1, tzinfo=UTC)
    ends = begins + timedelta(days=30)
    assert forecast_spending(10, begins, ends, begins + timedelta(days=10)) == 30
    assert forecast_spending(10, begins, ends, ends) == 10
    assert forecast_spending(10, begins, ends, begins + timedelta(days=1)) is None
    assert forecast_spending(10, begins, None, ends) is None


def test_five_dollars_a_month_are_one_field_and_on_record(root: Client) -> None:
    ada = people_and_turns.person("ada")
    page = reverse(PAGE)
    assert page in root.get(reverse("admin:index")).content.decode()
    response = root.post(page, {"user": ada.pk, "amount": "5"}, follow=True)
    assert "$5.00 a month for ada, from the next call on." in response.content.decode()
    assert 'value="5.00"' in response.content.decode() or 'value="5"' in response.content.decode()
    budget = Budget.objects.get()
    assert (budget.user, budget.limit, budget.period) == (ada, 5_000_000, "month")
    assert LogEntry.objects.get().object_id == str(ada.pk)
    more = {"amount": "", "reason": " She left the project. "}
    response = root.post(page, {"user": ada.pk} | more, follow=True)
    assert "No monthly limit for ada alone any more." in response.content.decode()
    reasons = MoneyRecord.objects.filter(table="budget").order_by("link").values_list("reason")
    assert [*reasons] == [("",), ("She left the project.",)]
    assert not Budget.objects.filter(is_active=True).exists()


@pytest.mark.parametrize(
    ("amount", "said"),
    [("five", "Not set for ada: "), ("-5", "Not set for ada: "), ("", "There is no such budget")],
)
def test_an_amount_that_is_none_is_refused_with_words(amount: str, said: str, root: Client) -> None:
    ada = people_and_turns.person("ada")
    response = root.post(reverse(PAGE), {"user": ada.pk, "amount": amount}, follow=True)
    assert said in response.content.decode()
    assert not Budget.objects.exists()


@pytest.mark.parametrize(
    ("language", "refused", "told", "lacking", "verb"),
    [
        ("de", "Nicht gesetzt für ada: ", "$5,00 im Monat für ada", "Ein Grund", "anlegen"),
        ("fr", "Non défini pour ada", "$5,00 par mois pour ada", "une raison", "créer"),
        ("es", "No se ha fijado para ada: ", "al mes para ada", "un motivo", "crear"),
    ],
)
def test_staff_read_their_language_and_the_record_stays_in_one(
    language: str, refused: str, told: str, lacking: str, verb: str, root: Client
) -> None:
    ada = people_and_turns.person("ada")
    root.defaults["HTTP_ACCEPT_LANGUAGE"] = language
    for amount, said in (("five", refused), ("5", told)):
        response = root.post(reverse(PAGE), {"user": ada.pk, "amount": amount}, follow=True)
        assert said in response.content.decode()
    sheet = "scope,subject,kind,unit,period,limit\nsite,,pool,money,day,1\n"
    with translation.override(language):
        with pytest.raises(BudgetError, match=lacking):
            grant_more(budget=Budget.objects.get(), amount=1, reason=" ")
        seen = import_budgets(text=sheet, actor=ada)
        assert import_budgets(text=sheet, actor=ada, expected=seen.digest).is_kept
        assert [line.label for line in seen.lines] == [verb]
    limit, imported = LogEntry.objects.order_by("pk")
    assert limit.change_message == "$5.00 a month for ada, from the next call on."
    history = root.get(reverse("admin:conversations_user_history", args=[ada.pk]))
    assert told in history.content.decode()
    assert imported.change_message.startswith("From a CSV file: $1.00 (told at ")


def test_nobody_sets_a_limit_without_the_right_to_change_budgets() -> None:
    client, ada = staff("viewer", *NEEDED), people_and_turns.person("ada")
    assert 'name="amount"' not in client.get(reverse(PAGE)).content.decode()
    assert client.post(reverse(PAGE), {"user": ada.pk, "amount": "5"}).status_code == 403
    setting = staff("setting", *NEEDED, "add_budget", "change_budget")
    for odd in ("x", "99999", "9" * 30):
        assert setting.post(reverse(PAGE), {"user": odd, "amount": "5"}).status_code == 404


def test_the_file_has_every_row_and_quotes_formulas(root: Client) -> None:
    person("=ada", 100_000_000, 90_000_000)
    used(Budget.objects.create(scope="site", kind="pool", unit="tokens", limit=1_000), 200)
    content: Any = root.get(reverse("admin:spending_csv"))
    lines = b"".join(content.streaming_content).decode("utf-8-sig").splitlines()
    assert len(lines) == 3
    assert any("'=ada" in line and "90.000000" in line for line in lines)
    assert any(line.startswith(",,site,tokens,month,") for line in lines)
    for query, size in (("scope=site", 2), ("name=da", 2), ("day=2001-01-01", 1), ("day=x", 3)):
        content = root.get(f"{reverse('admin:spending_csv')}?{query}")
        assert len(b"".join(content.streaming_content).splitlines()) == size, query


def test_the_page_asks_the_same_number_of_times_for_one_row_and_for_many(root: Client) -> None:
    more = "&group=research&centre=1&model=o&day=2026-11-01"

    def count(more: str = "") -> int:
        with CaptureQueriesContext(
            connection,
        ) as asked:
            assert root.get(reverse(PAGE) + "?p=2&q=9&scope=x" + more).status_code == 200
        return len(asked)

    Group.objects.create(name="Research").user_set.add(person("ada", 100, 90))
    count()
    few = count(), count(more)
    for at in range(30):
        person(f"user{at}", 100 + at, 50)
    assert (count(), count(more)) == few
    text = root.get(reverse(PAGE)).content.decode()
    assert "?p=2" in text
    assert "?q=2" in text


def test_who_is_above_a_new_limit_is_on_the_page_and_told_of_before_the_next_call() -> None:
    group = Group.objects.create(name="Research")
    ada, bea, cid = (people_and_turns.person(name) for name in ("ada", "bea", "cid"))
    for one in (ada, bea):
        one.groups.add(group)
    everybody = Budget.objects.create(scope="site", limit=1_000)
    for one, spent in ((ada, 90), (bea, 10), (cid, 70)):
        used(everybody, spent, one)
    own = Budget.objects.create(user=ada, limit=50)
    assert shares() == [("ada", 90, 50), ("cid", 70, 1_000), ("bea", 10, 1_000)]
    passed = Crossing.objects.filter(window__budget=own).values_list("percent", flat=True)
    assert sorted(passed) == [50, 80, 95, 100]
    assert [one.is_over for one in list_notices(ada.pk)] == [True]
    # The same where a group gets one, and where one's own ends.
    Budget.objects.create(scope="group", group=group, limit=40)
    own.is_active = False
    own.save()
    assert shares() == [("ada", 90, 40), ("bea", 10, 40), ("cid", 70, 1_000)]
    # And for who leaves a group or comes to one.
    ada.groups.clear()
    group.user_set.add(cid)
    assert shares() == [("cid", 70, 40), ("bea", 10, 40), ("ada", 90, 1_000)]
    # A window without use is made by the first call, and none of another calendar.
    Budget.objects.create(user=people_and_turns.person("dan"), limit=5)
    Budget.objects.create(user=cid, limit=60, time_zone="Pacific/Kiritimati")
    assert BudgetWindow.objects.count() == 7


def test_a_limit_that_many_get_at_once_is_told_of_too(root: Client) -> None:
    everybody = Budget.objects.create(scope="site", limit=1_000_000_000)
    people = [people_and_turns.person(name) for name in ("ada", "bea")]
    for one in people:
        used(everybody, 9_000_000, one)
    change = BulkChange(BulkKind.LIMIT, 5_000_000, None, "less", uuid4())
    chosen = User.objects.filter(pk__in=[one.pk for one in people])
    boss = User.objects.get(is_superuser=True)
    digest = plan_change(chosen, change).digest
    perform_change(people=chosen, change=change, digest=digest, actor=boss)
    assert shares() == [("ada", 9_000_000, 5_000_000), ("bea", 9_000_000, 5_000_000)]
    assert Crossing.objects.filter(percent=100).count() == 2


def test_a_day_that_is_over_is_as_it_was_whatever_was_switched_off_since() -> None:
    now, day = datetime(2026, 11, 20, 12, tzinfo=UTC), date(2026, 11, 18)
    user = people_and_turns.person("ada")
    pool = Budget.objects.create(scope="site", kind="pool", limit=100, period="day")
    everybody = Budget.objects.create(scope="site", limit=100, period="day")
    own = people_and_turns.limited(user, 70, "day")
    starts, ends = compute_bounds("day", "UTC", now - timedelta(days=2))
    for budget, spent, of in ((pool, 90, None), (everybody, 20, user), (own, 30, user)):
        BudgetWindow.objects.create(
            budget=budget, user=of, spent=spent, limit=budget.limit, starts_at=starts, ends_at=ends
        )
    seen = [("site", 90, 100), ("ada", 50, 70)]

    def shown() -> list[tuple[str, int, int]]:
        rows = [read_spending_row(row, now) for row in filter_spending(day=day, now=now)]
        return [(str(row.user or "site"), row.spent, row.limit) for row in rows]

    assert shown() == seen
    Budget.objects.update(is_active=False)
    assert shown() == seen
