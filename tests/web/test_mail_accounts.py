"""The page of mail accounts: working ones are added, errors are explained, no secret is shown."""

from __future__ import annotations

import logging
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client

from conversations.models import MailAccount, User
from conversations.toolbox.mail_accounts import read_mail_account_by_name
from conversations.web import mail_accounts
from tests.support import people_and_turns
from tests.support.mail_servers import PASSWORD, MailServer
from tools.mail.accounts import Account

pytestmark = pytest.mark.django_db
URL = "/settings/mail/"
WRONG = "QxCanarySecretQ"


@pytest.fixture
def ada() -> User:
    return people_and_turns.person("ada")


@pytest.fixture
def client(ada: User) -> Client:
    client = Client()
    client.force_login(ada)
    return client


@pytest.fixture
def sent(dovecot: MailServer, settings: Any) -> dict[str, Any]:
    """Return the form data for a mailbox of the real server."""
    ports = (dovecot.tls_port, dovecot.starttls_port)
    settings.AGENTWEB_MAIL_PRIVATE_HOSTS = tuple(f"127.0.0.1:{port}" for port in ports)
    settings.AGENTWEB_MAIL_CA_FILE = str(dovecot.authority.authority)
    return {
        "name": "work", "address": f"u{uuid4().hex[:9]}@example.org", "login": "",
        "auth": "password", "secret": PASSWORD,
        "imap_host": "127.0.0.1", "imap_port": dovecot.tls_port,
        "imap_security": "tls", "smtp_host": "", "smtp_port": 465, "smtp_security": "tls",
        "folder": "INBOX",
    }  # fmt: skip


def added(client: Client, sent: dict[str, Any]) -> MailAccount:
    assert client.post(URL, sent)["Location"] == URL
    return MailAccount.objects.get(name=sent["name"])


def test_an_account_that_works_is_added_and_shown_without_its_secret(
    client: Client, ada: User, sent: dict[str, Any]
) -> None:
    assert "Add an account" in client.get(URL).content.decode()
    row = added(client, sent)
    html = client.get(URL).content.decode()
    assert "The account works and was added." in html
    assert sent["address"] in html
    assert PASSWORD not in html
    assert row.sealed_secret not in html
    account = read_mail_account_by_name(ada.pk, "work")
    assert account is not None
    assert account.secret == PASSWORD


def test_the_same_server_is_reached_by_starttls(
    client: Client, sent: dict[str, Any], dovecot: MailServer
) -> None:
    added(client, sent | {"imap_port": dovecot.starttls_port, "imap_security": "starttls"})


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"secret": WRONG}, "refused the user name or the password"),
        ({"imap_host": "10.0.0.1", "imap_port": 993}, "is not on the public internet"),
        ({"imap_port": 22}, "port 22 is not open"),
        ({"folder": "Nowhere"}, "could not be opened"),
        ({"smtp_host": "127.0.0.1"}, "Reading works, but sending does not"),
        ({"imap_host": "imap.example.org/x"}, "Write the name of the server"),
        ({"imap_host": "a\r\nb"}, "Write the name of the server"),
        ({"name": "x\r\ny"}, "letters, digits, spaces"),
        ({"address": "ada"}, "valid email"),
        ({"address": "ada@bücher.example"}, "is not a mail address"),
        ({"address": '"a.b"@example.org'}, "is not a mail address"),
        ({"auth": "none"}, "valid choice"),
    ],
)
def test_what_does_not_work_is_said_and_nothing_is_kept(
    client: Client, sent: dict[str, Any], changed: dict[str, Any], words: str,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    caplog.set_level(logging.DEBUG)
    response = client.post(URL, sent | changed)
    html = response.content.decode()
    assert response.status_code == 400
    assert words in html
    assert 'role="alert"' in html
    assert (sent | changed)["secret"] not in html + caplog.text
    assert not MailAccount.objects.exists()


def test_a_certificate_that_is_not_trusted_is_said(
    client: Client, sent: dict[str, Any], settings: Any
) -> None:
    settings.AGENTWEB_MAIL_CA_FILE = ""
    assert "certificate is not valid" in client.post(URL, sent).content.decode()


def test_an_account_is_renamed_and_keeps_its_secret(
    client: Client, ada: User, sent: dict[str, Any]
) -> None:
    row = added(client, sent)
    MailAccount.objects.update(problem="old trouble")
    url = f"{URL}{row.public_id}/"
    assert "old trouble" in client.get(URL).content.decode()
    assert client.post(url, {"name": "office", "folder": "Drafts"}).status_code == 302
    account = read_mail_account_by_name(ada.pk, "office")
    assert account is not None
    assert (account.secret, account.folder) == (PASSWORD, "Drafts")
    assert "old trouble" not in client.get(URL).content.decode()
    refused = client.post(url, {"name": "office", "folder": "", "secret": WRONG})
    assert refused.status_code == 400
    assert WRONG not in refused.content.decode()
    assert read_mail_account_by_name(ada.pk, "office") == account


def test_the_last_problem_is_shown_in_the_language_of_the_person(client: Client, ada: User) -> None:
    row = MailAccount(public_id=uuid4(), owner=ada, name="work", imap_port=993)
    row.problem = "The server for sending refused the user name or the password."
    row.save()
    assert row.problem in client.get(URL).content.decode()
    html = client.get(URL, headers={"Accept-Language": "de"}).content.decode()
    assert "Der Server zum Senden hat den Benutzernamen" in html
    assert row.problem not in html


def test_an_account_that_was_removed_meanwhile_is_not_there(
    client: Client, sent: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    row = added(client, sent)

    def try_and_lose(account: Account) -> Account:
        MailAccount.objects.all().delete()
        return account

    monkeypatch.setattr(mail_accounts, "_try_account", try_and_lose)
    answer = client.post(f"{URL}{row.public_id}/", {"name": "office", "folder": ""})
    assert answer.status_code == 404


def test_an_account_whose_key_is_gone_is_saved_by_typing_the_password_again(
    client: Client, ada: User, sent: dict[str, Any], settings: Any
) -> None:
    row = added(client, sent)
    settings.AGENTWEB_SECRETS_KEY = ("another key",)
    assert client.get(URL).status_code == 200
    url, data = f"{URL}{row.public_id}/", {"name": "work", "folder": ""}
    assert client.post(url, data).status_code == 400
    assert client.post(url, data | {"secret": PASSWORD}).status_code == 302
    account = read_mail_account_by_name(ada.pk, "work")
    assert account is not None
    assert account.secret == PASSWORD


def test_an_account_is_removed_with_its_secret(client: Client, sent: dict[str, Any]) -> None:
    row = added(client, sent)
    assert client.post(f"{URL}{row.public_id}/remove/")["Location"] == URL
    assert not MailAccount.objects.exists()
    assert client.post(f"{URL}{row.public_id}/remove/").status_code == 404


def test_everything_of_a_person_erased_takes_the_accounts_along(
    client: Client, sent: dict[str, Any]
) -> None:
    added(client, sent)
    client.post("/settings/data/delete/", {"name": "ada"})
    assert not MailAccount.objects.exists()


def test_the_account_of_another_is_not_there(client: Client, sent: dict[str, Any]) -> None:
    row = added(client, sent)
    for kind in ({}, {"is_staff": True, "is_superuser": True}):
        eve = Client()
        eve.force_login(people_and_turns.person(f"eve{len(kind)}", **kind))
        assert sent["address"] not in eve.get(URL).content.decode()
        for url in (f"{URL}{row.public_id}/", f"{URL}{row.public_id}/remove/"):
            theirs, nobodys = (
                eve.post(each, {"name": "mine", "folder": ""})
                for each in (url, url.replace(str(row.public_id), str(uuid4())))
            )
            assert theirs.status_code == nobodys.status_code == 404
            assert theirs.content == nobodys.content
    row.refresh_from_db()
    assert row.name == "work"


def test_providers_of_tokens_are_offered_where_the_site_has_some(
    client: Client, sent: dict[str, Any], settings: Any
) -> None:
    assert "OAuth refresh token" not in client.get(URL).content.decode()
    assert client.post(URL, sent | {"auth": "refresh acme"}).status_code == 400
    settings.AGENTWEB_MAIL_PROVIDERS = ("acme https://10.0.0.1/token client QxClientQ",)
    assert "acme: OAuth refresh token" in client.get(URL).content.decode()
    html = client.post(URL, sent | {"auth": "refresh acme"}).content.decode()
    assert "acme gave no access token" in html
    assert "QxClientQ" not in html
    assert not MailAccount.objects.exists()
