"""The ownership matrix: every URL there is, every method, every kind of visitor.

Complete by construction: a new URL fails here until it is said whose it is. Who asks makes no other
query, so PostgreSQL has one kind of visitor of each.
"""

from __future__ import annotations

from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.test import Client

from conversations.accounts.sessions import find_valid_sessions
from conversations.models import FailedLogIns, User
from tests.attacks.sites import World, address, views, visitor, world
from tests.support import people_and_turns
from tests.support.one_database import with_slice
from tests.web.canary import WORD
from tests.web.test_ownership import OF_REVIEW

pytestmark = pytest.mark.django_db
METHODS = ("get", "head", "post", "put", "patch", "delete", "options")
#: What anybody may ask for, and what shows each person their own.
PUBLIC = {
    "login", "log_in_again", "logout", "live", "ready", "setup", "invitation", "favicon", "metrics",
    "offline", "service_worker",
    "password_reset", "password_reset_sent", "password_reset_confirm",
    "account_login", "log_in_with_passkey",
    "openid_connect_login", "openid_connect_callback",
}  # fmt: skip
OWN = {
    "home", "new_chat", "new_model", "start", "list", "search", "trash", "empty_trash",
    "workspace", "files", "move_file", "delete_file", "empty_files", "files_waiting", "usage",
    "usage_csv", "own_limit",
    "budget_notices", "dismiss_notice", "data", "export_all", "import", "delete_data",
    "preferences", "appearance_settings", "chat_settings", "shortcuts_settings",
    "context_settings", "mail_settings", "saved_prompts", "new_prompt", "prompt_choices",
    "import_prompts", "shared_links", "revoke_links", "new_folder",
    # Where the site has links for people alone, as it is shipped (tests/web/test_shared_page.py).
    "shared",
    "account_settings",
    "log_out_elsewhere",
    "change_email", "confirm_email", "mfa_index", "mfa_activate_totp", "mfa_deactivate_totp",
    "mfa_authenticate", "add_passkey", "mfa_view_recovery_codes", "mfa_generate_recovery_codes",
    "account_reauthenticate", "remove_passkey", "sessions", "log_out_one", "log_out_everywhere",
    "stop_impersonation",
}  # fmt: skip
ALL = list(views())
PAGES = [view for view in ALL if not view.is_admin and not view.is_api]
ADMIN = [view for view in ALL if view.is_admin]


@pytest.fixture
def ada() -> World:
    return world()


def client_of(user: User | None) -> Client:
    """Log a person in; one who may not log in any more has the session from before."""
    client = Client(raise_request_exception=True)
    if user is not None:
        client.force_login(user)
    return client


def keep_logged_in(client: Client, user: User) -> None:
    """Log a person in where the last answer ended the session; a log-in costs what a page does."""
    cookie = client.cookies.get(settings.SESSION_COOKIE_NAME)
    key = cookie.value if cookie else ""
    if not key or not find_valid_sessions({key: user.pk}, {}):
        client.force_login(user)


def answer(client: Client, method: str, url: str, **headers: Any) -> tuple[Any, bytes]:
    sent = {"text": WORD[::-1], "id": "toolu_1", "title": "x"} if method == "post" else None
    response = getattr(client, method)(url, sent, headers=headers) if sent else getattr(
        client, method)(url, headers=headers)  # fmt: skip
    return response, b"".join(response) if response.streaming else response.content


def test_whose_every_url_is_has_been_said() -> None:
    known = {view.name for view in PAGES if view.is_of_somebody}
    assert not known & (OWN | PUBLIC)
    assert {view.name for view in PAGES} - known - OWN - PUBLIC == set()
    assert {"chat", "file", "workspace_file", "change_mail", "withdraw", "erase"} <= known


@pytest.mark.parametrize("kind", with_slice(["another", "staff", "superuser"]))
def test_what_is_somebody_elses_is_as_if_it_were_not_there(kind: str, ada: World) -> None:
    client, before, twins = client_of(visitor(kind)), people_and_turns.everything(), 0
    for view in PAGES:
        if not view.is_of_somebody or (view.name in OF_REVIEW and kind == "superuser"):
            continue
        for method in METHODS if kind == "another" else ("get", "post"):
            theirs, body = answer(client, method, address(view, ada))
            nobodys, empty = answer(client, method, address(view, ada, is_nobodys=True))
            assert theirs.status_code == nobodys.status_code, (view, method)
            assert theirs.status_code in (403, 404, 405), (view, method)
            assert (theirs.status_code == 403) <= (view.name in OF_REVIEW)
            assert theirs.headers.keys() == nobodys.headers.keys()
            assert body == empty
            assert WORD.encode() not in body
            twins += 1
    assert twins > 100
    assert people_and_turns.everything() == before


@pytest.mark.parametrize(
    ("kind", "methods"), [("another", ("get", "post")), ("superuser", ("get",))]
)
def test_a_page_of_ones_own_has_nothing_of_others(
    kind: str, methods: tuple[str, ...], ada: World
) -> None:
    user, before = visitor(kind), people_and_turns.everything()
    assert user is not None
    client = Client()
    before["User"] = [row for row in before["User"] if user.username not in row]
    for view in PAGES:
        if view.name not in OWN:
            continue
        for method in methods:
            # Some of them end the session, or everything that the visitor has.
            keep_logged_in(client, user)
            response, body = answer(client, method, address(view, ada))
            assert response.status_code < 500, view
            assert WORD.encode() not in body, view
    after = people_and_turns.everything()
    for table, rows in before.items():
        assert [row for row in rows if row not in after[table]] == [], table


@pytest.mark.parametrize("kind", with_slice(["stranger", "inactive"]))
def test_without_a_session_there_is_only_the_log_in_page(kind: str, ada: World) -> None:
    user = visitor(kind)
    # A link that does not work is counted.
    client, before = client_of(user), people_and_turns.everything(but=[FailedLogIns])
    for view in ALL:
        for method in ("get", "post"):
            for headers in ({}, {"HX-Request": "true"}) if method == "get" else ({},):
                response, body = answer(client, method, address(view, ada), **headers)
                assert WORD.encode() not in body, view
                if view.is_api:
                    assert response.status_code in (401, 404, 405) or view.name == "api_openapi"
                elif view.name in PUBLIC and not view.is_admin:
                    assert response.status_code in (200, 302, 403, 404, 405), view
                elif response.status_code != 401:
                    assert response.status_code == 302, view
                    pages = ("/accounts/login/", "/admin/") if view.is_admin else "/accounts/login/"
                    assert response["Location"].startswith(pages), view
        if user is not None:
            assert SESSION_KEY in client.session or client.cookies
    assert people_and_turns.everything(but=[FailedLogIns]) == before


@pytest.mark.parametrize("kind", with_slice(["another", "staff"]))
def test_the_admin_shows_nothing_to_who_may_not_see_it(kind: str, ada: World) -> None:
    user = visitor(kind)
    client, before = client_of(user), people_and_turns.everything()
    shown = {"admin/", "admin/login/", "admin/logout/", "admin/jsi18n/", "admin/password_change/",
             "admin/password_change/done/"}  # fmt: skip
    for view in ADMIN:
        if view.route == "admin/logout/":
            continue
        for method in ("get", "post") if kind == "staff" else ("get",):
            response, body = answer(client, method, address(view, ada))
            assert WORD.encode() not in body, view
            if kind == "another" and view.route != "admin/login/":
                assert response["Location"].startswith("/admin/login/"), view
            elif view.route not in shown:
                assert response.status_code in (302, 403, 404, 405), (view, method)
                missing, empty = answer(client, method, address(view, ada, is_nobodys=True))
                assert response.status_code == missing.status_code, (view, method)
                assert body == empty
    assert people_and_turns.everything() == before


def test_reading_any_page_of_the_admin_changes_nothing(ada: World) -> None:
    client, before = client_of(visitor("superuser")), people_and_turns.everything()
    for view in ADMIN:
        response, _ = answer(client, "get", address(view, ada))
        assert response.status_code < 500, view
    assert people_and_turns.everything() == before


# Posts that are not from our own pages.


def test_no_post_is_taken_without_the_token_of_its_own_browser(ada: World) -> None:
    mine, others = Client(enforce_csrf_checks=True), Client(enforce_csrf_checks=True)
    for each in (mine, others):
        each.force_login(ada.user)
        each.get("/c/new/")
    mine.get("/accounts/again/")
    stolen = others.get("/c/new/").context["csrf_token"]
    text = {"text": "x"}
    forged: tuple[dict[str, Any], ...] = (
        {"data": text | {"csrfmiddlewaretoken": str(stolen)}},
        {"data": text},
        {"data": text, "headers": {"HX-Request": "true"}},
        {"data": text, "headers": {"X-CSRFToken": "x" * 64}},
        {"content_type": "text/plain", "data": '{"text": "x"}'},
    )
    before = people_and_turns.everything()
    for view in (*PAGES, *ADMIN):
        # Every kind of forgery for some of the pages, one for all.
        for sent in forged if view.name in ("send", "login", "delete_data") else forged[:1]:
            assert mine.post(address(view, ada), **sent).status_code == 403, (view, sent)
    for method in ("put", "patch", "delete"):
        assert getattr(mine, method)(f"/c/{ada.conversation.public_id}/").status_code == 403
    assert people_and_turns.everything() == before
