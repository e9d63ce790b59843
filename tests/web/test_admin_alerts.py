"""Alerts in the admin: made by budget officers, their secret shown once, what was sent listed."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group
from django.test import Client
from django.urls import reverse

from conversations.models import AlertDelivery, BudgetAlert, User
from conversations.toolbox.secrets import unseal
from tests.support import people_and_turns
from tests.support.alert_rows import alert, crossed
from tests.support.budget_rows import group, site
from tests.web.pages import client_of

pytestmark = pytest.mark.django_db
LIST, SENT = "/admin/conversations/budgetalert/", "/admin/conversations/alertdelivery/"
URL = "https://hooks.example/in?token=tell-nobody"


def officer(role: str = "Budget officer") -> Client:
    user = people_and_turns.person(role.lower().replace(" ", "-"), is_staff=True)
    user.groups.add(Group.objects.get(name=role))
    return client_of(user)


def mailed(name: str = "boss") -> User:
    return people_and_turns.person(name, email=f"{name}@corp.example")


def add(client: Client, **sent: Any) -> Any:
    form = {"name": "Money", "from_percent": "80", "url": "", "is_active": "on"} | sent
    return client.post(f"{LIST}add/", form)


def read(client: Client, path: str) -> str:
    page = client.get(path)
    assert page.status_code == 200
    return page.content.decode()


def shown_secret(page: str) -> str:
    found = re.search(r"whsec_[A-Za-z0-9+/=]+", page)
    assert found, page
    return found[0]


def test_the_secret_of_a_webhook_is_shown_once_and_may_be_replaced() -> None:
    client = officer()
    page = add(client, url=URL, people=[str(mailed().pk)]).content.decode()
    secret, row = shown_secret(page), BudgetAlert.objects.get()
    assert unseal(row.sealed_secret) == secret
    assert row.origin == "http://testserver"
    own = f"{LIST}{row.pk}/"
    replaced = shown_secret(client.post(f"{own}secret/").content.decode())
    row.refresh_from_db()
    assert unseal(row.sealed_secret) == replaced != secret
    assert client.get(f"{own}secret/").status_code == 405
    crossed(site(10, kind="pool"), 80)
    assert client.post(f"{own}test/")["Location"] == f"{own}change/"
    assert AlertDelivery.objects.filter(crossing=None).count() == 2
    AlertDelivery.objects.update(state="given_up", last_error="The receiver answered with 503.")
    root = client_of(User.objects.create(username="root", is_staff=True, is_superuser=True))
    for path in (LIST, f"{own}change/", SENT, f"{own}history/", "/admin/admin/logentry/"):
        text = read(root, path)
        assert secret not in text
        assert replaced not in text
        assert ("tell-nobody" in text) is (path == f"{own}change/")
    assert "hooks.example:443" in read(client, LIST)
    assert "The receiver answered with 503." in read(client, SENT)
    said = " ".join(LogEntry.objects.values_list("change_message", flat=True))
    assert "Made a new secret." in said
    assert "Sent a test." in said


def test_an_alert_without_its_webhook_has_no_secret_any_more() -> None:
    client, boss = officer(), mailed()
    add(client, url=URL)
    row = BudgetAlert.objects.get()
    since = row.active_since
    change = reverse("admin:conversations_budgetalert_change", args=[row.pk])
    form = {"name": "Money", "from_percent": "90", "url": "", "people": [str(boss.pk)]}
    assert client.post(change, form)["Location"] == LIST
    row.refresh_from_db()
    assert (row.sealed_secret, row.is_active, row.active_since) == ("", False, since)
    assert client.post(f"{LIST}{row.pk}/secret/").status_code == 404
    client.post(f"{LIST}{row.pk}/test/")
    assert not AlertDelivery.objects.exists()
    shown_secret(client.post(change, form | {"url": URL, "is_active": "on"}).content.decode())
    row.refresh_from_db()
    assert row.active_since > since


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        ({}, "nobody would be told"),
        ({"url": "http://hooks.example/"}, "Use https."),
        ({"url": "https://u:p@hooks.example/"}, "no user name or password"),
        ({"from_percent": "101", "url": URL}, "less than or equal to 100"),
        ({"people": "silent"}, "No e-mail address: silent."),
        ({"people": ["x"]}, "is not a valid value"),
        ({"both": "1", "url": URL}, "Choose a budget or a group, not both."),
    ],
)
def test_what_cannot_be_sent_is_refused_in_words(sent: dict[str, Any], words: str) -> None:
    if sent.get("people") == "silent":
        sent = {"people": [str(people_and_turns.person("silent").pk)]}
    if sent.pop("both", ""):
        budget = group("buyers", 10)
        sent |= {"budget": str(budget.pk), "group": str(budget.group_id)}
    answer = add(officer(), **sent)
    assert words in answer.content.decode()
    assert not BudgetAlert.objects.exists()


def test_what_was_given_up_is_sent_again_by_who_may_set_alerts() -> None:
    row = alert(mailed(), url=URL, budget=site(10, kind="pool"))
    crossing = crossed(row.budget, 80)  # type: ignore[arg-type]
    for fields in ({"person": row.people.get()}, {"state": "sent"}, {"crossing": None}):
        AlertDelivery.objects.create(
            **{"alert": row, "crossing": crossing, "state": "given_up", "attempts": 8} | fields
        )
    row.delete()
    client = officer()
    again = {"action": "send_again", "_selected_action": [
        str(key) for key in AlertDelivery.objects.values_list("pk", flat=True)]}  # fmt: skip
    assert "80 % of everybody together" in read(client, SENT)
    assert "Tried again: 2." in client.post(SENT, again, follow=True).content.decode()
    states = AlertDelivery.objects.order_by("pk").values_list("state", "attempts")
    assert list(states) == [("waiting", 0), ("sent", 8), ("waiting", 0)]
    for role in ("Reviewer", "Administrator"):
        assert officer(role).post(SENT, again).status_code == 403
    assert officer("Auditor").get(LIST).status_code == 403
