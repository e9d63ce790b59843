"""The first page of the admin says where to look, and its list of people who is near a limit."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from conversations.budgets.grants import grant_more
from conversations.budgets.prices import find_unpriced_models
from conversations.budgets.units import show_amount
from conversations.log.chain import append_row, lock_site_chain
from conversations.models import (
    ApiModel,
    Budget,
    BudgetWindow,
    Crossing,
    LegalHold,
    McpServer,
    McpTool,
    ModelPrice,
    User,
)
from tests.support import budget_rows, people_and_turns
from tests.support.stored_turns import played

pytestmark = pytest.mark.django_db


def client_of(name: str, *permissions: str, **powers: bool) -> Client:
    user = User.objects.create(username=name, is_staff=True, **powers)
    user.user_permissions.add(*Permission.objects.filter(codename__in=permissions))
    client = Client()
    client.force_login(user)
    return client


def read_states(client: Client) -> dict[str, str]:
    """Return the counts of the first page by their names."""
    text = client.get(reverse("admin:index")).content.decode()
    return dict(re.findall(r"<dd>\s*([^<:]+): <strong>([\d,]+)</strong>", text))


def test_each_job_says_how_things_stand() -> None:
    played()
    window = BudgetWindow.objects.get()
    chain = lock_site_chain()
    for percent in (80, 100):
        append_row(Crossing(window=window, percent=percent, spent=1, limit=1), chain)
    server = McpServer.objects.create(
        name="notes", transport="stdio", command="notes", is_enabled=True
    )
    tool: dict[str, Any] = {"server": server, "listed": "{}", "listed_digest": "sha256:b"}
    McpTool.objects.create(name="new", call_name="a", **tool)
    McpTool.objects.create(name="no", call_name="b", rejected_digest="sha256:b", **tool)
    root = client_of("root", is_superuser=True)
    model = ApiModel.objects.filter(is_enabled=True).latest("pk")
    ModelPrice.objects.filter(model=model, kind="input").update(effective_to=timezone.now())
    owner = User.objects.get(username="ada")
    append_row(LegalHold(owner=owner, reason="a suit", actor=owner), chain)
    assert read_states(root) == {
        "Reductions in 24 hours": "1", "Rejected summaries in 24 hours": "1",
        "Limits reached in 24 hours": "1", "Limits nearly reached in 24 hours": "1",
        "People who may log in": "2", "Logged in in 24 hours": "1",
        "Servers": "1", "Servers that fail": "0", "Tools to decide on": "1",
        "Models in use": str(ApiModel.objects.filter(is_enabled=True).count()),
        "Models without a price": "1", "Legal holds in force": "1",
    }  # fmt: skip


def test_a_member_of_staff_sees_the_states_of_their_tables_alone() -> None:
    assert [*read_states(client_of("eve", "view_user"))] == [
        "People who may log in", "Logged in in 24 hours",
    ]  # fmt: skip
    assert read_states(client_of("zoe")) == {}


def test_the_first_page_costs_the_same_however_much_there_is() -> None:
    root, counts = client_of("root", is_superuser=True), []
    for name in ("ada", "bea"):
        played(name)
        with CaptureQueriesContext(connection) as queries:
            read_states(root)
        counts.append(len(queries))
    assert counts[0] == counts[1] <= 18


def read_spending(client: Client) -> dict[str, str]:
    text = client.get(reverse("admin:conversations_user_changelist")).content.decode()
    rows = re.findall(
        r'field-username.*?>([^<>]+)</a>.*?class="field-spending">(.*?)</td>', text, re.DOTALL
    )
    return {name: re.sub(r"<[^>]+>", "", cell).strip() for name, cell in rows}


def test_the_list_of_people_says_what_is_spent_of_the_nearest_limit() -> None:
    played("ada")
    people = {name: User.objects.create(username=name) for name in ("bea", "cleo", "dan")}
    Budget.objects.create(user=people["bea"], limit=90_000_000)
    Budget.objects.create(user=people["bea"], limit=95_000_000, period="day")
    User.objects.filter(username="dan").update(is_exempt=True)
    shown = read_spending(client_of("root", is_superuser=True))
    window = BudgetWindow.objects.get()
    assert shown["ada"] == f"{show_amount(window.spent, 'money')} spent of $50.00"
    assert shown["bea"] == "$0.00 spent of $90.00"
    assert (shown["cleo"], shown["dan"]) == ("–", "exempt")
    assert read_spending(client_of("eve", "view_user"))["ada"] == "–"


def test_the_nearest_limit_of_a_person_is_the_one_that_admission_counts() -> None:
    site = budget_rows.site(5_000_000)
    ada = people_and_turns.person()
    root = client_of("root", is_superuser=True)
    budget_rows.play(people_and_turns.started_turn(ada))
    BudgetWindow.objects.update(spent=1_000_000, overrun=3_000_000, limit=1_000_000)
    assert read_spending(root)["ada"] == "$4.00 spent of $5.00"
    Budget.objects.filter(pk=site.pk).update(limit=50_000_000)
    grant_more(budget=site, amount=10_000_000, reason="for the thesis", user=ada)
    assert read_spending(root)["ada"] == "$4.00 spent of $60.00"
    people_and_turns.limited(ada, 100_000_000)
    # The site's limit holds for ada no more, and her own counts what she has spent.
    assert read_spending(root)["ada"] == "$4.00 spent of $100.00"
    budget_rows.play(people_and_turns.started_turn(ada, "Again"))
    assert read_spending(root)["ada"].endswith(" spent of $100.00")
    assert read_spending(root)["ada"].startswith("$4.0")


def test_a_model_that_lacks_one_price_is_counted() -> None:
    root = client_of("root", is_superuser=True)
    assert read_states(root)["Models without a price"] == str(len(find_unpriced_models()))
    before = len(find_unpriced_models())
    output = ModelPrice.objects.filter(model="claude-haiku-4-5", kind="output")
    output.update(effective_to=timezone.now())
    assert read_states(root)["Models without a price"] == str(before + 1)


def test_the_page_of_a_person_begins_with_their_budgets() -> None:
    place = played()
    root = client_of("root", is_superuser=True)
    url = reverse("admin:conversations_user_change", args=[place.user.pk])
    text = root.get(url).content.decode()
    assert text.index('id="effective-budgets"') < text.index('name="username"')


def test_pages_of_the_admin_name_the_zone_of_their_times() -> None:
    root = client_of("root", is_superuser=True)
    text = root.get(reverse("admin:conversations_turn_changelist")).content.decode()
    assert "Times are in UTC where no other zone is named." in text
