"""A person sees where they are logged in, and ends one session, the others, or all."""

from __future__ import annotations

import re
from datetime import timedelta
from importlib import import_module
from typing import Any

import pytest
from django.apps import apps
from django.contrib.sessions.models import Session as FormerSession
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.utils import timezone

from conversations.accounts.devices import describe_device, shorten_address
from conversations.accounts.sessions import sweep_sessions
from conversations.models import Session, User
from tests.support import people_and_turns

pytestmark = pytest.mark.django_db
PAGE, PASSWORD = "/settings/account/sessions/", "correct horse battery"
#: As MDN and the browsers' makers publish them.
FIREFOX = "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:140.0) Gecko/20100101 Firefox/140.0"
SAFARI = (
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15"
    " (KHTML, like Gecko) Version/18.6 Mobile/15E148 Safari/604.1"
)
CHROME = (
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko)"
    " Chrome/141.0.0.0 Safari/537.36"
)


@pytest.fixture
def ada() -> User:
    user = people_and_turns.person("ada")
    user.set_password(PASSWORD)
    user.save()
    return user


def browser(agent: str = FIREFOX, peer: str = "203.0.113.9", name: str = "ada") -> Client:
    client = Client(headers={"User-Agent": agent}, REMOTE_ADDR=peer)
    sent = {"username": name, "password": PASSWORD}
    assert client.post("/accounts/login/", sent).status_code == 302
    return client


def text(client: Client) -> str:
    return " ".join(client.get(PAGE).content.decode().split())


def names(client: Client) -> list[str]:
    return re.findall(r'name="name" value="(\w+)"', client.get(PAGE).content.decode())


def is_in(client: Client) -> bool:
    return bool(client.get("/usage/").status_code == 200)


def end(client: Client, name: str) -> Any:
    return client.post(f"{PAGE}end/", {"name": name})


def test_the_page_lists_each_browser_by_words_and_network_and_marks_this_one(ada: User) -> None:
    here, _ = browser(), browser(SAFARI, "2001:db8:7:1::5")
    found = re.findall(r"<strong>(.*?)</strong>.*?<bdi>(.*?)</bdi>", text(here))
    assert found == [("Firefox, Windows", "203.0.113.0/24"), ("Safari, iPhone", "2001:db8:7::/48")]
    assert text(here).index("This one") < text(here).index("Safari")
    assert "203.0.113.9" not in text(here)
    keys = Session.objects.values_list("session_key", flat=True)
    assert not [key for key in keys if key in text(here)]


def test_one_session_is_ended_and_the_others_go_on(ada: User) -> None:
    here, there, third = browser(), browser(SAFARI), browser(CHROME)
    lost = names(there)[0]
    end(here, lost)
    assert "Logged out there." in text(here)
    assert [is_in(one) for one in (here, there, third)] == [True, False, True]
    end(here, lost)
    assert "had ended already" in text(here)
    assert end(here, names(here)[0])["Location"] == "/accounts/login/"
    assert [is_in(one) for one in (here, third)] == [False, True]


def test_nobody_ends_the_session_of_another(ada: User) -> None:
    mine, eve = browser(), people_and_turns.person("eve")
    eve.set_password(PASSWORD)
    eve.save()
    other = browser(name="eve")
    end(other, names(mine)[0])
    end(other, Session.objects.get(user=ada).session_key)
    assert is_in(mine)
    assert len(names(other)) == 1


def test_all_others_and_everywhere(ada: User) -> None:
    here, there = browser(), browser(SAFARI)
    here.post("/settings/account/others/")
    assert [is_in(here), is_in(there)] == [True, False]
    assert len(names(here)) == 1
    there = browser(SAFARI)
    assert there.post("/settings/account/everywhere/")["Location"] == "/accounts/login/"
    assert [is_in(here), is_in(there)] == [False, False]


def test_the_time_last_seen_follows_requests_but_is_seldom_written(ada: User) -> None:
    here = browser()
    session = here.session
    session["moved"] -= 1_200
    session.save()
    assert timezone.now() - Session.objects.get().seen_at > timedelta(minutes=19)  # type: ignore[operator]
    here.get("/usage/", REMOTE_ADDR="198.51.100.4")
    row = Session.objects.get()
    assert timezone.now() - row.seen_at < timedelta(minutes=5)  # type: ignore[operator]
    assert row.network == "198.51.100.0/24"


def test_expired_sessions_are_deleted_by_the_sweep_and_by_django_s_command(ada: User) -> None:
    for work in (sweep_sessions, lambda: call_command("clearsessions")):
        here, there = browser(), browser(SAFARI)
        mine = Session.objects.get(session_key=here.session.session_key)
        Session.objects.filter(pk=mine.pk).update(expire_date=timezone.now())
        assert names(there) == names(there)[:1]
        work()
        assert [one.session_key for one in Session.objects.all()] == [there.session.session_key]
        Session.objects.all().delete()


def test_sessions_of_an_older_version_go_on(ada: User) -> None:
    here = browser()
    row = Session.objects.get()
    parts = {"session_data": row.session_data, "expire_date": row.expire_date}
    FormerSession.objects.create(session_key=row.session_key, **parts)
    FormerSession.objects.create(session_key="odd", session_data="x", expire_date=row.expire_date)
    row.delete()
    migration = import_module("conversations.migrations.0043_sessions")
    migration.move_sessions(apps, connection.schema_editor())
    assert is_in(here)
    assert Session.objects.get().user == ada
    assert Session.objects.get().began_at == row.began_at
    assert not FormerSession.objects.exists()


@pytest.mark.parametrize(
    ("agent", "words"),
    [
        (FIREFOX, "Firefox, Windows"),
        (SAFARI, "Safari, iPhone"),
        (CHROME, "Chrome, Linux"),
        (f"{CHROME} Edg/141.0", "Edge, Linux"),
        (CHROME.replace("X11; Linux x86_64", "Linux; Android 10; K"), "Chrome, Android"),
        ("curl/8.16.0", ""),
        ("", ""),
        ("<script>\0" * 10_000, ""),
    ],
)
def test_a_device_is_described_in_words_of_ours(agent: str, words: str) -> None:
    assert describe_device(agent) == words


@pytest.mark.parametrize(
    ("peer", "network"),
    [
        ("203.0.113.9", "203.0.113.0/24"),
        ("::ffff:203.0.113.9", "203.0.113.0/24"),
        ("fe80::1%eth0", "fe80::/48"),
        ("", ""),
        ("unix:", ""),
    ],
)
def test_of_an_address_the_network_is_kept(peer: str, network: str) -> None:
    assert shorten_address(peer) == network
