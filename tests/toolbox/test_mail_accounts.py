"""Mail accounts at rest: sealed, owner by owner, gone when they are removed."""

from __future__ import annotations

from typing import Any

import pytest
from asgiref.sync import async_to_sync

from conversations.models import Conversation, MailAccount
from conversations.toolbox.mail_accounts import (
    MOST_ACCOUNTS,
    AccountRefused,
    add_mail_account,
    change_mail_account,
    has_mail_account,
    list_mail_accounts,
    list_mail_providers,
    read_mail_account,
    read_mail_account_by_name,
    record_mail_use,
    remove_mail_account,
    remove_mail_accounts,
    renew_mail_secret,
)
from conversations.toolbox.mail_port import Mailboxes
from conversations.toolbox.secrets import SecretUnreadable
from tests.support import people_and_turns
from tools.mail.accounts import Account, Server
from tools.mail.errors import LoginError

pytestmark = pytest.mark.django_db
SECRET = "QxCanarySecretQ"


def account(name: str = "work", **more: Any) -> Account:
    imap, smtp = Server("imap.example.org", 993), Server("smtp.example.org", 587, "starttls")
    given = {"smtp": smtp, "secret": SECRET, **more}
    return Account(name, "ada@example.org", "ada", imap, **given)


def test_an_account_comes_back_as_it_was_given() -> None:
    ada = people_and_turns.person("ada")
    row = add_mail_account(owner_id=ada.pk, account=account(auth="token", folder="Archive"))
    back = read_mail_account(ada.pk, row.public_id)
    assert back == account(auth="token", folder="Archive")
    assert back is not None
    assert back.secret == SECRET
    assert read_mail_account_by_name(ada.pk, "work") == back
    reader = add_mail_account(owner_id=ada.pk, account=account("reader", smtp=None))
    found = read_mail_account(ada.pk, reader.public_id)
    assert found is not None
    assert found.smtp is None


def test_a_secret_is_stored_sealed_and_shown_by_nothing() -> None:
    ada = people_and_turns.person("ada")
    row = add_mail_account(owner_id=ada.pk, account=account())
    stored = MailAccount.objects.values().get(pk=row.pk)
    assert SECRET not in str(stored)
    assert SECRET not in repr((row, account(), str(row)))
    assert all("sealed_secret" in each.get_deferred_fields() for each in list_mail_accounts(ada.pk))


def test_a_sealed_secret_is_of_no_use_in_another_row() -> None:
    ada, eve = people_and_turns.person("ada"), people_and_turns.person("eve")
    hers = add_mail_account(owner_id=ada.pk, account=account())
    own = add_mail_account(owner_id=eve.pk, account=account(secret="other"))
    MailAccount.objects.filter(pk=own.pk).update(sealed_secret=hers.sealed_secret)
    with pytest.raises(SecretUnreadable):
        read_mail_account_by_name(eve.pk, "work")
    found = read_mail_account(eve.pk, own.public_id)
    assert found is not None
    assert found.secret == ""


def test_a_key_is_changed_by_a_new_one_before_the_old(settings: Any) -> None:
    ada = people_and_turns.person("ada")
    settings.AGENTWEB_SECRETS_KEY = ("old",)
    row = add_mail_account(owner_id=ada.pk, account=account())
    settings.AGENTWEB_SECRETS_KEY = ("new", "old")
    found = read_mail_account_by_name(ada.pk, "work")
    assert found is not None
    assert found.secret == SECRET
    change_mail_account(owner_id=ada.pk, public_id=row.public_id, account=found)
    settings.AGENTWEB_SECRETS_KEY = ("new",)
    assert read_mail_account_by_name(ada.pk, "work") == found
    settings.AGENTWEB_SECRETS_KEY = ("another",)
    with pytest.raises(SecretUnreadable):
        read_mail_account_by_name(ada.pk, "work")


@pytest.mark.django_db(transaction=True)
def test_a_secret_that_cannot_be_opened_is_said_to_the_model_and_to_the_person(
    settings: Any,
) -> None:
    ada = people_and_turns.person("ada")
    add_mail_account(owner_id=ada.pk, account=account())
    settings.AGENTWEB_SECRETS_KEY = ("another",)
    mail = Mailboxes(ada.pk)
    with pytest.raises(LoginError, match="enter it again on the page Settings, Mail"):
        async_to_sync(mail.find)("work")
    (row,) = list_mail_accounts(ada.pk)
    assert "enter it again" in row.problem
    assert async_to_sync(mail.names)() == ["work"]


def test_nobody_finds_changes_or_removes_the_account_of_another() -> None:
    ada, eve = people_and_turns.person("ada"), people_and_turns.person("eve")
    row = add_mail_account(owner_id=ada.pk, account=account())
    assert list_mail_accounts(eve.pk) == []
    assert read_mail_account_by_name(eve.pk, "work") is None
    assert read_mail_account(eve.pk, row.public_id) is None
    assert not remove_mail_account(owner_id=eve.pk, public_id=row.public_id)
    stolen = account("stolen")
    assert not change_mail_account(owner_id=eve.pk, public_id=row.public_id, account=stolen)
    record_mail_use(owner_id=eve.pk, name="work", problem="x")
    row.refresh_from_db()
    assert (row.name, row.problem) == ("work", "")


def test_a_name_is_given_once_for_each_person_and_accounts_are_counted() -> None:
    ada, eve = people_and_turns.person("ada"), people_and_turns.person("eve")
    row = add_mail_account(owner_id=ada.pk, account=account())
    add_mail_account(owner_id=eve.pk, account=account())
    with pytest.raises(AccountRefused):
        add_mail_account(owner_id=ada.pk, account=account())
    for n in range(MOST_ACCOUNTS - 1):
        add_mail_account(owner_id=ada.pk, account=account(f"number {n}"))
    with pytest.raises(AccountRefused):
        add_mail_account(owner_id=ada.pk, account=account("one more"))
    with pytest.raises(AccountRefused):
        change_mail_account(owner_id=ada.pk, public_id=row.public_id, account=account("number 1"))
    change_mail_account(owner_id=ada.pk, public_id=row.public_id, account=account("renamed"))
    assert read_mail_account_by_name(ada.pk, "renamed") is not None


def test_removing_an_account_leaves_nothing_of_it() -> None:
    ada, eve = people_and_turns.person("ada"), people_and_turns.person("eve")
    row = add_mail_account(owner_id=ada.pk, account=account())
    add_mail_account(owner_id=ada.pk, account=account("second"))
    add_mail_account(owner_id=eve.pk, account=account())
    chat = Conversation(owner=ada)
    assert has_mail_account(chat)
    assert remove_mail_account(owner_id=ada.pk, public_id=row.public_id)
    assert not remove_mail_account(owner_id=ada.pk, public_id=row.public_id)
    remove_mail_accounts(owner_id=ada.pk)
    assert not has_mail_account(chat)
    assert list(MailAccount.objects.values_list("owner_id", flat=True)) == [eve.pk]


def test_the_last_use_and_its_problem_are_kept_and_cut() -> None:
    ada = people_and_turns.person("ada")
    add_mail_account(owner_id=ada.pk, account=account())
    record_mail_use(owner_id=ada.pk, name="work", problem="x" * 5_000)
    (row,) = list_mail_accounts(ada.pk)
    assert len(row.problem) == 400
    assert row.used_at is not None
    record_mail_use(owner_id=ada.pk, name="work", problem="")
    assert list_mail_accounts(ada.pk)[0].problem == ""


def test_an_oauth_account_names_its_provider_and_keeps_a_renewed_token(settings: Any) -> None:
    settings.AGENTWEB_MAIL_PROVIDERS = (
        "acme https://acme.example/token client QxClientQ",
        "broken",
    )
    assert list(list_mail_providers()) == ["acme"]
    assert "QxClientQ" not in repr(list_mail_providers())
    ada = people_and_turns.person("ada")
    provider = list_mail_providers()["acme"]
    given = account(auth="refresh", provider=provider)
    add_mail_account(owner_id=ada.pk, account=given)
    assert read_mail_account_by_name(ada.pk, "work") == given
    renew_mail_secret(owner_id=ada.pk, name="work", secret="next")
    found = read_mail_account_by_name(ada.pk, "work")
    assert found is not None
    assert found.secret == "next"
    settings.AGENTWEB_MAIL_PROVIDERS = ()
    found = read_mail_account_by_name(ada.pk, "work")
    assert found is not None
    assert found.provider is None
