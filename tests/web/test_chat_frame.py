"""The pages of a chat keep the list of chats: once, with the chat marked, at a fixed cost."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest
from django.contrib.auth.models import Permission
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from conversations.models import Conversation, User
from tests.support import people_and_turns
from tests.support.stored_turns import Played
from tests.web.pages import HTMX, chat_path, client_of, press
from tests.web.tags import elements

pytestmark = pytest.mark.django_db
#: Every page that leads on from a chat, by its path below the chat's.
PAGES = (
    "menu/", "settings/", "tools/", "tools/toolu_1/", "lab/", "largest/", "edit/1/",
    "compact/preview/", "compact/preview/?want=summary", "inspect/", "inspect/?before=3",
    "inspect/now/", "inspect/kinds/", "inspect/calls/3/", "inspect/calls/3/blocks/0/",
    "inspect/calls/2/request/", "inspect/diff/2..3/", "inspect/events/4/",
)  # fmt: skip
#: Those that htmx asks for a part of.
PARTS = (
    "menu/", "lab/", "largest/", "edit/1/", "inspect/", "inspect/now/", "inspect/kinds/",
    "inspect/?before=3", "inspect/?drawer=1", "inspect/calls/3/blocks/0/",
    "inspect/calls/2/request/",
)  # fmt: skip
#: The statements that read the list: those starred, the folders, and the newest.
LIST = 3


def find_lists(html: str) -> list[str]:
    return [tag for tag, attrs in elements(html) if attrs.get("id") == "sidebar"]


def find_marked(html: str) -> list[str | None]:
    rows = [attrs for tag, attrs in elements(html) if attrs.get("class") == "row"]
    return [attrs["href"] for attrs in rows if "aria-current" in attrs]


def count_queries(client: Client, path: str) -> int:
    with CaptureQueriesContext(connection) as found:
        assert client.get(path).status_code == 200
    return len(found)


def test_every_page_of_a_chat_has_the_list_once_and_marks_the_chat(played: Played) -> None:
    people_and_turns.queued(played.user, "Another talk")
    people_and_turns.queued(people_and_turns.person("eve"), "Words of somebody else")
    client, chat = client_of(played.user), chat_path(played)
    for page in PAGES:
        response = client.get(f"{chat}/{page}")
        assert response.status_code == 200, page
        html = response.content.decode()
        assert find_lists(html) == ["nav"], page
        assert find_marked(html) == [f"{chat}/"], page
        assert "Another talk" in html
        assert "Words of somebody else" not in html
        ids = [attrs["id"] for _, attrs in elements(html) if "id" in attrs]
        assert len(ids) == len(set(ids)), page
        links = [attrs for tag, attrs in elements(html.partition("<main")[2]) if tag == "a"]
        assert urlsplit(str(links[0]["href"])).path == f"{chat}/", page


def test_a_part_of_a_page_has_no_frame_and_does_not_read_the_list(played: Played) -> None:
    client, chat = client_of(played.user), chat_path(played)
    for page in PARTS:
        with CaptureQueriesContext(connection) as found:
            html = client.get(f"{chat}/{page}", headers=HTMX).content.decode()
        assert not find_lists(html), page
        assert "pinned_at" not in "".join(f"{row['sql'].partition('WHERE')[2]}" for row in found)


def test_the_list_costs_the_same_however_many_chats_there_are(played: Played) -> None:
    client, chat = client_of(played.user), chat_path(played)
    addresses = [f"{chat}/{page}" for page in PAGES]
    few = [count_queries(client, address) for address in addresses]
    model = played.conversation.model
    Conversation.objects.bulk_create(
        Conversation(owner=played.user, title=f"Talk {at}", model=model) for at in range(60)
    )
    assert [count_queries(client, address) for address in addresses] == few
    assert b"Talk 59" in client.get(addresses[0]).content


def test_a_refusal_without_script_keeps_the_list_and_a_part_has_none(played: Played) -> None:
    client, chat = client_of(played.user), chat_path(played)
    for post in ("send/", "exclude/"):
        page = press(client, f"{chat}/{post}")
        assert page.status_code == 400
        assert find_marked(page.content.decode()) == [f"{chat}/"]
        assert not find_lists(press(client, f"{chat}/{post}", htmx=True).content.decode())


def test_later_rows_of_the_list_mark_the_chat_of_the_page(
    played: Played, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = f"http://testserver{chat_path(played)}/inspect/calls/3/"
    page = client_of(played.user).get("/c/list/", headers={**HTMX, "HX-Current-URL": here})
    assert find_marked(page.content.decode()) == [f"{chat_path(played)}/"]


def test_a_review_shows_no_list_and_leads_back_to_the_admin(played: Played) -> None:
    reader = people_and_turns.person("rita", is_staff=True)
    reader.user_permissions.add(Permission.objects.get(codename="read_content"))
    people_and_turns.queued(reader, "The reviewer's own talk")
    client = client_of(User.objects.get(pk=reader.pk))
    own = client_of(played.user)
    back = f"/admin/conversations/conversation/{played.conversation.pk}/change/"
    for page in ("inspect/", "inspect/calls/3/", "inspect/calls/2/request/", "inspect/diff/2..3/"):
        html = client.get(f"/review{chat_path(played)}/{page}").content.decode()
        assert not find_lists(html)
        assert "own talk" not in html
        assert back in [attrs.get("href") for tag, attrs in elements(html) if tag == "a"]
        assert back not in own.get(f"{chat_path(played)}/{page}").content.decode()
