"""Budget notices on pages: their text, dismissing them, requests for more; no draft is lost."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from django.db import transaction
from django.test import Client
from django.utils import timezone

from conversations.agent.events import BudgetMoved, MeterMoved, TurnClosed
from conversations.budgets.grants import grant_more
from conversations.live import render
from conversations.log.chain import append_row, lock_site_chain
from conversations.models import Budget, BudgetWindow, Conversation, Crossing, Turn, User
from conversations.models.periods import compute_bounds
from conversations.transcript.shapes import Bookmark
from tests.support import people_and_turns, stored_turns
from tests.support.budget_rows import group, member
from tests.web.pages import client_of

pytestmark = pytest.mark.django_db
HTMX = {"HTTP_HX_REQUEST": "true"}
LIMIT = 1_000_000


def at(percent: int, budget: Budget, user: User | None) -> BudgetWindow:
    """Make a window of which this percentage is spent, with its notice."""
    starts, ends = compute_bounds(budget.period, budget.time_zone, timezone.now())
    spent = budget.limit * percent // 100
    window, _ = BudgetWindow.objects.update_or_create(
        budget=budget, user=user, starts_at=starts, ends_at=ends,
        defaults={"limit": budget.limit, "spent": spent},
    )  # fmt: skip
    for soft in (50, 80, 95):
        if soft <= percent:
            crossed(window, soft, spent, budget.limit)
    return window


def crossed(window: BudgetWindow, percent: int, spent: int, limit: int) -> None:
    """Record that a percentage was passed, once."""
    if not window.crossings.filter(percent=percent).exists():
        with transaction.atomic():
            row = Crossing(window=window, percent=percent, spent=spent, limit=limit)
            append_row(row, lock_site_chain())


def talk(user: User) -> Conversation:
    return stored_turns.played(user.username, title="A talk").conversation


def text(response: Any, status: int = 200) -> str:
    assert response.status_code == status
    return str(response.content.decode())


@pytest.mark.parametrize("percent", [50, 80, 95])
def test_each_percent_is_said_in_every_chat_until_it_is_put_away(percent: int) -> None:
    user = member("Research")
    budget = group("Research", LIMIT, period="day")
    window = at(percent, budget, user)
    client = client_of(user)
    pages = ["/c/new/", f"/c/{talk(user).public_id}/"]
    at(percent, budget, user)
    for page in pages:
        html = text(client.get(page))
        assert f"{percent} % of today&#x27;s budget is used" in html
        assert "of $1.00, from group Research." in html
        assert f'data-notice="{window.pk}:{percent}"' in html
        assert 'hx-trigger="every 10s"' in html
        assert "is-over" not in html
    away = client.post("/usage/notices/dismiss/", {"notice": f"{window.pk}:{percent}"}, **HTMX)
    assert "data-notice" not in text(away)
    for page in pages:
        assert "data-notice" not in text(client.get(page))
    assert "data-notice" not in text(Client().get("/accounts/login/"))


def test_the_end_of_a_budget_is_said_with_its_numbers_and_what_can_be_done() -> None:
    user = member("Research")
    at(100, group("Research", 40_000, unit="tokens", kind="pool", period="week"), None)
    html = text(client_of(user).get("/c/new/"))
    for words in (
        "This week&#x27;s budget is used up.",
        "40,000 tokens of 40,000 tokens used, shared by group Research.",
        "It starts anew", "<time data-until", "Reading, searching and exporting go on",
        "An administrator can grant you more.", 'href="/usage/"', "Budget used up",
        'title="Not now: what is left of this week&#x27;s budget is not enough for an answer"',
        'aria-describedby="limit-title limit-why"',
    ):  # fmt: skip
        assert words in html, words


def test_what_is_left_and_too_little_is_said_as_such() -> None:
    user = people_and_turns.person()
    at(99, people_and_turns.limited(user, LIMIT, "lifetime"), user)
    html = text(client_of(user).get("/c/new/"))
    assert "What is left of the budget ($0.010) is not enough for another answer." in html
    assert "It does not start anew." in html
    assert "set for you." in html
    # The pill does not say that it is used up.
    assert "Only $0.010 left" in html
    assert "Budget used up" not in html


@pytest.mark.parametrize(
    ("language", "percent", "words"),
    [
        ("de", 99, "Was vom Budget dieses Monats übrig ist ($0,010)"),
        ("fr", 99, "Ce qui reste du budget de ce mois ($0,010)"),
        ("es", 99, "Lo que queda del presupuesto de este mes ($0,010)"),
        ("de", 80, "80 % vom Budget dieses Monats sind verbraucht"),
        ("fr", 80, "80 % du budget de ce mois sont utilisés"),
        ("es", 80, "Se ha usado el 80 % del presupuesto de este mes"),
    ],
)
def test_a_part_of_a_budget_is_named_by_the_grammar_of_each_language(
    language: str, percent: int, words: str
) -> None:
    user = people_and_turns.person()
    at(percent, people_and_turns.limited(user, LIMIT, "month"), user)
    page = client_of(user).get("/c/new/", headers={"accept-language": language})
    assert words in text(page)


@pytest.mark.parametrize("headers", [HTMX, {}])
def test_a_message_that_cannot_be_answered_is_not_taken_and_stays_in_the_box(
    headers: dict[str, str],
) -> None:
    user = people_and_turns.person()
    conversation = talk(user)
    budget = people_and_turns.limited(user, LIMIT, "day")
    at(100, budget, user)
    client = client_of(user)
    before = Turn.objects.count()
    said = {"text": "Keep this draft", "client_id": str(uuid4())}
    for page in (f"/c/{conversation.public_id}/send/", "/c/start/"):
        answer = client.post(page, said, **headers)
        html = text(answer, 409)
        assert "Not sent: what is left of today&#x27;s budget is not enough" in html
        assert answer.headers.get("HX-Trigger") is None
        if page == "/c/start/" and not headers:
            assert "Keep this draft</textarea>" in html
    assert Turn.objects.count() == before
    grant_more(budget=budget, amount=LIMIT, reason="a trial")
    assert client.post(f"/c/{conversation.public_id}/send/", said, **HTMX).status_code == 200
    assert Turn.objects.count() == before + 1


def test_a_message_that_was_taken_is_found_again_though_the_budget_is_used_up() -> None:
    user = people_and_turns.person()
    conversation = talk(user)
    client = client_of(user)
    said = {"text": "Once", "client_id": str(uuid4())}
    page = f"/c/{conversation.public_id}/send/"
    assert client.post(page, said, **HTMX).status_code == 200
    count = Turn.objects.count()
    at(100, people_and_turns.limited(user, LIMIT, "week"), user)
    assert client.post(page, said, **HTMX).status_code == 200
    assert Turn.objects.count() == count


def test_a_page_asks_again_and_hears_only_what_is_new() -> None:
    user = people_and_turns.person()
    conversation = talk(user)
    budget = people_and_turns.limited(user, LIMIT, "day")
    at(100, budget, user)
    client = client_of(user)
    address = f"/usage/notices/?chat={conversation.public_id}"
    html = text(client.get(address, **HTMX))
    assert "is-over" in html
    seen = html.partition("seen=")[2].partition('"')[0]
    assert client.get(f"{address}&seen={seen}", **HTMX).status_code == 204
    grant_more(budget=budget, amount=9 * LIMIT, reason="a trial")
    freed = text(client.get(f"{address}&seen={seen}", **HTMX))
    assert "limit-note" not in freed
    assert "hx-trigger" not in freed.partition("</div>")[0]
    assert "$9.00 left" in freed
    assert client.get(address)["Location"] == "/usage/"


@pytest.mark.parametrize("chat", ["x", "00000000-0000-4000-8000-000000000000", "theirs"])
def test_nothing_is_said_of_the_conversation_of_another(chat: str) -> None:
    theirs = str(talk(people_and_turns.person("eve")).public_id)
    address = f"/usage/notices/?chat={theirs if chat == 'theirs' else chat}"
    assert client_of(people_and_turns.person()).get(address, **HTMX).status_code == 404


def test_frames_say_what_pages_say() -> None:
    user = people_and_turns.person()
    conversation = talk(user)
    budget = people_and_turns.limited(user, LIMIT, "day")
    window = at(80, budget, user)
    for event in (MeterMoved(), BudgetMoved()):
        assert f'data-notice="{window.pk}:80"' in render.render_events(conversation.pk, event)
    at(100, budget, user)
    for event in (MeterMoved(), BudgetMoved(), TurnClosed(1)):
        assert "Not now: " in render.render_events(conversation.pk, event)
    html = render.render_snapshot(conversation.pk, Bookmark(), None).html
    assert "Today&#x27;s budget is used up." in html
    assert 'id="limits"' in html
