"""Limits of many people at once: previewed for each, made whole, on record, noticed if changed."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group
from django.contrib.contenttypes.models import ContentType
from django.db import connection
from django.db.models import QuerySet
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from conversations.audit.money_checks import check_money_records
from conversations.budgets import bulk_changes
from conversations.budgets.bulk_changes import (
    CHANGED,
    BulkChange,
    BulkKind,
    perform_change,
    plan_change,
)
from conversations.budgets.grants import BudgetError, grant_more, set_exempt, set_limit
from conversations.budgets.status import list_statuses
from conversations.models import Budget, Grant, MoneyRecord, User
from tests.support import people_and_turns
from tests.web.tags import elements
from tests.web.test_admin_review import staff, superuser

pytestmark = pytest.mark.django_db
DOLLAR = 1_000_000
USED = "This form was used already"
PAGE = "admin:bulk_budgets"
MAY_SEE = ("view_budget", "view_budgetwindow", "view_user")


@pytest.fixture
def root() -> Client:
    return superuser()


def team(*names: str) -> tuple[Group, list[User]]:
    group = Group.objects.create(name="Research")
    people = [people_and_turns.person(name) for name in names]
    group.user_set.set(people)
    return group, people


def own(user: User, limit: int) -> Budget:
    return set_limit(user=user, kind="per_member", unit="money", period="month", limit=limit)


def address(*people: User, **query: Any) -> str:
    marked = "&".join([f"user={one.pk}" for one in people] + [f"{k}={v}" for k, v in query.items()])
    return f"{reverse(PAGE)}?{marked}"


def preview(client: Client, where: str, **values: Any) -> tuple[dict[str, Any], str]:
    """Post the form; return what the preview would post, and its words."""
    posted = {"form": str(uuid4()), "reason": "a new term"} | values
    html = client.post(where, posted).content.decode()
    fields = {
        str(of["name"]): of.get("value") or ""
        for tag, of in elements(html)
        if tag == "input" and of.get("type") == "hidden" and of.get("name")
    }
    return fields | {"confirm": "1"}, re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html))


def plan_and_perform(people: QuerySet[User], change: BulkChange, actor: User) -> None:
    digest = plan_change(people, change).digest
    perform_change(people=people, change=change, digest=digest, actor=actor)


def limits() -> dict[str, int]:
    rows = Budget.objects.filter(is_active=True, scope="user")
    return dict(rows.values_list("user__username", "limit"))


def test_a_limit_for_the_marked_people_is_previewed_made_and_on_record(root: Client) -> None:
    _, (ada, bea, cid, dan) = team("ada", "bea", "cid", "dan")
    own(bea, 3 * DOLLAR)
    own(cid, 5 * DOLLAR)
    posted, words = preview(root, address(ada, bea, cid), kind="limit", amount="5")
    assert "Changed: 2. Skipped: 1." in words
    assert "Their limits together: $3.00 → $10.00 a month." in words
    assert "cid has this limit already" in words
    assert limits() == {"bea": 3 * DOLLAR, "cid": 5 * DOLLAR}
    response = root.post(address(ada, bea, cid), posted, follow=True)
    assert "Changed: 2. Skipped: 1." in response.content.decode()
    assert limits() == dict.fromkeys(("ada", "bea", "cid"), 5 * DOLLAR)
    assert not list_statuses(dan.pk)
    rows = MoneyRecord.objects.filter(reason="a new term")
    assert {(one.table, one.actor and one.actor.username) for one in rows} == {("budget", "root")}
    assert rows.count() == LogEntry.objects.count() == 2
    assert list(check_money_records()) == []
    posted, words = preview(root, address(ada, dan), kind="limit", amount="")
    assert "dan has no limit for this person alone" in words
    root.post(address(ada, dan), posted)
    assert limits() == dict.fromkeys(("bea", "cid"), 5 * DOLLAR)
    assert list(check_money_records()) == []


@pytest.mark.parametrize(
    ("kind", "before", "after"),
    [("requests", "20 requests", "30 requests"), ("tokens", "20 tokens", "30 tokens")],
)
def test_limits_a_minute_are_set_for_the_marked_people(
    root: Client, kind: str, before: str, after: str
) -> None:
    _, (ada, bea, cid) = team("ada", "bea", "cid")
    own(ada, 3 * DOLLAR)
    set_limit(user=bea, kind="per_member", unit=kind, period="minute", limit=20)
    for wrong, why in (("1.5", "is no whole number of"), ("-1", "not below nothing")):
        assert why in preview(root, address(ada, bea), kind=kind, amount=wrong)[1]
    posted, words = preview(root, address(ada, bea), kind=kind, amount="30")
    assert f"bea {before} {after}" in words
    assert "together" not in words
    root.post(address(ada, bea), posted)
    rows = Budget.objects.filter(is_active=True, unit=kind).order_by("user__username")
    told = rows.values_list("user__username", "period", "kind", "limit")
    assert list(told) == [(name, "minute", "per_member", 30) for name in ("ada", "bea")]
    assert Budget.objects.get(user=ada, unit="money").limit == 3 * DOLLAR
    said = LogEntry.objects.get(object_id=str(bea.pk)).change_message
    assert said == f"A minute: {before} → {after}: a new term"
    posted, words = preview(root, address(bea, cid), kind=kind, amount="")
    root.post(address(bea, cid), posted)
    assert [one.user_id for one in rows.all()] == [ada.pk]
    assert list(check_money_records()) == []


def test_a_grant_adds_to_what_admission_counts_for_each(root: Client) -> None:
    group, (ada, bea, cid, dan) = team("ada", "bea", "cid", "dan")
    eve = people_and_turns.person("eve")
    shared = Budget.objects.create(scope="group", group=group, limit=2 * DOLLAR)
    grant_more(budget=shared, amount=DOLLAR, reason="for all")
    grant_more(budget=shared, amount=DOLLAR, reason="for bea", user=bea)
    own(cid, 7 * DOLLAR)
    set_exempt(user=dan, is_exempt=True, reason="x", actor=ada)
    ends = (timezone.now() + timedelta(days=3)).date().isoformat()
    people = (ada, bea, cid, dan, eve)
    before = {one.pk: sum(each.limit for each in list_statuses(one.pk)) for one in people}
    change = BulkChange(BulkKind.GRANT, DOLLAR, None, "", uuid4())
    plan = plan_change(User.objects.filter(pk__in=[one.pk for one in people]), change)
    assert {one.user_id: one.before for one in plan.done} == {
        one.pk: before[one.pk] for one in (ada, bea, cid)
    }
    posted, words = preview(root, address(*people), kind="grant", amount="1.50", until=ends)
    assert "dan is exempt from budgets" in words
    assert "eve has no limit a month" in words
    assert "What to do Add to the monthly limit of each Until " in words
    assert "Their limits together: $14.00 → $18.50 a month." in words
    root.post(address(*people), posted)
    for one in people:
        more = 1_500_000 if one in (ada, bea, cid) else 0
        assert sum(each.limit for each in list_statuses(one.pk)) == before[one.pk] + more
    rows = Grant.objects.filter(reason="a new term")
    assert {one.expires_at is not None for one in rows} == {True}
    # The last page, sent twice, grants once.
    assert USED in root.post(address(*people), posted).content.decode()
    assert rows.count() == 3
    # Gone back to, it cannot be previewed for another amount and then grant nothing for ever.
    again = {"kind": "grant", "amount": "9", "form": posted["form"]}
    posted, _ = preview(root, address(*people), **again)
    assert USED in root.post(address(*people), posted).content.decode()
    assert rows.count() == 3
    posted, _ = preview(root, address(*people), **again | {"form": str(uuid4())})
    assert root.post(address(*people), posted).status_code == 302
    assert rows.filter(amount=9 * DOLLAR).count() == 3


def test_people_are_exempted_and_counted_again_by_superusers_alone(root: Client) -> None:
    _, (ada, bea) = team("ada", "bea")
    set_exempt(user=bea, is_exempt=True, reason="x", actor=ada)
    posted, words = preview(root, address(ada, bea), kind="exempt")
    assert "bea is exempt already" in words
    root.post(address(ada, bea), posted)
    assert User.objects.filter(is_exempt=True).count() == 2
    posted, _ = preview(root, address(ada, bea), kind="counted")
    root.post(address(ada, bea), posted)
    assert not User.objects.filter(is_exempt=True).exists()
    assert list(check_money_records()) == []
    officer = staff("officer", *MAY_SEE, "add_budget", "change_budget")
    _, words = preview(officer, address(ada), kind="exempt")
    assert "is not one of the available choices" in words
    assert officer.post(address(ada), posted).status_code == 400
    assert staff("viewer", *MAY_SEE).get(address(ada)).status_code == 403
    _, words = preview(staff("granting", *MAY_SEE, "add_grant"), address(ada), kind="limit")
    assert "is not one of the available choices" in words


def test_what_changes_between_preview_and_confirmation_is_noticed(root: Client) -> None:
    group, (ada, _) = team("ada", "bea")
    where = address(all=1, group="research")
    posted, words = preview(root, where, kind="limit", amount="5")
    assert "Changed: 2." in words
    own(ada, 9 * DOLLAR)
    html = root.post(where, posted).content.decode()
    assert str(CHANGED) in html
    assert "$9.00" in html
    assert limits() == {"ada": 9 * DOLLAR}
    # One more in the group is one that nobody has seen in the preview.
    posted, _ = preview(root, where, kind="limit", amount="5")
    people_and_turns.person("cid").groups.add(group)
    assert str(CHANGED) in root.post(where, posted).content.decode()
    assert limits() == {"ada": 9 * DOLLAR}
    posted, _ = preview(root, where, kind="limit", amount="5")
    root.post(where, posted)
    assert limits() == dict.fromkeys(("ada", "bea", "cid"), 5 * DOLLAR)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"kind": "limit", "amount": "five"}, "is no amount"),
        ({"kind": "limit", "amount": "-5"}, "A limit is not below nothing."),
        ({"kind": "grant", "amount": ""}, "A grant is more than nothing."),
        ({"kind": "grant", "amount": "1", "until": "2020-01-01"}, "A grant ends later than now."),
        ({"kind": "limit", "amount": "5", "reason": ""}, "This field is required."),
        ({"kind": "none"}, "is not one of the available choices"),
    ],
)
def test_what_cannot_be_done_is_said(values: dict[str, str], said: str, root: Client) -> None:
    _, words = preview(root, address(people_and_turns.person("ada")), **values)
    assert said in words
    assert not Budget.objects.exists()


def test_it_speaks_the_language_of_the_reader_and_takes_the_change_in_another(root: Client) -> None:
    _, (ada, bea) = team("ada", "bea")
    own(bea, 5 * DOLLAR)
    root.defaults["HTTP_ACCEPT_LANGUAGE"] = "de"
    posted, words = preview(root, address(ada, bea), kind="limit", amount="5")
    assert "bea hat dieses Limit schon" in words
    assert "Grund a new term" in words
    _, words = preview(root, address(ada), kind="limit", amount="five")
    assert "Das ist kein Betrag in Dollar." in words
    root.defaults["HTTP_ACCEPT_LANGUAGE"] = "fr"
    html = root.post(address(ada, bea), posted, follow=True).content.decode()
    assert "Modifiées : 1. Ignorées : 1." in re.sub(r"\s", " ", html)
    assert limits() == dict.fromkeys(("ada", "bea"), 5 * DOLLAR)


def test_nobody_chosen_is_said(root: Client) -> None:
    html = root.get(address(scope="user")).content.decode()
    assert "Nobody is chosen." in html
    assert 'name="kind"' not in html


def test_a_limit_for_one_model_is_another_one(root: Client) -> None:
    ada = people_and_turns.person("ada")
    of_model = people_and_turns.limited(ada, DOLLAR, model="opus")
    _, words = preview(root, address(ada), kind="grant", amount="1")
    assert "ada has no limit a month" in words
    posted, _ = preview(root, address(ada), kind="limit", amount="5")
    root.post(address(ada), posted)
    of_model.refresh_from_db()
    assert (of_model.limit, of_model.is_active) == (DOLLAR, True)


def test_a_change_is_refused_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    _, (ada, bea) = team("ada", "bea")
    own(bea, DOLLAR)
    people = User.objects.filter(pk__in=[ada.pk, bea.pk])

    def refuse(kind: BulkKind, reason: str = "x", until: datetime | None = None) -> str:
        change = BulkChange(kind, 5 * DOLLAR, until, reason, uuid4())
        with pytest.raises(BudgetError) as refused:
            plan_and_perform(people, change, ada)
        assert limits() == {"bea": DOLLAR}
        assert not Grant.objects.exists()
        return str(refused.value)

    assert refuse(BulkKind.LIMIT, reason=" ") == "Say why: a reason is needed."
    assert "ends later than now" in refuse(BulkKind.GRANT, until=timezone.now())
    with monkeypatch.context() as patched:
        patched.setattr(bulk_changes, "MOST_PEOPLE", 1)
        assert "more than 1 people" in refuse(BulkKind.LIMIT)
    # A budget of bea's that the plan did not see, as when it is made at the same moment.
    monkeypatch.setattr(bulk_changes, "_filter_own", lambda *_: Budget.objects.none())
    assert refuse(BulkKind.LIMIT) == CHANGED


def test_as_many_queries_for_one_as_for_sixty(root: Client) -> None:
    _, people = team(*(f"p{at}" for at in range(61)))
    Budget.objects.create(scope="site", limit=DOLLAR)

    def count(chosen: list[User], kind: str, amount: str) -> int:
        # What a process has asked for once it knows.
        ContentType.objects.clear_cache()
        with CaptureQueriesContext(connection) as queries:
            posted, words = preview(root, address(*chosen), kind=kind, amount=amount)
            root.post(address(*chosen), posted)
        assert f"Changed: {len(chosen)}." in words
        return len(queries)

    for kind, amount in (("limit", "5"), ("limit", "6"), ("grant", "1"), ("exempt", "")):
        assert count(people[:1], kind, amount) == count(people[1:], kind, amount)


def test_the_spending_page_offers_the_people_of_a_group_and_its_budgets(root: Client) -> None:
    _, (ada,) = team("ada")
    bea = people_and_turns.person("bea")
    html = root.get(reverse("admin:spending"), {"group": "research"}).content.decode()
    marked = [of["value"] for tag, of in elements(html) if of.get("form") == "several"]
    assert marked == [str(ada.pk)]
    assert 'name="group" value="research"' in re.sub(r"\s+", " ", html)
    assert "Change all 1 that are found" in re.sub(r"\s+", " ", html)
    page = root.get(address(all=1, group="research")).content.decode()
    assert "People chosen: 1" in page
    assert str(bea.pk) not in marked
