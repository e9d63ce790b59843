"""Budgets in the admin: their state, manual grants and corrections, permissions."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from conversations.budgets.grants import grant_more
from conversations.budgets.status import list_statuses
from conversations.models import (
    ApiCall,
    Budget,
    BudgetWindow,
    Grant,
    LedgerEntry,
    TurnCap,
    User,
)
from conversations.rendering.numbers import dollars
from tests.support import budget_rows, people_and_turns, stored_turns
from tests.support.stored_turns import played
from tests.web.test_admin_people import client_of, form, url
from tests.web.test_admin_review import listed, staff

pytestmark = pytest.mark.django_db
MILLION = 1_000_000


@pytest.fixture
def root() -> Client:
    return client_of(User.objects.create(username="root", is_staff=True, is_superuser=True))


def words(response: Any) -> str:
    html = response if isinstance(response, str) else response.content.decode()
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html))


def change(row: Any) -> str:
    return reverse(f"admin:conversations_{row._meta.model_name}_change", args=[row.pk])


def send(client: Client, address: str, *, confirm: bool = True, **values: Any) -> Any:
    """Post a form of a manual change."""
    posted = {"form": str(uuid4()), "reason": "they asked"} | values
    return client.post(address, posted | ({"confirm": "1"} if confirm else {}))


def grant_page(budget: Budget, query: str = "") -> str:
    return reverse("admin:budget_grant", args=[budget.pk]) + query


def correct_page(window: BudgetWindow) -> str:
    return reverse("admin:window_correct", args=[window.pk])


def test_the_list_shows_how_each_budget_stands(root: Client) -> None:
    place = played("ada")
    budget_rows.site(900 * MILLION, kind="pool", period="day", time_zone="Europe/Vienna")
    window = BudgetWindow.objects.get(user=place.user)
    BudgetWindow.objects.filter(pk=window.pk).update(held=2 * MILLION)
    page = words(listed(root, Budget))
    assert f"{dollars(window.spent)} spent, $2.00 held of $50.00" in page
    assert "$0.00 spent of $900.00" in page
    assert "at 00:00 (Europe/Vienna)" in page
    html = listed(root, Budget)
    assert html.count('class="budget-spent"') == 2
    assert "style=" not in html


def test_the_one_who_used_most_stands_for_all_members(root: Client) -> None:
    spent = []
    for name in ("ada", "bea"):
        user = budget_rows.member("Research", name=name)
        if not spent:
            budget_rows.group("Research", 9 * MILLION)
        lease = people_and_turns.started_turn(user)
        spent.append(sum(budget_rows.play(lease) for _ in range(1 + len(spent))))
    budget = Budget.objects.get()
    page = words(listed(root, Budget))
    assert f"{dollars(max(spent))} spent of $9.00" in page
    assert f"by the one of 2 who used most; {dollars(sum(spent))} in all" in page
    bea = User.objects.get(username="bea")
    grant_more(budget=budget, amount=MILLION, reason="because", user=bea)
    grant_more(budget=budget, amount=3, reason="no", user=User.objects.get(username="ada"))
    assert f"{dollars(max(spent))} spent of $10.00" in words(listed(root, Budget))
    detail = words(root.get(change(budget)))
    assert f"{dollars(max(spent))} spent of $10.00" in detail
    assert f"{dollars(min(spent))} spent of $9.00" in detail
    root.defaults["HTTP_ACCEPT_LANGUAGE"] = "de"
    assert "von der Person mit dem höchsten Verbrauch unter 2; zusammen" in listed(root, Budget)
    assert detail.index("bea") < detail.index("ada")


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("", 3), ("?period__exact=day", 1), ("?scope__exact=site", 1), ("?unit__exact=turns", 1),
        ("?user={user}", 1), ("?group={group}", 1), ("?group=x", 0), ("?q=ada", 1), ("?q=Resea", 1),
    ],
)  # fmt: skip
def test_the_list_is_filtered_by_period_scope_and_subject(
    query: str, count: int, root: Client
) -> None:
    ada = budget_rows.member("Research")
    budget_rows.site(5, period="day")
    budget_rows.group("Research", 5, unit="turns")
    people_and_turns.limited(ada, 5)
    facts = {"user": ada.pk, "group": Group.objects.latest("pk").pk}
    page = listed(root, Budget, query.format(**facts))
    assert page.count('class="budget-track"') == count


def test_lists_cost_the_same_however_many_budgets_there_are(root: Client) -> None:
    budget_rows.site(500 * MILLION, kind="pool")
    counts = []
    for name in ("ada", "bea", "cleo"):
        place = played(name)
        budget = Budget.objects.get(user=place.user)
        for actor in (place.user, None):
            grant_more(budget=budget, amount=5, reason="because", actor=actor)
        found = []
        for kind in (Budget, Grant, BudgetWindow, LedgerEntry):
            with CaptureQueriesContext(connection) as queries:
                listed(root, kind)
            found.append(len(queries))
        with CaptureQueriesContext(connection) as queries:
            root.get(change(Budget.objects.get(scope="site")))
        counts.append([*found, len(queries)])
    assert counts[1] == counts[2]
    assert max(counts[2]) <= 20


def test_a_budgets_page_links_its_windows_and_their_ledger(root: Client) -> None:
    place = played("ada")
    budget, window = Budget.objects.get(), BudgetWindow.objects.get()
    page = root.get(change(budget)).content.decode()
    assert correct_page(window) in page
    assert grant_page(budget) in page
    ledger = re.search(r'href="([^"]*ledgerentry/\?window__id__exact=\d+)"', page)
    assert ledger is not None
    assert root.get(ledger[1]).status_code == 200
    assert words(root.get(ledger[1])).count(" Reserve ") >= 3
    of_budget = reverse("admin:conversations_ledgerentry_changelist") + f"?budget={budget.pk}"
    assert of_budget in page
    assert root.get(of_budget).content.decode().count('class="field-kind"') == 6
    assert root.get(f"{of_budget[:-1]}x").content.decode().count('class="field-kind"') == 0
    assert place.user.username in page


def test_a_persons_page_says_which_budgets_count_and_where_they_are_from(root: Client) -> None:
    ada = budget_rows.member("Research")
    budget_rows.site(900 * MILLION, kind="pool", period="day")
    budget_rows.group("Research", 7 * MILLION, time_zone="Europe/Vienna")
    cost = budget_rows.play(people_and_turns.started_turn(ada))
    page = words(root.get(url(ada)))
    for shown in (
        "from group Research", "shared by everybody", f"{dollars(cost)} spent of $7.00",
        "(Europe/Vienna)", "Not exempt.", "Model calls 40 the same for everybody",
        "Money no cap the same for everybody",
    ):  # fmt: skip
        assert shown in page
    people_and_turns.limited(ada, 3 * MILLION, time_zone="Europe/Vienna")
    TurnCap.objects.create(group=Group.objects.latest("pk"), rounds=50)
    TurnCap.objects.create(user=ada, micros=2 * MILLION)
    page = words(root.get(url(ada)))
    for shown in (
        "set for this person", f"{dollars(cost)} spent of $3.00",
        "Model calls 50 from group Research", "Money $2.00 set for this person",
    ):  # fmt: skip
        assert shown in page


def test_a_grant_is_previewed_given_once_and_seen(root: Client) -> None:
    place = played("ada")
    budget = Budget.objects.get()
    page = grant_page(budget)
    assert root.get(page).status_code == 200
    day = timezone.now().date() + timedelta(days=3)
    values = {"amount": "2.50", "until": f"{day}", "form": str(uuid4())}
    preview = send(root, page, confirm=False, **values)
    assert "$2.50 more for ada, until" in words(preview)
    assert not Grant.objects.exists()
    for _ in range(2):
        assert send(root, page, **values).status_code == 302
    [grant] = Grant.objects.all()
    assert (grant.amount, grant.reason, grant.actor.username) == (2_500_000, "they asked", "root")
    ends = datetime.combine(day + timedelta(days=1), datetime.min.time(), UTC)
    assert grant.expires_at == ends
    [standing] = list_statuses(place.user.pk)
    assert standing.limit == 52_500_000
    for address in (url(place.user), change(budget)):
        shown = words(root.get(address))
        assert "of $52.50" in shown
        assert "$2.50 more a month" in shown
        assert "they asked root" in shown
    assert "they asked" in listed(root, Grant)
    assert root.get(reverse("admin:conversations_grant_add")).status_code == 403


def test_one_person_is_granted_more_of_what_all_have(root: Client) -> None:
    ada, bea = budget_rows.member("Research"), budget_rows.member("Research", name="bea")
    budget = budget_rows.group("Research", 7 * MILLION)
    page = grant_page(budget, f"?user={ada.pk}")
    assert 'value="ada"' in root.get(page).content.decode()
    answer = send(root, page, amount="$1", user="ada")
    assert answer["Location"] == url(ada)
    assert [one.limit for one in list_statuses(ada.pk)] == [8 * MILLION]
    assert [one.limit for one in list_statuses(bea.pk)] == [7 * MILLION]
    assert "There is no user nobody." in words(send(root, page, amount="1", user="nobody"))
    pool = budget_rows.group("Research", 7 * MILLION, kind="pool")
    assert 'name="user"' not in root.get(grant_page(pool)).content.decode()


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"amount": "nothing"}, "is no amount of dollars"), ({"amount": "0"}, "more than nothing"),
        ({"amount": "-1"}, "more than nothing"), ({"amount": "NaN"}, "micro-dollars can say"),
        ({"amount": "1e30"}, "no more than a budget can hold"), ({"amount": ""}, "required"),
        ({"amount": "1", "reason": " "}, "required"),
        ({"amount": "1", "reason": "x" * 201}, "at most 200"),
        ({"amount": "1", "until": "2020-01-01"}, "later than now"),
        ({"amount": "1", "until": "9999-12-31"}, "No later than the year"),
        ({"amount": "1", "form": "x"}, "valid UUID"),
    ],
)  # fmt: skip
def test_a_grant_that_cannot_be_is_refused(values: dict[str, str], said: str, root: Client) -> None:
    budget = people_and_turns.limited(people_and_turns.person(), 5)
    for confirm in (False, True):
        response = send(root, grant_page(budget), confirm=confirm, **values)
        assert response.status_code == 400
        assert said in words(response) or values.get("form") == "x"
    assert not Grant.objects.exists()


def test_a_correction_is_an_entry_with_a_reason_and_made_once(root: Client) -> None:
    place = played("ada")
    window = BudgetWindow.objects.get()
    values = {"amount": "-0.000005", "form": str(uuid4())}
    preview = send(root, correct_page(window), confirm=False, **values)
    assert f"Spent: {dollars(window.spent)} → {dollars(window.spent - 5)}." in words(preview)
    for _ in range(2):
        assert send(root, correct_page(window), **values).status_code == 302
    [entry] = LedgerEntry.objects.filter(kind="adjust")
    assert (entry.amount, entry.reason, entry.actor.username) == (-5, "they asked", "root")
    window.refresh_from_db()
    assert list_statuses(place.user.pk)[0].spent == window.spent
    assert budget_rows.clean()
    for address in (url(place.user), change(window), change(Budget.objects.get())):
        assert "they asked root" in words(root.get(address))


def test_a_call_is_corrected_in_every_budget_it_was_booked_to_in_one_step(root: Client) -> None:
    user = people_and_turns.person()
    for period in ("month", "day"):
        people_and_turns.limited(user, 50_000_000, period)
    lease = people_and_turns.started_turn(user)
    call = ApiCall.objects.get(pk=people_and_turns.opened(lease).call)
    stored_turns.close(lease, call.pk, people_and_turns.complete())
    page = reverse("admin:apicall_correct", args=[call.pk])
    assert page in root.get(change(call)).content.decode()
    before = {window.pk: window.spent for window in BudgetWindow.objects.all()}
    values = {"amount": "-0.000005", "form": str(uuid4())}
    assert words(send(root, page, confirm=False, **values)).count("Spent: ") == 2
    for _ in range(2):
        assert send(root, page, **values).status_code == 302
    corrections = LedgerEntry.objects.filter(kind="adjust")
    assert set(corrections.values_list("window", "amount", "reason")) == {
        (key, -5, "they asked") for key in before
    }
    after = {window.pk: window.spent + 5 for window in BudgetWindow.objects.all()}
    assert after == before
    assert budget_rows.clean()
    # One window cannot give back so much: none is corrected.
    assert send(root, page, amount="-1000").status_code == 400
    assert corrections.count() == 2


def test_a_call_that_no_budget_counted_cannot_be_corrected(root: Client) -> None:
    Budget.objects.all().delete()
    user = people_and_turns.person()
    lease = people_and_turns.started_turn(user)
    sent = people_and_turns.opened(lease)
    response = send(root, reverse("admin:apicall_correct", args=[sent.call]), amount="1")
    assert response.status_code == 400
    assert "no budget of money" in words(response)


@pytest.mark.parametrize("amount", ["-1000", "0", "1e12"])
def test_a_correction_never_goes_below_nothing(amount: str, root: Client) -> None:
    played("ada")
    window = BudgetWindow.objects.get()
    response = send(root, correct_page(window), amount=amount)
    assert response.status_code == 400
    assert "cannot be corrected by" in words(response)
    assert not LedgerEntry.objects.filter(kind="adjust").exists()


def test_what_is_changed_once_more_is_not_done_yet(root: Client) -> None:
    budget = people_and_turns.limited(people_and_turns.person(), 5)
    response = send(root, grant_page(budget), amount="1", change="1", confirm=False)
    assert 'value="1"' in response.content.decode()
    assert "This will be done" not in words(response)


def test_who_is_exempt_is_set_with_a_reason_and_on_record(root: Client) -> None:
    ada = budget_rows.member("Research")
    budget_rows.group("Research", 5)
    page = reverse("admin:user_exempt", args=[ada.pk])
    assert f"{page}?to=on" in root.get(url(ada)).content.decode()
    for _ in range(2):
        assert send(root, f"{page}?to=on").status_code == 302
    ada.refresh_from_db()
    assert ada.is_exempt
    assert LogEntry.objects.get().change_message == "Exempt from budgets: they asked"
    assert "nothing is held or refused" in words(root.get(url(ada)))
    send(root, f"{page}?to=off")
    ada.refresh_from_db()
    assert not ada.is_exempt
    # The flag is not a field of the form: without a reason it does not change.
    root.post(url(ada), form(ada, is_exempt="on"))
    ada.refresh_from_db()
    assert not ada.is_exempt


def test_what_is_done_by_hand_needs_its_permission() -> None:
    place = played("ada")
    budget, window = Budget.objects.get(), BudgetWindow.objects.get()
    exempt = reverse("admin:user_exempt", args=[place.user.pk])
    looking = staff("bob")
    for address in (grant_page(budget), correct_page(window), exempt):
        assert looking.get(address).status_code == 403
        assert send(looking, address, amount="1").status_code == 403
    page = looking.get(change(budget)).content.decode()
    assert grant_page(budget) not in page
    assert correct_page(window) not in page
    giving = staff("cid", "add_grant", "add_ledgerentry")
    assert send(giving, grant_page(budget), amount="1").status_code == 302
    assert send(giving, correct_page(window), amount="1").status_code == 302
    assert giving.get(exempt).status_code == 403
    assert client_of(place.user).get(grant_page(budget)).status_code == 302
    for odd in ("0", "x", "9" * 30):
        assert giving.get(reverse("admin:budget_grant", args=[odd])).status_code == 404


def test_a_limit_that_is_lowered_is_told_from_what_to_what(root: Client) -> None:
    place = played("ada")
    budget = Budget.objects.get()
    row: dict[str, Any] = {
        "id": budget.pk, "period": "month", "limit": "2", "is_active": "on"
    }  # fmt: skip
    assert root.post(url(place.user), form(place.user, (row,))).status_code == 302
    assert "$50.00 → $2.00" in LogEntry.objects.latest("pk").get_change_message()
    posted = {
        "scope": "user", "user": place.user.pk, "kind": "per_member", "unit": "money",
        "period": "month", "time_zone": "UTC", "limit": 0, "soft_percents": "", "is_active": "on",
    }  # fmt: skip
    assert root.post(change(budget), posted).status_code == 302
    assert "$2.00 → $0.00" in LogEntry.objects.latest("pk").get_change_message()
    assert list_statuses(place.user.pk)[0].is_over


def test_caps_of_a_turn_are_set_on_the_page_of_the_person(root: Client) -> None:
    ada = people_and_turns.person()
    caps = {"micros": "2.00", "rounds": "7", "tool_calls": "", "seconds": "", "user": ada.pk}
    posted = form(ada) | {f"turn_cap-0-{name}": value for name, value in caps.items()}
    assert root.post(url(ada), posted | {"turn_cap-TOTAL_FORMS": 1}).status_code == 302
    assert (ada.turn_cap.micros, ada.turn_cap.rounds) == (2 * MILLION, 7)
    assert "$2.00" in listed(root, TurnCap)
