"""Second factors: asked for after every way in, counted, sealed, enforced for groups.

Codes are computed by `cryptography`, an implementation of RFC 6238 that is not the one that checks.
"""

from __future__ import annotations

import base64
import re
import time
from io import StringIO
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from asgiref.sync import async_to_sync
from cryptography.hazmat.primitives.hashes import SHA1
from cryptography.hazmat.primitives.twofactor.totp import TOTP
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group
from django.contrib.auth.tokens import default_token_generator
from django.core.cache import cache
from django.core.management import call_command
from django.test import Client
from django.utils.http import urlsafe_base64_encode

from conversations.accounts.second_factors import list_second_factors
from conversations.models import AccountEvent, Conversation, SecondFactorRule, User
from tests.support import people_and_turns
from tests.web.pages import client_of, html_of, press
from tests.web.tabs import is_accepted, socket

pytestmark = pytest.mark.django_db(transaction=True)
PASSWORD = "correct horse battery"
SECURITY = "/settings/security/"


@pytest.fixture(autouse=True)
def forget() -> None:
    """Used codes and counts of another test's people."""
    cache.clear()


@pytest.fixture
def ada(db: None) -> User:
    user = User(username="ada", email="ada@example.org")
    user.set_password(PASSWORD)
    user.save()
    return user


def code_of(secret: str) -> str:
    key = base64.b32decode(secret)
    return TOTP(key, 6, SHA1(), 30).generate(int(time.time())).decode()


def confirm(client: Client, page: str) -> Any:
    """Open a page that asks who it is first; return the page."""
    asked = client.get(page)
    assert asked["Location"].startswith(f"{SECURITY}confirm/")
    return client.post(asked["Location"], {"secret": PASSWORD, "next": page}, follow=True)


def add_app(client: Client) -> str:
    """Add an authenticator app; return its key."""
    page = confirm(client, f"{SECURITY}app/").content.decode()
    found = re.search(r'id="app-key">([A-Z2-7]+)<', page)
    assert found
    done = client.post(f"{SECURITY}app/", {"code": code_of(found[1])})
    assert done["Location"] == f"{SECURITY}codes/"
    cache.clear()
    return found[1]


def attempt(client: Client, password: str = PASSWORD, **more: str) -> Any:
    return client.post("/accounts/login/", {"username": "ada", "password": password} | more)


def second(client: Client, code: str) -> Any:
    return client.post("/accounts/second/", {"code": code})


def is_in(client: Client) -> bool:
    return client.get("/usage/").status_code == 200


def test_after_the_password_the_code_of_the_app_is_asked_for(ada: User) -> None:
    key = add_app(client_of(ada))
    client = Client()
    assert attempt(client, next="/usage/")["Location"] == "/accounts/second/"
    assert not is_in(client)
    assert second(client, "000000").status_code == 200
    assert not is_in(client)
    assert second(client, code_of(key))["Location"] == "/usage/"
    assert is_in(client)


def test_a_code_is_taken_once_and_a_step_needs_its_password(ada: User) -> None:
    key = add_app(client_of(ada))
    client, thief = Client(), Client()
    assert second(thief, code_of(key))["Location"] == "/accounts/login/"
    attempt(client)
    code = code_of(key)
    second(client, code)
    attempt(thief)
    second(thief, code)
    assert not is_in(thief)


def test_guesses_at_codes_are_counted_like_those_at_passwords(ada: User) -> None:
    key = add_app(client_of(ada))
    client = Client()
    attempt(client)
    assert [second(client, f"00000{at}").status_code for at in range(6)] == [200] * 5 + [429]
    assert second(client, code_of(key)).status_code == 429
    assert not is_in(client)


def test_the_password_forgives_no_guesses_at_the_code(ada: User) -> None:
    add_app(client_of(ada))
    tried = 0
    for _ in range(6):
        client = Client()
        if attempt(client).status_code == 429:
            break
        tried += sum(second(client, f"00000{at}").status_code == 200 for at in range(4))
    assert tried == 5


def test_a_new_password_forgives_no_guesses_at_the_code_either(ada: User) -> None:
    add_app(client_of(ada))
    client = Client()
    attempt(client)
    assert [second(client, f"00000{at}").status_code for at in range(6)] == [200] * 5 + [429]
    link = f"/accounts/reset/{urlsafe_base64_encode(b'%d' % ada.pk)}/"
    form = client.get(f"{link}{default_token_generator.make_token(ada)}/")["Location"]
    new = "another horse battery"
    assert client.post(form, {"new_password1": new, "new_password2": new}).status_code == 302
    assert "known-device" not in client.cookies
    assert attempt(client, new).status_code == 429


@pytest.mark.parametrize("written", [" {} {}", "{}-{}", "{}.{}"])
def test_a_code_is_taken_once_whichever_process_it_reaches(ada: User, written: str) -> None:
    owner = client_of(ada)
    key = add_app(owner)
    client, thief = Client(), Client()
    attempt(client)
    code = code_of(key)
    second(client, code)
    assert is_in(client)
    # The memory of another process.
    cache.clear()
    attempt(thief)
    second(thief, written.format(code[:3], code[3:]))
    assert not is_in(thief)


def test_a_recovery_code_lets_in_once(ada: User) -> None:
    owner = client_of(ada)
    add_app(owner)
    html = html_of(owner, f"{SECURITY}codes/")
    codes = re.findall(r"<code>([0-9a-z]{8,})</code>", html)
    assert len(codes) == 10
    for lets_in in (True, False):
        client = Client()
        attempt(client)
        second(client, codes[0])
        assert is_in(client) == lets_in
    assert list_second_factors(ada).codes == 9


def test_the_key_of_the_app_and_the_codes_are_sealed(ada: User) -> None:
    key = add_app(client_of(ada))
    assert key not in str(list(Authenticator.objects.values_list("data", flat=True)))


def test_what_changes_factors_asks_who_it_is(ada: User) -> None:
    client = client_of(ada)
    pages = ("app/", "passkey/", "codes/new/")
    for page in pages:
        assert "/confirm/" in client.get(SECURITY + page)["Location"]
        assert "/confirm/" in client.post(SECURITY + page)["Location"]
    wrong = client.post(f"{SECURITY}confirm/", {"secret": "no"})
    assert wrong.status_code == 400
    found = [client.post(f"{SECURITY}confirm/", {"secret": "x"}).status_code for _ in range(6)]
    assert found[-1] == 429


def test_the_person_is_told_of_each_change(ada: User) -> None:
    client = client_of(ada)
    add_app(client)
    added = AccountEvent.objects.filter(user=ada, kind="factor_added")
    before = added.count()
    assert client.post(f"{SECURITY}codes/new/")["Location"] == f"{SECURITY}codes/"
    assert added.count() == before + 1
    assert client.post(f"{SECURITY}app/remove/")["Location"] == SECURITY
    kinds = {event.kind for event in AccountEvent.objects.filter(user=ada)}
    assert {"factor_added", "factor_removed"} <= kinds
    assert not Authenticator.objects.exists()
    attempt(other := Client())
    assert is_in(other)


def test_a_group_whose_members_must_have_a_factor(ada: User) -> None:
    group = Group.objects.create(name="Careful")
    SecondFactorRule.objects.create(group=group)
    ada.groups.add(group)
    client = Client()
    attempt(client)
    for path in ("/", "/usage/", "/c/new/", "/settings/account/", "/admin/"):
        assert client.get(path)["Location"] == SECURITY
    assert client.post("/c/start/", {"text": "x"})["Location"] == SECURITY
    # A script would take the page after a redirect for the answer.
    sent = press(client, "/c/start/", htmx=True, text="x")
    assert (sent.status_code, sent["HX-Redirect"], sent.content) == (409, SECURITY, b"")
    assert "Your group requires a second factor" in html_of(client, SECURITY)
    add_app(client)
    assert is_in(client)
    # The last factor of those who must have one stays.
    client.post(f"{SECURITY}app/remove/")
    assert list_second_factors(ada).has_app


def test_who_must_add_a_factor_reads_no_chat_by_socket_either(ada: User) -> None:
    group = Group.objects.create(name="Careful")
    SecondFactorRule.objects.create(group=group)
    ada.groups.add(group)
    attempt(client := Client())
    conversation = Conversation.objects.create(owner=ada)
    key = client.cookies["sessionid"].value
    path = f"/ws/c/{conversation.public_id}/"
    assert not async_to_sync(is_accepted)(socket(path, key))
    add_app(client)
    key = client.cookies["sessionid"].value
    assert async_to_sync(is_accepted)(socket(path, key))


@pytest.mark.parametrize("way", ["a factor was added", "no rule requires one"])
def test_who_need_add_no_factor_any_more_goes_everywhere_at_once(way: str, ada: User) -> None:
    group = Group.objects.create(name="Careful")
    rule = SecondFactorRule.objects.create(group=group)
    ada.groups.add(group)
    attempt(client := Client())
    attempt(phone := Client())
    assert not is_in(client)
    if way == "a factor was added":
        add_app(phone)
    else:
        rule.delete()
    path = f"/ws/c/{Conversation.objects.create(owner=ada).public_id}/"
    assert async_to_sync(is_accepted)(socket(path, client.cookies["sessionid"].value))
    assert is_in(client)
    # A rule binds from the next log-in.
    Authenticator.objects.all().delete()
    SecondFactorRule.objects.get_or_create(group=group)
    assert is_in(client)


def test_who_was_closed_out_since_the_password_is_told_so(ada: User) -> None:
    key = add_app(client_of(ada))
    attempt(client := Client())
    User.objects.update(is_active=False)
    answer = second(client, code_of(key))
    assert (answer.status_code, is_in(client)) == (403, False)
    assert b"closed by an administrator" in answer.content


def test_a_session_that_ended_says_that_a_second_step_follows(ada: User) -> None:
    add_app(client_of(ada))
    client = Client()
    sent = {"username": "ada", "password": PASSWORD}
    answer = client.post("/accounts/again/", sent)
    assert b"asks for a second step" in answer.content
    assert not is_in(client)


def test_what_a_person_has_lost_is_removed_by_a_command(ada: User) -> None:
    add_app(client_of(ada))
    call_command("second_factors", "ada", "--remove")
    client = Client()
    attempt(client)
    assert is_in(client)
    assert AccountEvent.objects.filter(user=ada, kind="factor_removed").exists()


def test_what_a_person_has_lost_is_removed_in_the_admin_and_on_record(ada: User) -> None:
    add_app(client_of(ada))
    root = client_of(people_and_turns.person("root", is_staff=True, is_superuser=True))
    page = f"/admin/conversations/user/{ada.pk}/lost-factors/"
    assert page.encode() in root.get(f"/admin/conversations/user/{ada.pk}/change/").content
    assert b"Remove all of them" in root.get(page).content
    assert list_second_factors(ada).has_app
    officer = client_of(people_and_turns.person("officer", is_staff=True))
    assert (officer.get(page).status_code, officer.post(page).status_code) == (403, 403)
    assert b"The second factors were removed." in root.post(page, follow=True).content
    client = Client()
    attempt(client)
    assert is_in(client)
    kinds = AccountEvent.objects.filter(user=ada).values_list("kind", flat=True)
    assert list(kinds).count("factor_removed") == 1
    entry = LogEntry.objects.get(object_id=str(ada.pk))
    assert (entry.user.get_username(), entry.get_change_message()) == (
        "root", "Removed the lost second factors",
    )  # fmt: skip
    assert b"This account has no second factor." in root.get(page).content
    root.post(page)
    assert LogEntry.objects.filter(object_id=str(ada.pk)).count() == 1
    assert root.get("/admin/conversations/user/999999/lost-factors/").status_code == 404


def test_the_admin_shows_no_secrets_of_factors() -> None:
    root = client_of(people_and_turns.person("root", is_staff=True, is_superuser=True))
    for path in ("mfa/authenticator", "account/emailaddress", "socialaccount/socialaccount"):
        assert root.get(f"/admin/{path}/").status_code == 404


def test_nothing_is_recorded_as_removed_where_there_was_nothing(ada: User) -> None:
    out = StringIO()
    call_command("second_factors", "ada", "--remove", stdout=out)
    assert "there is nothing to remove" in out.getvalue()
    assert not AccountEvent.objects.exists()
