"""Every sealed secret is found, opened by former keys, and sealed anew with the first one."""

from __future__ import annotations

import base64
from io import StringIO
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal.auth import TOTP
from cryptography.fernet import Fernet, InvalidToken
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.contrib.admin.models import LogEntry
from django.core.management import call_command
from django.test import Client

from agentweb.doctor.stored_data import check_secrets
from conversations.live.socket_access import has_token, socket_token
from conversations.models import BudgetAlert, MailAccount, McpServer, User
from conversations.toolbox import sealed_secrets
from conversations.toolbox.mail_accounts import open_mail_secret, seal_mail_secret
from conversations.toolbox.secrets import open_values, seal, unseal
from tests.support import people_and_turns

pytestmark = pytest.mark.django_db
OLD, NEW = "the former key of the site", "the present key of the site"


def call(*words: str) -> tuple[int, str]:
    out = StringIO()
    try:
        call_command("secrets", *words, stdout=out)
    except SystemExit as end:
        return int(end.code or 0), out.getvalue()
    return 0, out.getvalue()


@pytest.fixture
def ada(settings: Any) -> User:
    """Somebody with a secret of each kind, all sealed with the former key."""
    settings.SECRET_KEY = OLD
    user = people_and_turns.person("ada")
    account = MailAccount(owner=user, name="work", imap_host="mail.example", address="a@b.example")
    account.sealed_secret = seal_mail_secret(account, "hunter2")
    account.save()
    McpServer.objects.create(
        name="tickets", transport="http", url="https://m.example",
        sealed_headers=seal('{"X-Key": "word"}'),
    )  # fmt: skip
    BudgetAlert.objects.create(name="money", url="https://h.example", sealed_secret=seal("whsec_x"))
    TOTP.activate(user, "JBSWY3DPEHPK3PXP")
    RecoveryCodes.activate(user)
    settings.SECRET_KEY = NEW
    return user


def list_texts() -> list[str]:
    """Return the sealed texts of the database, found by how Fernet begins, not by our table."""
    rows = [*MailAccount.objects.values(), *McpServer.objects.values()]
    rows += BudgetAlert.objects.values()
    rows += [one.data for one in Authenticator.objects.all()]
    texts = [value for row in rows for value in row.values() if isinstance(value, str)]
    return [text for text in texts if text.startswith("gAAAA")]


def open_alone(text: str, key: str) -> bool:
    """Return whether a key alone opens it, by the library and the documented derivation."""
    made = HKDF(algorithm=SHA256(), length=32, salt=None, info=b"agentweb secrets at rest")
    try:
        Fernet(base64.urlsafe_b64encode(made.derive(key.encode()))).decrypt(text.encode())
    except InvalidToken:
        return False
    return True


def test_after_a_rotation_the_new_key_alone_opens_everything(ada: User, settings: Any) -> None:
    settings.SECRET_KEY_FALLBACKS = [OLD]
    codes = Authenticator.objects.get(type="recovery_codes").wrap().get_unused_codes()
    assert [open_alone(text, OLD) for text in list_texts()] == [True] * 5
    assert call("rotate", "--by", "ada") == (
        0, "5 sealed anew, 0 were already.\nFormer keys are needed no longer for them.\n",
    )  # fmt: skip
    settings.SECRET_KEY_FALLBACKS = []
    assert [open_alone(text, NEW) for text in list_texts()] == [True] * 5
    assert call() == (0, "All stored secrets can be opened.\n")
    assert open_mail_secret(MailAccount.objects.get()) == "hunter2"
    assert open_values(McpServer.objects.get().sealed_headers) == {"X-Key": "word"}
    assert unseal(Authenticator.objects.get(type="totp").data["secret"]) == "JBSWY3DPEHPK3PXP"
    assert Authenticator.objects.get(type="recovery_codes").wrap().get_unused_codes() == codes
    entry = LogEntry.objects.get(user=ada)
    assert entry.change_message.startswith("Sealed 5 secrets with the first key; 0 rows")
    client = Client()
    client.force_login(User.objects.create(username="root", is_staff=True, is_superuser=True))
    assert b"sealed secrets" in client.get("/admin/admin/logentry/").content


def test_a_rotation_that_was_interrupted_is_finished_by_the_next(
    ada: User, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.SECRET_KEY_FALLBACKS = [OLD]
    with monkeypatch.context() as patched:
        patched.setattr(sealed_secrets, "TABLES", sealed_secrets.TABLES[:1])
        assert sealed_secrets.rotate_secrets(actor=ada).sealed == 1
    done = sealed_secrets.rotate_secrets(actor=ada)
    assert (done.sealed, done.current) == (4, 1)
    before = list_texts()
    assert sealed_secrets.rotate_secrets(actor=ada).sealed == 0
    assert list_texts() == before


def test_what_no_key_opens_is_named_and_left(ada: User) -> None:
    before = list_texts()
    names = [f"mail account {MailAccount.objects.get().pk} of ada", "MCP server tickets"]
    names += ["budget alert money"]
    names += [f"second factor {one.pk} of ada" for one in Authenticator.objects.order_by("pk")]
    said = "".join(f"cannot be opened: {name}\n" for name in names)
    assert call() == (1, said)
    assert call("rotate", "--by", "ada") == (1, f"0 sealed anew, 0 were already.\n{said}")
    assert list_texts() == before
    [line] = check_secrets()
    assert (line.state, line.text) == ("failed", f"cannot be opened: {', '.join(names)}")
    assert "SECRET_KEY_FALLBACKS" in line.hint
    Authenticator.objects.all().delete()
    McpServer.objects.all().delete()
    BudgetAlert.objects.all().delete()
    MailAccount.objects.all().delete()
    assert [one.state for one in check_secrets()] == ["ok"]


def test_an_open_page_keeps_its_socket_while_the_former_key_is_there(settings: Any) -> None:
    settings.SECRET_KEY = OLD
    query = f"token={socket_token('session')}".encode()
    settings.SECRET_KEY = NEW
    assert not has_token(query, "session")
    settings.SECRET_KEY_FALLBACKS = [OLD]
    assert has_token(query, "session")
    assert not has_token(query, "another")
    assert not has_token(query, None)
