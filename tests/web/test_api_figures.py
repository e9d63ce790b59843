"""Figures of the API: those of the record, filtered, whole, and at a constant price."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from conversations.accounts.api_tokens import SCOPES
from conversations.budgets.usage.closed_days import close_days
from conversations.library.conversations import delete_conversation
from conversations.library.erase import erase_due_conversations
from conversations.models import (
    ApiCall,
    ApiResult,
    BudgetWindow,
    CostCentre,
    LedgerEntry,
    Transformation,
    User,
)
from conversations.web.api import rows
from tests.support import people_and_turns, stored_turns
from tests.support.api_requests import (
    V1,
    ask,
    correct,
    played,
    read,
    refused,
    whole,
)
from tests.support.api_tokens import token_of
from tests.web.test_admin_review import superuser

pytestmark = pytest.mark.django_db


@pytest.fixture
def root() -> User:
    superuser()
    return User.objects.get(is_superuser=True)


# Figures.


def test_the_figures_are_those_of_the_record(root: User) -> None:
    place = played()
    secret = token_of(root, *SCOPES)
    entries = read(secret, "ledger", limit="500")
    assert [each["entry"] for each in entries] == list(
        LedgerEntry.objects.order_by("created_at", "pk").values_list("pk", flat=True)
    )
    (own,) = (each for each in read(secret, "budgets", person="ada") if each["scope"] == "user")
    (shown,) = (each for each in read(secret, "spending", scope="user"))
    assert shown == {"person": "ada"} | {key: own[key] for key in own if key != "source"}
    assert own["unit"] == "money"
    (window,) = BudgetWindow.objects.filter(user=place.user)
    assert (own["spent"], own["held"]) == (window.spent, window.held)
    assert own["held"] > 0
    total = sum(ApiResult.objects.values_list("cost_micros", flat=True))
    for by in ("day", "model,purpose", "person", "group,day", "person,model,purpose,day"):
        found = read(secret, "usage", by=by)
        assert sum(each["cost_micros"] for each in found) == total > 0
    assert {each["group"] for each in read(secret, "usage", by="group")} == {"Research"}
    freed = [each["tokens_before"] - each["tokens_after"] for each in read(secret, "reductions")]
    assert sum(freed) == sum(
        row.tokens_before - row.tokens_after for row in Transformation.objects.all()
    )


def test_erased_conversations_keep_their_figures_and_their_person(root: User) -> None:
    place, secret = stored_turns.played("bea"), token_of(root, "usage")
    (before,) = read(secret, "usage", by="person,model")
    delete_conversation(conversation=place.conversation)
    assert erase_due_conversations(now=timezone.now() + timedelta(40)) == 1
    assert read(secret, "usage", by="person,model") == [before]
    (found,) = read(secret, "usage", by="group,purpose")
    assert (found["group"], found["purpose"]) == ("", "")
    assert read(secret, "usage")[0]["cost_micros"] == before["cost_micros"]


def test_days_that_are_closed_count_the_same(root: User) -> None:
    played()
    secret, day = token_of(root, "usage"), timezone.now().date()
    query = {"from": (day - timedelta(days=9)).isoformat(), "to": day.isoformat()}
    before = read(secret, "usage", **query)
    assert close_days(timezone.now() + timedelta(days=5)) >= 0
    assert read(secret, "usage", **query) == before
    assert read(secret, "usage", **{"from": "1999-01-01", "to": "1999-12-31"}) == []


def test_a_filter_leaves_what_it_names(root: User) -> None:
    played()
    secret = token_of(root, *SCOPES)
    every = read(secret, "ledger")
    for name, value in (("kind", "reserve"), ("purpose", "reply"), ("group", "Research"),
                        ("person", "ada"), ("model", every[0]["model"])):  # fmt: skip
        found = read(secret, "ledger", **{name: value})
        assert found == [each for each in every if each[name] == value] != []
    today, past = timezone.now().date().isoformat(), "2001-01-01"
    assert read(secret, "ledger", **{"from": past, "to": past}) == []
    assert len(read(secret, "reductions", **{"from": past})) == 2
    assert read(secret, "reductions", outcome="vetoed") == []
    assert read(secret, "reductions", person="eve") == []
    assert read(secret, "spending", name="sear")[0]["group"] == "Research"
    assert len(read(secret, "ledger", to=today)) in (len(every), 0)


def test_calls_and_people_are_found_by_their_cost_centre(root: User) -> None:
    played()
    sales = CostCentre.objects.create(code="4711", name="Sales")
    bea = people_and_turns.person("bea", cost_centre=sales)
    people_and_turns.limited(bea, 9_000_000)
    people_and_turns.answered(people_and_turns.started_turn(bea))
    secret = token_of(root, *SCOPES)
    every = read(secret, "ledger", limit="500")
    found = read(secret, "ledger", cost_centre="4711")
    assert found == [each for each in every if each["cost_centre"] == "4711"] != []
    assert {each["person"] for each in found} == {"bea", None}
    assert [each["person"] for each in read(secret, "spending", cost_centre="4711")] == ["bea"]
    calls = {each["cost_centre"]: each["calls"] for each in read(secret, "usage", by="cost_centre")}
    assert calls == {"": ApiCall.objects.count() - 1, "4711": 1}


ODD = (
    ("ledger", "kind=x"), ("ledger", "from=2026-13-01"), ("ledger", "from=20261101"),
    ("ledger", "from=0001-01-01"), ("ledger", "from=2026-11-02&to=2026-11-01"),
    ("ledger", "limit=0"), ("ledger", "limit=501"), ("ledger", "limit=%C2%B2"),
    ("ledger", "person=%00"), ("ledger", "person="), ("ledger", "person=a&person=b"),
    ("ledger", "none=1"), ("ledger.csv", "cursor=x"), ("ledger", "cursor=x"),
    ("ledger", "cursor=%C3%A4"), ("ledger", "cursor=fjE"), ("spending", "cursor=fi0x"),
    ("ledger", "cursor=MDAwMS0wMS0wMVQwMDowMDowMCswMDowMH4x"), ("spending", "cursor=%00"),
    ("ledger", "cursor=MjAyNi0wMS0wMX4x"), ("ledger", "person=" + "x" * 151),
    ("usage", "by=x"), ("usage", "by=day,"), ("usage", "from=2020-01-01"), ("budgets", ""),
    ("usage", "from=2026-11-02&to=2026-11-01"), ("usage", "from=9000-12-31"),
)  # fmt: skip


def test_a_parameter_that_is_none_is_refused_with_a_sentence(root: User) -> None:
    header = {"Authorization": f"Bearer {token_of(root, *SCOPES)}"}
    for path, query in ODD:
        body = refused(Client().get(f"{V1}{path}?{query}", headers=header), 400)
        assert body["detail"].endswith("."), (path, query)


# Whole, and at a constant price.


def test_pages_follow_each_other_without_a_gap_or_a_row_twice(root: User) -> None:
    played()
    secret = token_of(root, *SCOPES)
    correct(9)
    for path in ("ledger", "spending", "reductions"):
        every, found, cursor = read(secret, path, limit="500"), [], ""
        while True:
            page = ask(secret, path, limit="4", **({"cursor": cursor} if cursor else {})).json()
            found += page["rows"]
            if (cursor := page["next"]) is None:
                break
        assert found == every
    assert len(whole(secret, "ledger.jsonl").splitlines()) == LedgerEntry.objects.count() > 9


def test_a_page_costs_the_same_for_one_row_and_for_many(root: User) -> None:
    place, secret = played(), token_of(root, *SCOPES)

    def count(path: str, **query: str) -> int:
        with CaptureQueriesContext(connection) as asked:
            assert ask(secret, path, **query).status_code == 200
        return len(asked)

    queries = {
        "spending": {}, "ledger": {}, "reductions": {}, "usage": {"by": "person,group,day"},
        "budgets": {"person": "ada"},
    }  # fmt: skip
    few = {path: count(path, **query) for path, query in queries.items()}
    correct(9)
    for at in range(9):
        person = people_and_turns.person(f"user{at}")
        budget = people_and_turns.limited(person, 100)
        BudgetWindow.objects.create(
            budget=budget, user=person, limit=100, starts_at=timezone.now(),
            ends_at=timezone.now() + timedelta(days=1),
        )  # fmt: skip
    stored_turns.played("bea")
    assert place.conversation.pk
    assert {path: count(path, **query) for path, query in queries.items()} == few
    # The token, its count, then the rows and what they refer to.
    assert few == {"spending": 3, "ledger": 9, "reductions": 8, "usage": 6, "budgets": 5}


def test_a_file_reads_a_page_at_a_time(root: User, monkeypatch: pytest.MonkeyPatch) -> None:
    played()
    secret = token_of(root, "ledger")
    monkeypatch.setattr(rows, "MOST_ROWS", 10)
    correct(15)
    with CaptureQueriesContext(connection) as asked:
        lines = whole(secret, "ledger.jsonl").splitlines()
    reads = [each["sql"] for each in asked if 'FROM "conversations_ledgerentry"' in each["sql"]]
    assert len(reads) == -(-len(lines) // 10)
    assert all("LIMIT 11" in sql for sql in reads)
