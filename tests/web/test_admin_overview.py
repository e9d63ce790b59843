"""The overview, and the history of transformations it leads to."""

from __future__ import annotations

import csv
import io
import re
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from conversations.models import ApiResult, Transformation, User
from conversations.rendering.numbers import dollars
from tests.support import people_and_turns
from tests.support.stored_turns import played
from tests.web.tags import attributes
from tests.web.test_admin_review import Inert, staff, superuser

pytestmark = pytest.mark.django_db
CHANGES = "admin:conversations_transformation_changelist"


def page(client: Client, query: str = "", status: int = 200) -> str:
    response = client.get(reverse("admin:overview") + query)
    assert response.status_code == status
    return str(response.content.decode())


def text(response: Any) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", response))


def sheet(client: Client, name: str) -> list[list[str]]:
    response = client.get(reverse("admin:overview_csv", args=[name]))
    assert response.status_code == 200
    return list(csv.reader(io.StringIO(b"".join(response).decode("utf-8-sig"))))


def test_the_cards_say_how_the_site_ran() -> None:
    played("ada")
    body = page(staff("bob"))
    costs = sum(ApiResult.objects.values_list("cost_micros", flat=True))
    for shown in (
        "Runs 1 0 failed, 0 interrupted", f"Spent {dollars(costs)} 3 calls",
        "Rejected summaries 100 % 1 of 1, vetoed ones too", "Stuck reservations 0",
        "Cost of compaction", "Estimate error", "Tokens saved", "newest 5,000 rows",
    ):  # fmt: skip
        assert shown in text(body), shown
    for title in ("Runs by day", "Money by day", "Tokens by day", "Applied transformations by day"):
        assert f'aria-label="{title}"' in body
    assert body.count("As a table") == 4


def test_an_empty_site_has_an_overview_too() -> None:
    body = text(page(superuser(), "?period=90"))
    assert "nothing was reduced" in body
    assert "No calls in this time." in body


def test_the_overview_runs_nothing_and_links_from_the_index() -> None:
    played("<img src=x>")
    client = superuser()
    body = page(client)
    Inert().feed(body)
    assert "style" not in attributes(body)
    index = client.get(reverse("admin:index")).content.decode()
    assert reverse("admin:overview") in index


def test_the_overview_is_for_those_who_may_view_what_it_counts() -> None:
    client = Client()
    user = people_and_turns.person("eve", is_staff=True)
    client.force_login(user)
    page(client, status=403)
    assert client.get(reverse("admin:overview_csv", args=["users"])).status_code == 403
    assert reverse("admin:overview") not in client.get(reverse("admin:index")).content.decode()
    names = ("view_apicall", "view_transformation", "view_turn")
    user.user_permissions.add(*Permission.objects.filter(codename__in=names))
    page(client)
    assert client.get(reverse("admin:overview_csv", args=["x"])).status_code == 404


def test_a_file_says_what_the_table_says_and_computes_nothing() -> None:
    played("ada")
    User.objects.filter(username="ada").update(username="=1+1")
    head, row = sheet(staff("bob"), "users")
    costs = sum(ApiResult.objects.values_list("cost_micros", flat=True))
    found = dict(zip(head, row, strict=True))
    assert found["user"] == "'=1+1"
    assert float(found["cost in dollars"]) * 1_000_000 == pytest.approx(costs)
    assert found["calls"] == "3"
    assert [len(each) for each in sheet(staff("cid"), "transformations")] == [5, 5, 5]


def test_the_overview_costs_the_same_however_much_happened() -> None:
    client, counts = superuser(), []
    page(client)
    for name in ("ada", "bea", "cleo"):
        played(name)
        with CaptureQueriesContext(connection) as queries:
            page(client)
        counts.append(len(queries))
    assert counts[0] == counts[1] == counts[2]
    assert counts[0] <= 17


def test_the_history_has_a_row_with_all_figures() -> None:
    place = played("ada")
    row = Transformation.objects.get(kind="compaction")
    body = text(superuser().get(reverse(CHANGES)).content.decode())
    saved = row.tokens_before - row.tokens_after
    for shown in (
        "compaction", "applied", "ada", str(place.conversation.public_id)[:8], "turn 1",
        "claude-sonnet-5-5", f"{row.tokens_before:,} → {row.tokens_after:,} (−", f" {saved:,} ",
        "41,000 (estimated) over 40,000 input_token_budget", "(exact)",
    ):  # fmt: skip
        assert shown in body, shown
    page = superuser_again().get(reverse(CHANGES)).content.decode()
    assert page.count('<td class="field-answered_by">claude-sonnet-5-5</td>') == 2


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("?kind__exact=compaction", 1), ("?outcome__exact=rejected", 1), ("?by=hand", 0),
        ("?by=policy", 2), ("?setting=input_token_budget", 1), ("?setting=x", 0),
        ("?policy=classic", 2), ("?policy=adaptive", 0), ("?policy=%25", 0),
        ("?model=claude-sonnet-5-5", 2), ("?model=claude-haiku-4-5", 0),
        ("?source=reported", 1), ("?group={group}", 2), ("?group=999", 0), ("?group=x", 0),
        ("?user={user}", 2), ("?q={uuid}", 2), ("?q={short}", 2), ("?q=ada@example.org", 2),
        ("?q=nobody", 0),
    ],
)  # fmt: skip
def test_the_history_is_filtered_and_searched(query: str, count: int) -> None:
    place = played("ada")
    User.objects.filter(pk=place.user.pk).update(email="ada@example.org")
    group = Group.objects.create(name="Research")
    group.user_set.add(place.user)
    public_id = str(place.conversation.public_id)
    facts = {
        "group": group.pk, "user": place.user.pk, "uuid": public_id, "short": public_id[:8]
    }  # fmt: skip
    body = superuser().get(reverse(CHANGES) + query.format(**facts)).content.decode()
    assert len(re.findall(r'class="field-kind', body)) == count


def test_an_untouched_history_names_the_demo() -> None:
    assert "manage.py demo" in superuser().get(reverse(CHANGES)).content.decode()
    played("ada")
    assert "manage.py demo" not in superuser_again().get(reverse(CHANGES)).content.decode()


def superuser_again() -> Client:
    client = Client()
    client.force_login(User.objects.get(username="root"))
    return client


def test_the_evidence_links_to_the_call_that_was_sent_with_it() -> None:
    place = played("ada")
    row = Transformation.objects.get(kind="compaction")
    url = reverse("admin:conversations_transformation_change", args=[row.pk])
    there = reverse("review_inspect", args=[place.conversation.public_id])
    sent = reverse("review_inspect_call", args=[place.conversation.public_id, 3])
    reader, other = staff("zoe", "read_content"), staff("bob")
    assert there in reader.get(url).content.decode()
    assert sent in reader.get(url).content.decode()
    assert there not in other.get(url).content.decode()
    assert reader.get(there).status_code == 200
    assert reader.get(sent).status_code == 200
    assert other.get(there).status_code == 404
