"""When sessions end: idle, and whole; pages and sockets go by the same date."""

from __future__ import annotations

import time
from typing import Any

import pytest
from django.contrib.sessions.backends.base import UpdateError
from django.db import OperationalError, connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from conversations.accounts import session_ends
from conversations.accounts.session_ends import begin_session, renew_session
from conversations.models import Session
from tests.support import people_and_turns
from tests.web.pages import client_of
from tests.web.tags import acting

pytestmark = pytest.mark.django_db
HOUR = 3_600


def hours_left() -> float:
    return (Session.objects.get().expire_date - timezone.now()).total_seconds() / HOUR


def pass_hours(client: Client, hours: float) -> None:
    """Make the session as old as it will be."""
    session = client.session
    for name in (session_ends.BEGAN, session_ends.MOVED):
        session[name] = int(session[name] - hours * HOUR)
    session.save()


@pytest.fixture
def client(settings: Any) -> Client:
    settings.AGENTWEB_SESSION_IDLE_HOURS, settings.AGENTWEB_SESSION_HOURS = 10, 24
    return client_of(people_and_turns.person())


def status(client: Client) -> int:
    found: int = client.get("/usage/").status_code
    return found


def test_a_session_ends_some_hours_after_the_last_request(client: Client) -> None:
    assert 9.9 < hours_left() <= 10
    pass_hours(client, 9)
    assert status(client) == 200
    assert 9.9 < hours_left() <= 10
    pass_hours(client, 10)
    assert status(client) == 302
    assert not Session.objects.exists()


def test_a_session_ends_some_hours_after_the_log_in_however_it_is_used(client: Client) -> None:
    for _ in range(2):
        pass_hours(client, 9)
        assert status(client) == 200
    assert 5.9 < hours_left() <= 6
    pass_hours(client, 6)
    assert status(client) == 302


def test_what_is_stored_in_a_session_does_not_move_its_end(client: Client) -> None:
    session = client.session
    begin_session(session, time.time() - 5 * HOUR)
    session["more"] = 1
    session.save()
    assert 4.9 < hours_left() <= 5


def test_most_requests_write_nothing(client: Client) -> None:
    status(client)
    with CaptureQueriesContext(connection) as asked:
        status(client)
    assert [each for each in asked if "UPDATE" in each["sql"]] == []


@pytest.mark.only_database("sqlite", "its connection can be told to refuse what is written")
def test_where_nothing_can_be_written_people_go_on_reading_and_nothing_else_is_lost_unsaid(
    client: Client,
) -> None:
    pass_hours(client, 9)
    client.raise_request_exception = False
    store = client.session
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA query_only = 1")
        try:
            assert status(client) == 200
            assert client.get("/accounts/login/").status_code == 302
            store["said"] = "Somebody tried many passwords"
            with pytest.raises(OperationalError):
                store.save()
        finally:
            cursor.execute("PRAGMA query_only = 0")
    assert time.time() - client.session[session_ends.MOVED] > 8 * HOUR
    assert status(client) == 200
    assert time.time() - client.session[session_ends.MOVED] < HOUR


def test_a_session_that_ended_meanwhile_is_no_failure_of_the_database(client: Client) -> None:
    store = client.session
    Session.objects.all().delete()
    with pytest.raises(UpdateError):
        store.save()


def test_a_session_from_before_the_rule_begins_now(client: Client) -> None:
    session = client.session
    del session[session_ends.BEGAN], session[session_ends.MOVED]
    session.save()
    assert status(client) == 200
    assert abs(client.session[session_ends.BEGAN] - time.time()) < HOUR


def test_without_limits_a_session_goes_on(settings: Any, client: Client) -> None:
    settings.AGENTWEB_SESSION_IDLE_HOURS = settings.AGENTWEB_SESSION_HOURS = 0
    session = client.session
    begin_session(session)
    assert renew_session(session, 9e9)
    assert session.get_expiry_age() > 24 * HOUR * 365


def location(path: str, **headers: str) -> str:
    """Return where a stranger's form is sent."""
    answer = Client().post(path, headers=headers)
    assert answer.status_code == 302
    found: str = answer["Location"]
    return found


def test_who_sends_a_form_without_a_session_comes_back_to_the_page_with_the_form() -> None:
    """Some addresses of forms are no pages: after the log-in there was a blank 405."""
    page = "http://testserver/settings/data/?a=1"
    back = "/accounts/login/?next=/settings/data/%3Fa%3D1"
    assert location("/settings/data/import/", Referer=page) == back
    for sender in ("", "http://elsewhere.example/settings/data/", "javascript:x"):
        assert location("/usage/limit/", Referer=sender) == "/accounts/login/?next=/"


def test_logging_out_does_not_lead_back(client: Client) -> None:
    answer = client.post("/accounts/logout/", headers={"Referer": "http://testserver/usage/"})
    assert answer["Location"] == "/accounts/login/"


@pytest.mark.parametrize(
    ("language", "words"), [("en", "older than your session"), ("de", "älter")]
)
def test_a_form_of_an_older_session_is_refused_on_a_page_of_ours(language: str, words: str) -> None:
    """As when somebody has logged in anew in another tab."""
    browser = Client(enforce_csrf_checks=True)
    answer = browser.post("/settings/chat/", headers={"Accept-Language": language})
    assert answer.status_code == 403
    html = answer.content.decode()
    assert words in html
    assert "CSRF" not in html
    assert not acting(html)
