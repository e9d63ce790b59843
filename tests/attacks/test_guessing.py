"""A thousand guesses at one account from a thousand addresses: few judged, the owner gets in, told.

What was judged is counted where Django computes a password's hash, not by the throttle's own rows.
"""

from __future__ import annotations

import contextlib
import re
import threading
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth import hashers
from django.core import mail
from django.test import Client
from django.utils import timezone

from conversations.accounts import account_mail
from conversations.accounts.throttle import LogInThrottled, admit_log_in
from conversations.models import AccountEvent, User
from tests.support import people_and_turns
from tests.support.one_database import ON_SQLITE, with_slice

pytestmark = pytest.mark.django_db(transaction=True)
PASSWORD, NEW = "correct horse battery", "another horse battery"
HOUR = 3_600.0
#: Seconds at which the guesses come.
PACES = {
    "evenly": [at * 3.6 for at in range(1_000)],
    "around the hour": [HOUR - 1 + at * 0.002 for at in range(1_000)],
    "for two hours": [at * 7.2 for at in range(1_000)],
}


@pytest.fixture(autouse=True)
def ada(db: None) -> User:
    user = User(username="ada", email="ada@example.org")
    user.set_password(PASSWORD)
    user.save()
    return user


@pytest.fixture
def hashed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The passwords that were judged."""
    found: list[str] = []
    encode = hashers.MD5PasswordHasher.encode

    def counted(self: Any, password: str, salt: str) -> str:
        found.append(password)
        return encode(self, password, salt)

    monkeypatch.setattr(hashers.MD5PasswordHasher, "encode", counted)
    return found


def attempt(client: Client, password: str) -> Any:
    return client.post("/accounts/login/", {"username": "ada", "password": password})


def address_of(at: int) -> str:
    return f"10.{at >> 8}.{at & 255}.7"


def guess(at: int) -> int:
    status: int = attempt(Client(REMOTE_ADDR=address_of(at)), f"guess {at}").status_code
    return status


def attack(count: int = 60) -> None:
    assert {guess(at) for at in range(count)} == {200, 429}


def wait_for_mails() -> list[Any]:
    """Return the mails that were sent, once both of their threads are done."""
    both_are_free = threading.Barrier(2)
    for waiting in [account_mail._senders.submit(both_are_free.wait, 60) for _ in range(2)]:
        waiting.result(60)
    return list(mail.outbox)


@ON_SQLITE
def test_of_a_thousand_guesses_at_once_at_most_a_hundred_are_judged(hashed: list[str]) -> None:
    found = [guess(at) for at in range(1_000)]
    assert len(hashed) == found.count(200)
    assert found.count(429) == 1_000 - len(hashed)
    assert 50 <= len(hashed) <= 100


@pytest.mark.parametrize("pace", with_slice(PACES))
def test_at_no_pace_are_more_than_a_hundred_an_hour_admitted(pace: str) -> None:
    """What every check of a password asks first, without the page around it."""
    start, admitted = timezone.now(), []
    for at, seconds in enumerate(PACES[pace]):
        now = start + timedelta(seconds=seconds)
        with contextlib.suppress(LogInThrottled):
            admit_log_in(peer=address_of(at), name="ada", now=now)
            admitted.append(seconds)
    assert len(admitted) >= 50
    for begin in admitted:
        assert sum(begin <= each < begin + HOUR for each in admitted) <= 100


def test_another_account_is_not_held_up_by_them(ada: User) -> None:
    eve = User(username="eve")
    eve.set_password(PASSWORD)
    eve.save()
    attack()
    sent = {"username": "eve", "password": PASSWORD}
    assert Client().post("/accounts/login/", sent).status_code == 302


def test_the_site_has_a_limit_over_all_names(settings: Any) -> None:
    settings.AGENTWEB_LOG_IN_ATTEMPTS_OF_SITE = 20
    found = []
    for at in range(30):
        client = Client(REMOTE_ADDR=f"10.0.{at}.7")
        sent = {"username": f"name{at}", "password": "x"}
        found.append(client.post("/accounts/login/", sent).status_code)
    assert found == [200] * 10 + [429] * 20


def test_a_device_of_before_gets_in_and_is_told_once(ada: User) -> None:
    owner = Client(REMOTE_ADDR="192.0.2.9")
    assert attempt(owner, PASSWORD).status_code == 302
    owner.post("/accounts/logout/")
    attack()
    assert attempt(Client(REMOTE_ADDR="192.0.2.9"), PASSWORD).status_code == 429
    assert attempt(owner, PASSWORD).status_code == 302
    assert "Somebody tried many passwords" in owner.get("/c/new/").content.decode()
    assert "Somebody tried many passwords" not in owner.get("/c/new/").content.decode()
    assert "Somebody guessed at your password" in owner.get("/settings/account/").content.decode()
    events = AccountEvent.objects.filter(user=ada)
    assert [event.kind for event in events] == ["guessed"]
    told = wait_for_mails()
    assert [each.to for each in told] == [["ada@example.org"]]
    assert "Somebody guessed at your password" in told[0].subject


def test_a_known_device_is_held_up_by_its_own_guesses_and_is_of_one_account(ada: User) -> None:
    people_and_turns.person("eve").set_password(PASSWORD)
    owner = Client(REMOTE_ADDR="192.0.2.9")
    attempt(owner, PASSWORD)
    owner.post("/accounts/logout/")
    assert [attempt(owner, "no").status_code for _ in range(6)] == [200] * 5 + [429]
    stolen = Client(REMOTE_ADDR="192.0.2.10")
    stolen.cookies = owner.cookies
    assert attempt(stolen, PASSWORD).status_code == 429
    forged = Client(REMOTE_ADDR="192.0.2.11")
    forged.cookies["known-device"] = owner.cookies["known-device"].value[:-2] + "xx"
    assert attempt(forged, PASSWORD).status_code == 302


def test_a_link_by_mail_lets_the_owner_in_while_guesses_go_on(settings: Any, ada: User) -> None:
    settings.SENDS_MAIL = True
    attack()
    owner = Client(REMOTE_ADDR="192.0.2.9")
    assert attempt(owner, PASSWORD).status_code == 429
    owner.post("/accounts/reset/", {"email": "ada@example.org"})
    letter = next(each for each in wait_for_mails() if "new password" in each.subject)
    link = re.search(r"http://testserver(\S+)", letter.body)
    assert link
    form = owner.get(link[1])["Location"]
    sent = {"new_password1": NEW, "new_password2": NEW}
    assert owner.post(form, sent)["Location"] == "/accounts/login/"
    attack()
    assert attempt(owner, NEW).status_code == 302
