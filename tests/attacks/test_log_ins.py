"""Guessing passwords: counted on every page, for a name and an address, over all processes."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

import pytest
from django.contrib.auth import hashers
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from conversations.accounts import throttle
from conversations.accounts.throttle import (
    FIRST_WAIT,
    LONGEST_WAIT,
    LogInThrottled,
    admit_log_in,
    forgive_log_in,
    sweep_log_ins,
)
from conversations.models import FailedLogIns, User
from conversations.web.setup import read_setup_token
from tests.support import people_and_turns

pytestmark = pytest.mark.django_db
PASSWORD = "correct horse battery"
LOG_IN_PAGES = ("/accounts/login/", "/accounts/again/")


@pytest.fixture(autouse=True)
def ada(db: None) -> User:
    user = User(username="ada", is_staff=True)
    user.set_password(PASSWORD)
    user.save()
    return user


def attempt(
    page: str = LOG_IN_PAGES[0], name: str = "ada", word: str = "no", peer: str = "192.0.2.1"
) -> Any:
    return Client(REMOTE_ADDR=peer).post(page, {"username": name, "password": word})


def is_in(response: Any) -> bool:
    return "sessionid" in response.cookies


@pytest.mark.parametrize("page", LOG_IN_PAGES)
def test_after_five_failures_even_the_right_password_waits(page: str) -> None:
    assert [attempt(page).status_code for _ in range(5)] == [200] * 5
    for word in ("no", PASSWORD):
        refused = attempt(page, word=word)
        assert refused.status_code == 429
        assert 0 < int(refused["Retry-After"]) <= FIRST_WAIT.total_seconds()
        assert re.search(r"Wait \d+ seconds, then try again", refused.content.decode())
        assert not is_in(refused)


def test_the_words_name_a_link_only_where_mail_is_sent(settings: Any) -> None:
    for _ in range(5):
        attempt()
    for sends in (True, False):
        settings.SENDS_MAIL = sends
        words = attempt().content.decode()
        assert ("a link by e-mail" in words) == sends
        assert ("ask an administrator" in words) != sends


def test_a_log_in_after_many_failures_makes_nobody_at_its_address_wait(settings: Any) -> None:
    settings.AGENTWEB_LOG_IN_ATTEMPTS_OF_ADDRESS = 3
    for _ in range(3):
        attempt(name="nobody")
    past = timezone.now() - timedelta(minutes=1)
    FailedLogIns.objects.filter(until__isnull=False).update(until=past)
    assert [is_in(attempt(word=PASSWORD)) for _ in range(2)] == [True, True]


def test_the_log_in_pages_share_one_count_and_the_way_the_name_is_written_does_not_matter() -> None:
    names = ("ada", "Ada", "ADA", " ada", "ａｄａ")
    for page, name in zip([*LOG_IN_PAGES, *LOG_IN_PAGES, LOG_IN_PAGES[0]], names, strict=True):
        attempt(page, name)
    assert {attempt(page, word=PASSWORD).status_code for page in LOG_IN_PAGES} == {429}


def test_another_address_and_another_name_are_not_held_up() -> None:
    people_and_turns.person("eve").set_password(PASSWORD)
    for _ in range(6):
        attempt()
    assert is_in(attempt(word=PASSWORD, peer="192.0.2.2"))
    assert attempt(name="eve").status_code == 200


def test_a_success_clears_the_name_and_takes_its_attempt_from_the_address() -> None:
    for _ in range(4):
        attempt()
    assert is_in(attempt(word=PASSWORD))
    rows = FailedLogIns.objects.order_by("pk")
    assert [(row.peer, bool(row.name_digest), row.count) for row in rows] == [
        ("192.0.2.1", False, 4), ("", True, 4), ("", False, 4),
    ]  # fmt: skip
    assert {attempt().status_code for _ in range(4)} == {200}


def test_one_address_with_many_names_is_held_up_and_a_network_of_ipv6_is_one_address(
    settings: Any,
) -> None:
    settings.AGENTWEB_LOG_IN_ATTEMPTS_OF_ADDRESS = 8
    for at in range(8):
        assert attempt(name=f"name{at}", peer=f"2001:db8::{at:x}").status_code == 200
    assert attempt(name="new", peer="2001:db8::ffff:1").status_code == 429
    assert attempt(word=PASSWORD, peer="2001:db8::1").status_code == 429
    assert is_in(attempt(word=PASSWORD, peer="2001:db8:0:1::1"))
    assert FailedLogIns.objects.filter(peer="2001:db8::/64").count() == 9


def test_refused_attempts_leave_no_rows_and_do_not_prolong_the_wait() -> None:
    for _ in range(5):
        attempt()
    before = list(FailedLogIns.objects.values())
    for _ in range(5):
        attempt()
    assert list(FailedLogIns.objects.values()) == before


def until_refused(peer: str, name: str, now: Any) -> int:
    """Fail until a wait begins; give its seconds."""
    for _ in range(6):
        try:
            admit_log_in(peer=peer, name=name, now=now)
        except LogInThrottled as error:
            return error.seconds
    raise AssertionError


def test_waits_grow_to_a_longest_one_and_are_forgotten() -> None:
    now, waits = timezone.now(), []
    for _ in range(9):
        waits.append(until_refused("192.0.2.1", "ada", now))
        now += timedelta(seconds=waits[-1])
    assert waits[:5] == [30, 60, 120, 240, 480]
    assert waits[5:] == [LONGEST_WAIT.total_seconds()] * 4
    now += timedelta(hours=2)
    assert until_refused("192.0.2.1", "ada", now) == 30


def test_a_wait_by_a_clock_that_was_ahead_ends_when_it_is_set_back() -> None:
    now = timezone.now()
    for days in (400, 1):
        assert until_refused("192.0.2.1", "ada", now + timedelta(days=days)) == 30
    assert until_refused("192.0.2.1", "ada", now) == 30
    with pytest.raises(LogInThrottled):
        # Clocks of two machines differ a little.
        admit_log_in(peer="192.0.2.1", name="ada", now=now - timedelta(seconds=5))


def test_a_success_on_the_last_free_attempt_of_an_address_makes_nobody_wait(settings: Any) -> None:
    settings.AGENTWEB_LOG_IN_ATTEMPTS_OF_ADDRESS = 3
    for _ in range(2):
        attempt(name="nobody")
    for _ in range(3):
        assert is_in(attempt(word=PASSWORD))
    attempt(name="nobody")
    assert attempt(word=PASSWORD).status_code == 429


def test_no_limit_throttles_nobody(settings: Any) -> None:
    settings.AGENTWEB_LOG_IN_ATTEMPTS = settings.AGENTWEB_LOG_IN_ATTEMPTS_OF_ADDRESS = 0
    assert {attempt().status_code for _ in range(12)} == {200}
    assert is_in(attempt(word=PASSWORD))


@pytest.mark.django_db(transaction=True)
def test_a_crowd_at_once_gets_no_more_attempts_than_one_after_the_other() -> None:
    found = people_and_turns.crowd(12, lambda _: attempt().status_code)
    assert people_and_turns.failures(found) == []
    assert (found.count(200), found.count(429)) == (5, 7)


def test_a_name_that_nobody_has_costs_the_same_hashes_and_queries(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    people_and_turns.person("idle", is_active=False).set_password(PASSWORD)
    unusable = User(username="unusable")
    unusable.set_unusable_password()
    unusable.save()
    encode, hashed = hashers.MD5PasswordHasher.encode, []

    def counted(self: Any, password: str, salt: str) -> str:
        hashed.append(password)
        return encode(self, password, salt)

    monkeypatch.setattr(hashers.MD5PasswordHasher, "encode", counted)
    attempt(name="first")
    costs = {}
    for name in ("ada", "nobody", "idle", "unusable", "x" * 150):
        hashed.clear()
        with CaptureQueriesContext(connection) as asked:
            assert attempt(name=name).status_code == 200
        costs[name] = len(hashed), len(asked)
    assert len(set(costs.values())) == 1, costs
    assert costs["ada"][0] == 1


def test_what_was_typed_is_neither_logged_nor_kept(caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(6):
        attempt(name="hunter2-my-password", word="s3cret-word")
        attempt(word="s3cret-word")
    told = caplog.text + str(list(FailedLogIns.objects.values()))
    assert "an unknown name" in caplog.text
    assert str(User.objects.get().public_id) in caplog.text
    assert "192.0.2.1" in caplog.text
    assert "hunter2" not in told
    assert "s3cret" not in told


def test_the_old_password_is_not_guessed_on_the_settings_page_either(ada: User) -> None:
    client = Client()
    client.force_login(ada)
    sent = {"old_password": "no", "new_password1": "x", "new_password2": "x"}
    found = [client.post("/settings/account/", sent).status_code for _ in range(7)]
    assert found == [200] * 5 + [429] * 2
    assert client.get("/admin/password_change/")["Location"] == "/settings/account/"


def test_the_admin_has_no_log_in_page_of_its_own(ada: User) -> None:
    sent = {"username": "ada", "password": PASSWORD}
    for method in ("get", "post"):
        answer = getattr(Client(), method)("/admin/login/?next=/admin/auth/", sent)
        assert answer["Location"].startswith("/accounts/login/?next=/admin/")
        assert not is_in(answer)
    client = Client()
    client.force_login(people_and_turns.person("eve"))
    assert client.get("/admin/login/").status_code == 403
    client.force_login(ada)
    assert client.get("/admin/login/")["Location"] == "/admin/"


def test_the_link_of_the_first_run_is_not_guessed(settings: Any, tmp_path: Any) -> None:
    User.objects.all().delete()
    settings.DATA_DIR, settings.AGENTWEB_LOG_IN_ATTEMPTS_OF_ADDRESS = tmp_path, 4
    right = f"/setup/{read_setup_token()}/"
    client = Client()
    assert [client.get(right).status_code for _ in range(6)] == [200] * 6
    assert [client.get(f"/setup/{at}/").status_code for at in range(6)] == [404] * 4 + [429] * 2
    answer = client.get(right)
    assert (answer.status_code, int(answer["Retry-After"]) > 0) == (429, True)
    assert b"Wait 30 seconds" in answer.content


def test_staff_lift_a_wait_in_the_admin(ada: User) -> None:
    for _ in range(6):
        attempt()
    row = FailedLogIns.objects.get(user=ada, peer="192.0.2.1")
    other, root = Client(), Client()
    other.force_login(people_and_turns.person("bob", is_staff=True))
    root.force_login(people_and_turns.person("root", is_staff=True, is_superuser=True))
    page = f"/admin/conversations/failedlogins/{row.pk}/delete/"
    assert other.post(page, {"post": "yes"}).status_code == 403
    shown = root.get("/admin/conversations/failedlogins/?state=waits").content.decode()
    assert "192.0.2.1" in shown
    assert row.name_digest not in shown
    assert root.post(page, {"post": "yes"}).status_code == 302
    assert is_in(attempt(word=PASSWORD))


def test_counts_that_no_longer_matter_are_swept() -> None:
    now = timezone.now()
    for peer, name in (("192.0.2.1", "ada"), ("192.0.2.2", "eve")):
        for _ in range(5 if peer == "192.0.2.1" else 1):
            admit_log_in(peer=peer, name=name, now=now)
    assert sweep_log_ins(now=now + timedelta(minutes=59)) == 0
    later = now + throttle.FORGOTTEN_AFTER + timedelta(seconds=1)
    # The address and the name of those who need not wait, the name everywhere twice, the site.
    assert sweep_log_ins(now=later) == 6
    assert sweep_log_ins(now=later + timedelta(minutes=1)) == 1
    assert not FailedLogIns.objects.exists()


@pytest.mark.parametrize("peer", ["", "unix:", "::ffff:192.0.2.1", "fe80::1%eth0", "a\0b" * 99])
def test_any_peer_is_counted(peer: str) -> None:
    admit_log_in(peer=peer, name="ada")
    forgive_log_in(peer=peer, name="ada")
    assert FailedLogIns.objects.exclude(peer="").get().peer in ("unknown", "192.0.2.1", "fe80::/64")


@pytest.mark.parametrize(
    "name", ["\0", "\ud800", "\uffff", "x" * 1_000_000, "\u202eada", "\U000e0041"]
)
def test_any_name_is_answered(name: str) -> None:
    typed = {"username": name, "password": "\0\ud800"}
    body = urlencode({key: word.encode("utf-8", "surrogatepass") for key, word in typed.items()})
    form = "application/x-www-form-urlencoded"
    for page in LOG_IN_PAGES:
        assert Client().post(page, body, content_type=form).status_code == 200
