"""The usage page: one's own figures, the same for staff, and the file."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from conversations.budgets.usage.days import make_named_span
from conversations.budgets.usage.person import sum_usage
from conversations.models import Budget, Conversation, User
from conversations.rendering.numbers import dollars
from tests.support import people_and_turns
from tests.support.stored_turns import played
from tests.web.pages import client_of
from tests.web.tags import acting, elements
from tests.web.test_admin_review import staff, superuser

pytestmark = pytest.mark.django_db
HOSTILE = '<img src=x onerror=alert(1)>"'


def text(client: Client, query: str = "", status: int = 200) -> str:
    response = client.get(f"/usage/{query}")
    assert response.status_code == status
    return str(response.content.decode())


def spent(user: User) -> int:
    return sum_usage(user, make_named_span("month", timezone.now().date())).total.micros


def test_the_page_shows_the_figures_of_its_reader_alone() -> None:
    place = played("ada", title="Read the file")
    played("bea", title="The plan of another")
    page = text(client_of(place.user))
    for shown in (
        dollars(spent(place.user)), "claude-sonnet-5-5", "Read the file", "Replies", "Summaries",
        "As a table", "Current allowance", "$50.00", "Money by day",
        reverse("chat", args=[place.conversation.public_id]),
    ):  # fmt: skip
        assert shown in page, shown
    assert "The plan of another" not in page


def test_what_is_in_the_trash_is_counted_and_not_linked() -> None:
    place = played("ada")
    Conversation.objects.filter(pk=place.conversation.pk).update(deleted_at=timezone.now())
    page = text(client_of(place.user))
    assert dollars(spent(place.user)) in page
    assert reverse("chat", args=[place.conversation.public_id]) not in page


def test_without_calls_the_page_shows_the_allowance_and_when_it_starts_anew() -> None:
    user = people_and_turns.person("ada")
    Budget.objects.create(user=user, period="day", limit=2_500_000)
    page = text(client_of(user))
    assert "No calls in this time" in page
    assert "$2.50 may be spent now." in page
    assert "starts anew" in page
    Budget.objects.all().delete()
    assert "No budget limits what may be spent." in text(client_of(user))


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("?period=last-month", "No calls in this time"), ("?period=7", "Money by day"),
        ("?from=x&to=y", "Write both days as year-month-day"),
        ("?from=2026-02-01&to=2026-01-01", "after the last"), ("?period=%00", "Money by day"),
        ("?from=0001-01-01&to=0001-01-02", "No calls in this time"),
    ],
)  # fmt: skip
def test_a_span_can_be_chosen_and_an_odd_one_is_said(query: str, words: str) -> None:
    assert words in text(client_of(played("ada").user), query)


def test_the_file_is_kept_not_shown_and_holds_the_calls_of_its_reader() -> None:
    place = played("ada", title="=cmd()")
    played("bea")
    response = client_of(place.user).get("/usage/calls.csv")
    assert response["Content-Type"] == "text/csv; charset=utf-8"
    assert response["Content-Disposition"].startswith('attachment; filename="agentweb-calls-')
    rows = list(csv.reader(io.StringIO(b"".join(response).decode("utf-8-sig"))))
    assert len(rows) == 1 + 3
    assert {row[1] for row in rows[1:]} == {"'=cmd()"}


def test_titles_and_notes_are_text_and_nothing_acts() -> None:
    place = played("ada", title=HOSTILE)
    Budget.objects.update(note=HOSTILE)
    page = text(client_of(place.user))
    assert "&lt;img src=x" in page
    assert acting(page) == []
    assert "style" not in {name for _, attrs in elements(page) for name in attrs}


def test_staff_see_the_same_figures_with_ids_for_titles() -> None:
    place = played("ada", title="The secret plan")
    url = reverse("admin:user_usage", args=[place.user.pk])
    page = staff("bob").get(url).content.decode()
    assert dollars(spent(place.user)) in page
    assert str(place.conversation.public_id)[:8] in page
    assert "The secret plan" not in page
    change = reverse("admin:conversations_user_change", args=[place.user.pk])
    assert url in superuser().get(change).content.decode()
    missing: Any = client_of(people_and_turns.person("eve", is_staff=True))
    assert missing.get(url).status_code == 403
    assert staff("cid").get(reverse("admin:user_usage", args=[0])).status_code == 404


def test_the_link_and_its_key_are_on_every_page_of_the_chat() -> None:
    client = client_of(played("ada").user)
    for page in ("/c/new/", "/search/", "/usage/"):
        body = client.get(page).content.decode()
        assert '<a href="/usage/" data-go="u">' in body
        assert "<kbd>g</kbd> <kbd>u</kbd>" in body
