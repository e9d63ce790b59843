"""Who changed prices, limits, caps and exemptions: from what to what, with the reason."""

from __future__ import annotations

import csv
import json
import re
from html import unescape
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from conversations.budgets.grants import set_exempt, set_limit
from conversations.budgets.money_history import (
    DAMAGED,
    Change,
    Step,
    describe_changes,
    filter_history,
)
from conversations.budgets.money_records import changed_by
from conversations.models import Budget, ModelPrice, MoneyRecord, TurnCap, User
from tests.support import people_and_turns
from tests.web.tags import elements
from tests.web.test_admin_review import listed, page, staff, superuser

pytestmark = pytest.mark.django_db
ALLOWANCE = {"kind": "per_member", "unit": "money", "period": "month"}
EXPORT = "admin:money-records_csv"


def changes(**where: Any) -> list[Change]:
    return describe_changes(list(filter_history().filter(**where).order_by("link")))


def words(html: str) -> str:
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", html)))


def fields(html: str) -> dict[str, str]:
    """Return what the form of a page of the admin posts as it is."""
    found: dict[str, str] = {}
    for tag, of in elements(html):
        kind = of.get("type") or ""
        is_sent = kind not in ("submit", "file") and (kind != "checkbox" or "checked" in of)
        if tag == "input" and of.get("name") and is_sent:
            found[str(of["name"])] = str(of.get("value") or ("on" if kind == "checkbox" else ""))
    return found


def change(client: Client, row: Any, **values: str) -> None:
    """Post a row's own page of the admin with some values changed."""
    url = reverse(f"admin:conversations_{row._meta.model_name}_change", args=[row.pk])
    posted = fields(client.get(url).content.decode()) | values
    response = client.post(url, posted)
    assert response.status_code == 302, words(response.content.decode())[:3000]


def test_what_changed_is_said_with_names_and_in_its_unit() -> None:
    ada = people_and_turns.person("ada")
    team = Group.objects.create(name="Research")
    set_limit(user=ada, limit=5_000_000, **ALLOWANCE)
    set_limit(user=ada, limit=7_500_000, **ALLOWANCE)
    limit = [one.steps for one in changes(table="budget")]
    assert {step.name: step.after for step in limit[0]} == {
        "applies to": "a user", "user": "ada", "kind": "for each member", "unit": "money",
        "period": "Month", "time zone": "UTC", "limit": "$5.00", "warn at (percent)": "50,80,95",
        "active": "yes",
    }  # fmt: skip
    assert changes(table="budget")[1] == Change(
        "budget", "ada", "changed", (Step("limit", "$5.00", "$7.50"),)
    )
    set_limit(kind="pool", unit="tokens", period="day", limit=9_000, model="opus")
    assert changes(table="budget")[2].subject == "the site"
    set_exempt(user=ada, is_exempt=True, reason="her own key", actor=ada)
    (exempt,) = changes(table="user")
    assert (exempt.subject, [step.after for step in exempt.steps]) == ("ada", ["yes"])
    cap = TurnCap.objects.create(group=team, micros=2_000_000, rounds=1_200)
    cap.delete()
    made, gone = changes(table="turncap")
    assert (made.subject, made.verb, gone.verb) == ("Research", "added", "deleted")
    assert Step("model calls", "1,200", "–") in gone.steps


def test_prices_are_in_dollars_and_times_in_utc() -> None:
    price = ModelPrice.objects.filter(effective_to=None).first()
    assert price is not None
    (first,) = changes(table="modelprice", key=price.pk)
    said = {step.name: step.after for step in first.steps}
    assert first.subject == price.model_id
    assert said["in force from"] == f"{price.effective_from:%Y-%m-%d %H:%M} UTC"
    assert said["price per million (USD)"].startswith("$")


def test_a_record_that_says_nothing_sane_is_listed_all_the_same() -> None:
    for at, (table, text) in enumerate([("other", "{}"), ("budget", "x"), ("budget", "[1]")]):
        MoneyRecord.objects.create(table=table, key=900 + at, content=text, link=10**6 + at)
    rare = {"group_id": 10**6, "user_id": 0, "limit": 3, "unit": "pounds", "kind": "odd"}
    MoneyRecord.objects.create(table="budget", key=950, content=json.dumps(rare), link=10**6 + 9)
    found = changes(key__gte=900)
    # What is damaged is marked as that, and not as deleted.
    assert [(one.verb, len(one.steps)) for one in found[:3]] == [("", 0)] + [(DAMAGED, 1)] * 2
    assert found[0].subject == "900"
    assert found[3].subject == "1000000"
    assert Step("limit", "–", "3") in found[3].steps
    assert listed(superuser(), MoneyRecord)


def test_the_reason_of_a_form_is_on_record_and_listed() -> None:
    client = superuser()
    budget = set_limit(kind="pool", unit="money", period="month", limit=5_000_000)
    posted = {"kind": "pool", "unit": "money", "period": "month", "scope": "site"}
    change(client, budget, **posted, limit="8", reason=" a new term ")
    record = MoneyRecord.objects.order_by("-link")[0]
    assert (record.reason, str(record.actor)) == ("a new term", "root")
    text = words(listed(client, MoneyRecord, "?table=budget"))
    assert "budget: changed the site limit: $5.00 → $8.00 a new term root" in text
    assert "limit: $5.00 → $8.00" in words(page(client, record))


def test_a_price_and_a_cap_take_a_reason_too() -> None:
    client, team = superuser(), Group.objects.create(name="Research")
    price = ModelPrice.objects.filter(effective_to=None).first()
    assert price is not None
    day = {"effective_to_0": "2999-01-01", "effective_to_1": "00:00:00"}
    change(client, price, **day, reason="a new price list")
    add = reverse("admin:conversations_turncap_add")
    client.post(add, {"group": team.pk, "rounds": "9", "reason": "runaway turns"})
    found = MoneyRecord.objects.order_by("-link").values_list("table", "reason")[:2]
    assert list(found) == [("turncap", "runaway turns"), ("modelprice", "a new price list")]


def test_the_page_of_a_person_has_one_reason_for_its_changes() -> None:
    ada = people_and_turns.person("ada")
    assert 'name="reason"' in page(superuser(), ada)
    assert 'name="reason"' not in page(staff("viewer"), ada)


def test_whoever_may_only_view_is_asked_for_no_reason() -> None:
    viewer = staff("viewer")
    set_limit(kind="pool", unit="money", period="month", limit=5)
    cap = TurnCap.objects.create(user=people_and_turns.person("ada"), rounds=3)
    for row in (Budget.objects.get(), cap, ModelPrice.objects.first()):
        assert 'name="reason"' not in page(viewer, row)


def test_the_list_is_filtered_by_who_did_it_and_sent_as_csv() -> None:
    client, ada = superuser(), people_and_turns.person("ada")
    with changed_by(ada.pk, "=cmd"):
        set_limit(kind="pool", unit="money", period="month", limit=5_000_000)
        set_limit(kind="pool", unit="money", period="month", limit=6_000_000)
    assert f'?user={ada.pk}"' in listed(client, MoneyRecord)
    response = client.get(f"{reverse(EXPORT)}?user={ada.pk}")
    text = b"".join(response.streaming_content).decode("utf-8-sig")  # type: ignore[attr-defined]
    rows = list(csv.DictReader(text.splitlines()))
    assert [(row["from"], row["to"], row["by"]) for row in rows][:1] == [("$5.00", "$6.00", "ada")]
    assert {row["reason"] for row in rows} == {"'=cmd"}
    assert len(rows) > 5


def test_the_list_costs_as_many_queries_for_many_records_as_for_few() -> None:
    client, counts = superuser(), []
    for number in (1, 30):
        for at in range(number):
            user = User.objects.create(username=f"p{number}-{at}")
            set_limit(user=user, limit=5_000_000, **ALLOWANCE)
        with CaptureQueriesContext(connection) as found:
            listed(client, MoneyRecord)
        counts.append(len(found))
    assert counts[0] == counts[1]
