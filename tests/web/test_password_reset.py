"""A forgotten password and a new e-mail address: links that work once, for their person alone."""

from __future__ import annotations

import re
from typing import Any, ClassVar

import pytest
from django.test import Client

from conversations.accounts.people import make_email_token
from conversations.models import AccountEvent, User
from tests.attacks.test_guessing import NEW, PASSWORD, ada, attempt, wait_for_mails
from tests.support import people_and_turns
from tests.web.pages import client_of

__all__ = ["ada"]
pytestmark = pytest.mark.django_db(transaction=True)
SENT = {"new_password1": NEW, "new_password2": NEW}


@pytest.fixture(autouse=True)
def mailbox(settings: Any) -> None:
    settings.SENDS_MAIL = True


def links() -> list[str]:
    found = [re.search(r"http://testserver(\S+)", each.body) for each in wait_for_mails()]
    return [each[1] for each in found if each]


def ask(address: str = "ada@example.org", **headers: Any) -> Any:
    return Client(**headers).post("/accounts/reset/", {"email": address})


def test_the_answer_is_the_same_whether_an_account_has_the_address() -> None:
    answers = [ask(), ask("nobody@example.org")]
    assert {each["Location"] for each in answers} == {"/accounts/reset/sent/"}
    assert len(links()) == 1


def test_a_link_works_once_and_ends_the_other_sessions(ada: User) -> None:
    other = client_of(ada)
    ask()
    client, link = Client(), links()[0]
    form = client.get(link)["Location"]
    assert link.split("/")[-2] not in form
    assert client.post(form, SENT).status_code == 302
    assert other.get("/c/new/").status_code == 302
    assert b"used before, or is too old" in Client().get(link).content
    assert attempt(Client(), PASSWORD).status_code == 200
    assert attempt(client, NEW).status_code == 302
    kinds = {event.kind for event in AccountEvent.objects.all()}
    assert kinds == {"reset_asked", "password_reset"}


class Meanwhile:
    """A validator of passwords: while one is judged, somebody closes or changes the account."""

    change: ClassVar[dict[str, Any]] = {}

    def validate(self, password: str, user: User | None = None) -> None:
        User.objects.update(**self.change)

    def get_help_text(self) -> str:
        return ""


@pytest.mark.parametrize("way", ["the old password", "a link"])
def test_a_new_password_undoes_no_change_by_others(
    way: str, ada: User, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, page, sent = client_of(ada), "/settings/account/", SENT | {"old_password": PASSWORD}
    if way == "a link":
        ask()
        page = client.get(links()[0])["Location"]
    settings.AUTH_PASSWORD_VALIDATORS = [{"NAME": f"{__name__}.Meanwhile"}]
    monkeypatch.setattr(Meanwhile, "change", {"is_active": False})
    assert client.post(page, sent).status_code == 403
    ada.refresh_from_db()
    assert (ada.is_active, ada.check_password(PASSWORD)) == (False, True)
    assert not AccountEvent.objects.filter(kind__startswith="password").exists()
    User.objects.update(is_active=True)
    monkeypatch.setattr(Meanwhile, "change", {"email": "new@example.org", "is_staff": True})
    assert client.post(page, sent).status_code == 302
    ada.refresh_from_db()
    assert (ada.email, ada.is_staff) == ("new@example.org", True)
    assert ada.check_password(NEW)


def test_an_account_is_sent_few_links_an_hour_and_an_inactive_one_none(ada: User) -> None:
    for at in range(8):
        ask(REMOTE_ADDR=f"192.0.2.{at}")
    assert len(links()) == 5
    User.objects.update(is_active=False)
    AccountEvent.objects.all().delete()
    ask()
    assert len(links()) == 5


def test_asking_is_counted_by_address(settings: Any) -> None:
    settings.AGENTWEB_LOG_IN_ATTEMPTS_OF_ADDRESS = 3
    assert [ask().status_code for _ in range(5)] == [302] * 3 + [429] * 2


def test_without_a_mail_server_the_pages_say_so(settings: Any, ada: User) -> None:
    settings.SENDS_MAIL = False
    assert b"does not send e-mail yet" in Client().get("/accounts/reset/").content
    assert b"does not send e-mail yet" in client_of(ada).get("/settings/account/address/").content


def test_an_address_is_changed_once_its_link_was_opened_by_its_person(ada: User) -> None:
    client = client_of(ada)
    page = "/settings/account/address/"
    wrong = client.post(page, {"email": "new@example.org", "secret": "no"})
    assert wrong.status_code == 400
    sent = {"email": "new@example.org", "secret": PASSWORD}
    assert client.post(page, sent)["Location"] == "/settings/account/"
    link = links()[0]
    assert client_of(people_and_turns.person("eve")).get(link).status_code == 404
    assert b"new@example.org" in client.get(link).content
    assert User.objects.get(pk=ada.pk).email == "ada@example.org"
    assert client.post(link)["Location"] == "/settings/account/"
    assert User.objects.get(pk=ada.pk).email == "new@example.org"
    assert client.get(link).status_code == 404
    # The old address is told.
    assert [each.to for each in wait_for_mails()] == [["new@example.org"], ["ada@example.org"]]


def test_an_account_is_sent_few_links_to_new_addresses_an_hour(ada: User) -> None:
    client, page = client_of(ada), "/settings/account/address/"
    sent = [{"email": f"new{at}@example.org", "secret": PASSWORD} for at in range(7)]
    answers = [client.post(page, each) for each in sent]
    assert [each.status_code for each in answers] == [302] * 5 + [429] * 2
    assert b"Wait an hour" in answers[-1].content
    assert len(links()) == 5


def test_links_that_do_not_work_are_counted_by_address(settings: Any) -> None:
    settings.AGENTWEB_LOG_IN_ATTEMPTS_OF_ADDRESS = 3
    found = [Client().get(f"/accounts/reset/MQ/guess-{at}/").status_code for at in range(5)]
    assert found == [200] * 3 + [429] * 2


def test_the_event_of_a_new_password_has_the_address_it_came_from() -> None:
    ask()
    client = Client(REMOTE_ADDR="192.0.2.7")
    client.post(client.get(links()[0])["Location"], SENT)
    assert AccountEvent.objects.get(kind="password_reset").peer == "192.0.2.7"


def test_a_link_of_another_person_or_a_changed_one_is_nothing(ada: User) -> None:
    eve = people_and_turns.person("eve")
    token = make_email_token(eve, "eve@example.org")
    for each in (token, token[:-1] + "x", "x"):
        assert client_of(ada).post(f"/settings/account/address/{each}/").status_code == 404
