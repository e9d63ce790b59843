"""Cost centres on pages: kept in the admin, set for a person and chosen for a chat."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Group
from django.test import Client
from django.urls import reverse

from conversations.models import Conversation, CostCentre, User
from tests.support import people_and_turns
from tests.support.stored_turns import MODEL, Played
from tests.web.pages import client_of
from tests.web.tags import acting
from tests.web.test_admin_people import form, text, url
from tests.web.test_admin_review import superuser

pytestmark = pytest.mark.django_db


@pytest.fixture
def sales() -> CostCentre:
    return CostCentre.objects.create(code="4711", name="<i>Sales</i>")


def retire(centre: CostCentre) -> None:
    CostCentre.objects.filter(pk=centre.pk).update(is_active=False)


def found(client: Client) -> str:
    """Search as the field of a person's page does."""
    names = {"app_label": "conversations", "model_name": "user", "field_name": "cost_centre"}
    return text(client.get(reverse("admin:autocomplete"), {"term": "47", **names}))


def test_nothing_of_them_is_shown_where_there_are_none(played: Played) -> None:
    settings = f"/c/{played.conversation.public_id}/settings/"
    for page in (client_of(played.user).get(settings), superuser().get(url(played.user))):
        assert page.status_code == 200
        assert "cost_centre" not in text(page)


def test_a_chat_is_given_one_of_the_active_and_takes_it_back(
    played: Played, sales: CostCentre
) -> None:
    client, path = client_of(played.user), f"/c/{played.conversation.public_id}/settings/"
    page = text(client.get(path))
    assert "as set for your account (no cost centre)" in page
    assert not acting(page)
    assert client.post(path, {"model": MODEL, "cost_centre": sales.pk}).status_code == 302
    assert Conversation.objects.get().cost_centre == sales
    assert f'<option value="{sales.pk}" selected>4711 &lt;i&gt;Sales' in text(client.get(path))
    assert client.post(path, {"model": MODEL}).status_code == 302
    assert Conversation.objects.get().cost_centre is None
    CostCentre.objects.create(code="4712", name="Research")
    retire(sales)
    assert client.post(path, {"model": MODEL, "cost_centre": sales.pk}).status_code == 400
    assert "4711" not in text(client.get(path))


def test_staff_set_a_persons_by_search_among_the_active(sales: CostCentre) -> None:
    root, ada = superuser(), people_and_turns.person()
    assert "4711" in found(root)
    assert root.post(url(ada), form(ada, cost_centre=sales.pk)).status_code == 302
    assert User.objects.get(pk=ada.pk).cost_centre == sales
    retire(sales)
    assert "4711" not in found(root)
    # What they have stays, and counts again when it takes calls again.
    assert root.post(url(ada), form(ada, cost_centre=sales.pk)).status_code == 302
    assert "4711" in text(root.get(url(ada)))


def test_one_is_renamed_and_retired_by_budget_officers_and_never_deleted(
    sales: CostCentre,
) -> None:
    boss = people_and_turns.person("boss", is_staff=True)
    boss.groups.add(Group.objects.get(name="Budget officer"))
    client, row = client_of(boss), "admin:conversations_costcentre_"
    change = reverse(f"{row}change", args=[sales.pk])
    assert client.post(change, {"code": "4711", "name": "Selling"}).status_code == 302
    sales.refresh_from_db()
    assert (str(sales), sales.is_active) == ("4711 Selling", False)
    assert client.post(reverse(f"{row}delete", args=[sales.pk])).status_code == 403
    assert "4711" in text(client.get(reverse(f"{row}changelist"), {"q": "selling"}))


def test_the_overview_splits_by_them_where_there_are_any(sales: CostCentre) -> None:
    root, ada = superuser(), people_and_turns.person(cost_centre=sales)
    overview = reverse("admin:overview")
    people_and_turns.answered(people_and_turns.started_turn(people_and_turns.person("bea")))
    assert "cost-centres" not in text(root.get(overview))
    people_and_turns.answered(people_and_turns.started_turn(ada))
    page = text(root.get(overview, {"by": "centre"}))
    assert page.count("4711 &lt;i&gt;Sales&lt;/i&gt;") >= 2
    assert "By cost centre" in page
    assert not acting(page)
    file = root.get(reverse("admin:overview_csv", args=["cost-centres"]))
    lines = b"".join(file.streaming_content).decode().splitlines()  # type: ignore[attr-defined]
    assert [line.split(",")[:2] for line in lines[1:]] == [
        ["4711 <i>Sales</i>", "1"],
        ["No cost centre", "1"],
    ]
