"""The pages of a person's settings: shown, changed, refused, and applied on every other page."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.conf import settings as site
from django.test import Client
from django.utils import translation

from conversations.accounts.people import save_preferences
from conversations.agent.events import RoundOpened, TurnClosed
from conversations.live.render import render_events, render_snapshot
from conversations.models import ApiModel, User
from conversations.transcript.shapes import Bookmark
from tests.support import people_and_turns, stored_turns
from tests.web.tags import elements

pytestmark = pytest.mark.django_db
TABS = (
    "appearance",
    "chat",
    "prompts",
    "shortcuts",
    "context",
    "mail",
    "account",
    "security",
    "data",
)


@pytest.fixture
def ada() -> User:
    user = User(username="ada", email="ada@example.org")
    user.set_password("correct horse battery")
    user.save()
    return user


@pytest.fixture
def client(ada: User) -> Client:
    client = Client()
    client.force_login(ada)
    return client


def root(response: Any) -> dict[str, str]:
    """Return the attributes of the page's root element."""
    tag = re.search(r"<html([^>]*)>", response.content.decode())
    assert tag is not None
    return dict(re.findall(r'([\w-]+)="([^"]*)"', tag[1]))


@pytest.mark.parametrize("tab", TABS)
def test_every_page_of_settings_has_the_same_way_to_the_others(client: Client, tab: str) -> None:
    html = client.get(f"/settings/{tab}/").content.decode()
    tabs = re.search(r'<nav class="tabs".*?</nav>', html, re.DOTALL)
    assert tabs is not None
    assert re.findall(r'href="/settings/(\w+)/"', tabs[0]) == list(TABS)
    assert re.findall(r'/settings/(\w+)/" aria-current="page"', tabs[0]) == [tab]


def test_settings_begin_with_the_appearance(client: Client) -> None:
    assert client.get("/settings/")["Location"] == "/settings/appearance/"
    assert b'href="/settings/" data-go="s"' in client.get("/c/new/").content


def test_the_appearance_is_rendered_by_the_server(client: Client, ada: User) -> None:
    plain = root(client.get("/c/new/"))
    assert (plain["data-theme"], plain["data-size"], plain["data-motion"]) == (
        "system", "normal", "system",
    )  # fmt: skip
    chosen = {"theme": "dark", "text_size": "larger", "motion": "reduced"}
    response = client.post("/settings/appearance/", chosen)
    assert (response.status_code, response["Location"]) == (302, "/settings/appearance/")
    page = client.get("/settings/appearance/")
    assert "Saved." in page.content.decode()
    found = root(page)
    assert (found["data-theme"], found["data-size"], found["data-motion"]) == (
        "dark", "larger", "reduced",
    )  # fmt: skip
    assert b'<meta name="color-scheme" content="dark">' in page.content
    assert b"prefers-color-scheme" not in page.content
    other = Client().get("/accounts/login/")
    assert root(other)["data-theme"] == "system"


def test_what_is_no_choice_is_refused_at_its_field(client: Client, ada: User) -> None:
    response = client.post("/settings/appearance/", {"theme": "pink", "text_size": "normal"})
    assert response.status_code == 400
    assert response.content.decode().count('role="alert"') == 2
    ada.refresh_from_db()
    assert ada.preferences == {}


def chosen_models(page: Any) -> list[str | None]:
    found = [attrs for tag, attrs in elements(page.content.decode()) if tag == "input"]
    radios = [attrs for attrs in found if attrs.get("name") == "model"]
    return [attrs.get("value") for attrs in radios if "checked" in attrs]


def test_how_the_chat_acts_is_chosen(client: Client, ada: User) -> None:
    sent = {
        "enter": "line", "model": "claude-haiku-5-5", "thinking": "open", "notifications": "on",
    }  # fmt: skip
    assert client.post("/settings/chat/", sent).status_code == 302
    page = client.get("/c/new/")
    assert root(page)["data-enter"] == "line"
    assert root(page)["data-notify"] == "yes"
    assert chosen_models(page) == ["claude-haiku-5-5"]
    ApiModel.objects.filter(pk="claude-haiku-5-5").update(is_enabled=False)
    assert chosen_models(client.get("/c/new/")) == ["claude-sonnet-5-5"]
    assert client.get("/settings/chat/").status_code == 200
    refused = client.post("/settings/chat/", sent | {"model": "claude-haiku-5-5"})
    assert refused.status_code == 400


def test_shortcuts_are_switched_off_on_the_page_and_in_the_dialog(
    client: Client, ada: User
) -> None:
    assert 'id="use-shortcuts" name="shortcuts" checked' in client.get("/c/new/").content.decode()
    response = client.post("/settings/shortcuts/", {}, headers={"HX-Request": "true"})
    assert response.status_code == 204
    assert 'name="shortcuts" checked' not in client.get("/c/new/").content.decode()
    assert client.post("/settings/shortcuts/", {"shortcuts": "on"}).status_code == 302
    ada.refresh_from_db()
    assert ada.preferences == {}


def test_thinking_is_open_on_the_page_and_by_the_socket_where_that_was_chosen(
    client: Client, ada: User
) -> None:
    lease = people_and_turns.started_turn(ada)
    opened = 'data-key="think-1-1" open'
    assert opened not in render_events(lease.conversation_id, RoundOpened(1, 1))
    save_preferences(user_id=ada.pk, changes={"thinking": "open"})
    assert opened in render_events(lease.conversation_id, RoundOpened(1, 1))


def test_a_new_password_ends_the_other_sessions_and_not_this_one(client: Client, ada: User) -> None:
    other = Client()
    other.force_login(ada)
    wrong = client.post("/settings/account/", {"old_password": "no", "new_password1": "x"})
    assert b'role="alert"' in wrong.content
    new = "another horse battery"
    sent = {"old_password": "correct horse battery", "new_password1": new, "new_password2": new}
    assert client.post("/settings/account/", sent)["Location"] == "/settings/account/"
    assert "The password was changed" in client.get("/settings/account/").content.decode()
    assert other.get("/settings/account/").status_code == 302
    assert Client().login(username="ada", password=new)


# Sessions that end.


def test_a_fragment_without_a_session_is_answered_by_401(ada: User) -> None:
    conversation = people_and_turns.queued(ada).conversation
    url = f"/c/{conversation.public_id}/send/"
    for asked in ("/c/list/", "/settings/chat/"):
        assert Client().get(asked, headers={"HX-Request": "true"}).status_code == 401
    response = Client().post(url, {"text": "Hello"}, headers={"HX-Request": "true"})
    assert (response.status_code, response.content) == (401, b"")
    assert Client().post(url, {"text": "Hello"}).status_code == 302


def test_the_log_in_comes_to_the_page_and_gives_a_new_token(ada: User) -> None:
    client = Client(enforce_csrf_checks=True)
    form = client.get("/accounts/again/").content.decode()
    assert 'name="password"' in form
    assert "<html" not in form

    def token(html: str) -> str:
        return re.findall(r'name="csrfmiddlewaretoken" value="(\w+)"', html)[0]

    sent = {"username": "ada", "password": "no", "csrfmiddlewaretoken": token(form)}
    refused = client.post("/accounts/again/", sent)
    assert refused.status_code == 200
    assert 'role="alert"' in refused.content.decode()
    sent["password"] = "correct horse battery"
    done = client.post("/accounts/again/", sent)
    assert done.status_code == 200
    html = done.content.decode()
    assert f'data-user="{ada.public_id}"' in html
    assert 'name="password"' not in html
    kept = {"shortcuts": "on", "csrfmiddlewaretoken": token(html)}
    assert client.post("/settings/shortcuts/", kept).status_code == 302
    again = client.get("/accounts/again/").content.decode()
    assert f'data-user="{ada.public_id}"' in again


def test_a_chat_begun_by_the_script_is_named_and_refused_as_a_fragment(client: Client) -> None:
    htmx = {"HX-Request": "true"}
    sent = {"text": "Hello", "client_id": "7f1f7a52-3c1e-4a58-9d0a-0d6f0c3f7a10"}
    first, second = (client.post("/c/start/", sent, headers=htmx) for _ in range(2))
    assert (first.status_code, first["HX-Redirect"]) == (200, second["HX-Redirect"])
    assert client.get(first["HX-Redirect"]).status_code == 200
    refused = client.post("/c/start/", {"text": " "}, headers=htmx)
    assert refused.status_code == 400
    assert "send-error" in refused.content.decode()
    assert "<html" not in refused.content.decode()


# What takes the most room.


def test_the_largest_blocks_are_listed_with_what_can_be_done(client: Client, ada: User) -> None:
    played = stored_turns.played("ada")
    html = client.get(f"/c/{played.conversation.public_id}/largest/").content.decode()
    assert "read_file" in html
    assert f'/c/{played.conversation.public_id}/exclude/"' in html
    assert f'/c/{played.conversation.public_id}/pin/"' in html
    part = client.get(
        f"/c/{played.conversation.public_id}/largest/", headers={"HX-Request": "true"}
    )
    assert "<html" not in part.content.decode()


# Languages.


def test_a_language_is_spoken_where_it_was_chosen(client: Client, ada: User, settings: Any) -> None:
    settings.LANGUAGES = [("en", "English"), ("ar", "العربيّة")]
    assert root(client.get("/c/new/"))["dir"] == "ltr"
    save_preferences(user_id=ada.pk, changes={"language": "ar"})
    found = root(client.get("/c/new/"))
    assert (found["lang"], found["dir"]) == ("ar", "rtl")
    assert b'name="language"' in client.get("/settings/appearance/").content
    save_preferences(user_id=ada.pk, changes={"language": "xx"})
    assert root(client.get("/c/new/"))["lang"] == "en"


def test_only_languages_with_words_are_offered(client: Client) -> None:
    assert next(code for code, _ in site.LANGUAGES) == "en"
    for code, _ in site.LANGUAGES[1:]:
        assert (site.LOCALE_PATHS[0] / code / "LC_MESSAGES" / "django.mo").exists()
    if len(site.LANGUAGES) == 1:
        assert b'name="language"' not in client.get("/settings/appearance/").content
        german = client.get("/c/new/", headers={"Accept-Language": "de"})
        assert root(german)["lang"] == "en"


@pytest.mark.parametrize(
    ("chosen", "browser", "spoken"),
    [("", "", "en"), ("", "de", "de"), ("en", "de", "en"), ("de", "en", "de"), ("xx", "de", "de")],
)
def test_what_comes_by_the_socket_is_in_the_language_of_its_reader(
    ada: User, settings: Any, chosen: str, browser: str, spoken: str
) -> None:
    settings.LANGUAGES = [("en", "English"), ("de", "Deutsch")]
    lease = people_and_turns.started_turn(ada)
    people_and_turns.answered(lease)
    save_preferences(user_id=ada.pk, changes={"language": chosen})
    date = {"en": r">[A-Z]\w+\.? \d+, 2\d{3}", "de": r">\d+\. [A-Z]\w+ 2\d{3}"}[spoken]
    assert re.search(date, render_events(lease.conversation_id, TurnClosed(1), language=browser))
    assert re.search(date, render_snapshot(lease.conversation_id, Bookmark(), None, browser)[0])
    assert translation.get_language() == "en"
