"""The price of the next message in the composer, and the clicks that change what it carries."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.db.models import F
from django.test import Client

from conversations.models import Conversation, ModelPrice, Transformation
from conversations.rendering.numbers import cents
from conversations.transcript.meter import read_meter
from tests.support import people_and_turns, stored_turns
from tests.support.open_pages import opened, shown
from tests.support.reduced_conversations import now, talk
from tests.support.stored_turns import Played
from tests.web.pages import chat_path, client_of, html_of, press

pytestmark = pytest.mark.django_db
MANY_TIMES = 50


@pytest.fixture
def client(played: Played) -> Client:
    return client_of(played.user)


def words(html: str, id: str = "next-price") -> str:
    found = re.search(rf'<p\s+id="{id}".*?</p>', html, re.DOTALL)
    assert found is not None
    return " ".join(re.sub(r"<[^>]+>", " ", found[0]).split())


def dear() -> None:
    rows = ModelPrice.objects.filter(model=stored_turns.MODEL).exclude(kind="web_search")
    rows.update(micros_per_million=F("micros_per_million") * MANY_TIMES)


def test_a_price_is_said_only_above_a_cent_and_not_while_an_answer_comes(
    client: Client, played: Played
) -> None:
    assert words(html_of(client, f"{chat_path(played)}/")) == ""
    dear()
    page = html_of(client, f"{chat_path(played)}/")
    assert re.match(r"The next message costs about \$\d+\.\d\d", words(page))
    assert "Nothing is removed before it." in page
    people_and_turns.next_turn(now(played))
    page = html_of(client, f"{chat_path(played)}/")
    assert words(page) == ""
    assert "/in-full/" not in page


def test_where_something_is_reduced_both_prices_are_said(client: Client, played: Played) -> None:
    dear()
    talk(played)
    Conversation.objects.update(policy={"preset": "tool-budget", "input_token_budget": 100})
    page = html_of(client, f"{chat_path(played)}/")
    said = words(page)
    assert "older parts are reduced first. In full it would be $" in said
    assert "Old tool results are shortened before it." in page
    found = read_meter(now(played), has_next=True).next
    assert found is not None
    prices = [found.now.reduced, found.now.full]
    assert re.findall(r"\$[\d.]+\d", said)[:2] == [cents(each or 0) for each in prices]


def test_the_same_price_is_said_once(client: Client, played: Played) -> None:
    talk(played)
    Conversation.objects.update(policy={"preset": "tool-budget", "input_token_budget": 100})
    # The answer costs dollars, and so few tokens of input less than a cent.
    ModelPrice.objects.filter(model=stored_turns.MODEL, kind="output").update(
        micros_per_million=2_000_000_000
    )
    found = read_meter(now(played), has_next=True).next
    assert found is not None
    assert (found.now.is_reduced, found.now.has_two_prices) == (True, False)
    assert (found.now.reduced or 0) < (found.now.full or 0)
    price = cents(found.now.full or 0)
    page = html_of(client, f"{chat_path(played)}/")
    told = words(page).split(". ")[0].removesuffix(".")
    assert told == f"The next message costs about {price}: older parts are reduced first"
    assert "In full it would be" not in page
    assert f"It costs about {price}." in page
    assert "After a pause" not in page


@pytest.mark.django_db(transaction=True)
def test_compact_now_is_one_click_that_every_tab_sees() -> None:
    played = talk(stored_turns.played())
    client = client_of(played.user)
    path, version = f"{chat_path(played)}/compact/now/", now(played).version
    with opened(played.conversation.pk, version) as topic:
        assert press(client, path, htmx=True).status_code == 204
        (turn,) = shown(topic)
    assert "Context reduced" in turn
    assert 'id="next-price"' in turn
    row = Transformation.objects.exclude(actor=None).get()
    assert (row.kind, row.actor, row.setting) == ("compaction", played.user, "by_hand")
    again = press(client, path, htmx=True)
    assert (again.status_code, again["HX-Redirect"]) == (
        200, f"{chat_path(played)}/compact/preview/?want=summary"
    )  # fmt: skip
    assert press(client, path)["Location"] == again["HX-Redirect"]
    assert Transformation.objects.exclude(actor=None).count() == 1


def test_in_full_is_chosen_shown_and_switched_back(client: Client, played: Played) -> None:
    path = f"{chat_path(played)}/in-full/"

    def choose(choice: str) -> str:
        assert press(client, path, htmx=True, choice=choice).status_code == 204
        return html_of(client, f"{chat_path(played)}/")

    page = choose("full_once")
    assert words(page) == "In full, this once"
    assert "The next message is sent in full" in page
    page = choose("full_always")
    assert words(page) == "Always in full"
    assert 'aria-pressed="true"' in page
    page = choose("full_never")
    assert words(page) == ""
    assert "Reduced again as the policy says" in page
    # The inspector calls the three what they are, and counts them as changes.
    part = f"{chat_path(played)}/inspect/?drawer=1"
    rows = client.get(part, headers={"HX-Request": "true"}).content.decode()
    said = re.findall(r'class="said">\s*<strong>([^<]*)</strong>', rows)
    assert [" ".join(one.split()) for one in said][:3] == [
        "Reduced again as the policy says", "Sent in full", "Sent in full",
    ]  # fmt: skip
    assert re.search(r"\d+ changes\s", rows)
    whole = client.get(f"{chat_path(played)}/inspect/").content.decode()
    assert "Reductions" not in whole
    assert re.search(r"<dt>Changes of the context</dt>\s*<dd>\s*\d+\s", whole)
    assert press(client, path, choice="full_once")["Location"] == f"{chat_path(played)}/"
    assert Conversation.objects.get().in_full_turn == 2


def test_no_choice_and_an_unknown_one_change_nothing(client: Client, played: Played) -> None:
    path = f"{chat_path(played)}/in-full/"
    press(client, path, choice="full_always")
    for wrong in ({"choice": "x"}, {"choice": ""}, {}):
        assert press(client, path, htmx=True, **wrong).status_code == 400
        assert press(client, path, **wrong).status_code == 400
    assert Conversation.objects.get().in_full_always


def test_a_click_in_the_middle_of_an_answer_says_why_not(client: Client, played: Played) -> None:
    people_and_turns.next_turn(now(played))
    for path in ("compact/now/", "in-full/"):
        refused: Any = press(client, f"{chat_path(played)}/{path}", htmx=True, choice="full_once")
        assert refused.status_code == 409
        assert "An answer is on its way" in refused.content.decode()
