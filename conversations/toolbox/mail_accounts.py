"""Mail accounts: added once the connection works, changed, used, removed with their secret.

A secret is sealed together with the id of its account, so a sealed text copied to another account's
row cannot be used there.
"""

from __future__ import annotations

from typing import cast
from uuid import UUID, uuid4

from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from conversations.conf import conf
from conversations.db import transact
from conversations.log.contents import read_contents
from conversations.log.legal_holds import is_owner_held, is_person_held
from conversations.models import Conversation, MailAccount, User
from conversations.rendering.numbers import write_number
from conversations.toolbox.secrets import SecretUnreadable, seal, unseal
from tools.mail.accounts import Account, Auth, Provider, Security, Server

MOST_ACCOUNTS = 10


class AccountRefused(Exception):
    """The account is refused: the name is taken, there are too many accounts, or it is held."""

    code = "mail_account_refused"


@transact
def add_mail_account(*, owner_id: int, account: Account) -> MailAccount:
    """Store an account with its secret sealed; raises AccountRefused."""
    # The lock on the person's row serialises concurrent additions.
    User.objects.select_for_update().only("pk").get(pk=owner_id)
    rows = MailAccount.objects.filter(owner_id=owner_id)
    if rows.count() >= MOST_ACCOUNTS:
        words = _("There can be at most %(most)s mail accounts.")
        raise AccountRefused(words % {"most": write_number(MOST_ACCOUNTS)})
    if rows.filter(name=account.name).exists():
        raise AccountRefused(_("You have an account of this name already."))
    row = MailAccount(public_id=uuid4(), owner_id=owner_id, name=account.name)
    row.address, row.login, row.auth = account.address, account.login, account.auth
    row.provider = account.provider.name if account.provider else ""
    row.imap_host, row.imap_port = account.imap.host, account.imap.port
    row.imap_security, row.folder = account.imap.security, account.folder
    if account.smtp is not None:
        row.smtp_host, row.smtp_port = account.smtp.host, account.smtp.port
        row.smtp_security = account.smtp.security
    row.sealed_secret = seal_mail_secret(row, account.secret)
    row.used_at = timezone.now()
    row.save()
    return row


@transact
def change_mail_account(*, owner_id: int, public_id: UUID, account: Account) -> bool:
    """Change an account's name, usual folder and secret; return whether it existed.

    Raises AccountRefused.
    """
    rows = MailAccount.objects.select_for_update()
    row = rows.filter(owner_id=owner_id, public_id=public_id).first()
    if row is None:
        return False
    row.name, row.folder, row.problem = account.name, account.folder, ""
    row.sealed_secret = seal_mail_secret(row, account.secret)
    try:
        with transaction.atomic():
            row.save(update_fields=["name", "folder", "problem", "sealed_secret"])
    except IntegrityError as error:
        raise AccountRefused(_("You have an account of this name already.")) from error
    return True


@transact
def remove_mail_account(*, owner_id: int, public_id: UUID) -> bool:
    """Delete an account and its secret; return whether it existed. Raises AccountRefused."""
    User.objects.select_for_update(no_key=True).only("pk").get(pk=owner_id)
    if is_person_held(owner_id):
        raise AccountRefused(
            _("You are under a legal hold: the account stays until it is released.")
        )
    count, __ = MailAccount.objects.filter(owner_id=owner_id, public_id=public_id).delete()
    return count > 0


@transact
def remove_mail_accounts(*, owner_id: int) -> None:
    """Delete all accounts of a person who is not held, as part of erasing their data."""
    User.objects.select_for_update(no_key=True).only("pk").get(pk=owner_id)
    MailAccount.objects.filter(~is_owner_held(), owner_id=owner_id).delete()


@transact
def renew_mail_secret(*, owner_id: int, name: str, secret: str) -> None:
    """Store the refresh token that a provider issued in place of the old one."""
    rows = MailAccount.objects.select_for_update().filter(owner_id=owner_id, name=name)
    for row in rows:
        row.sealed_secret = seal_mail_secret(row, secret)
        row.save(update_fields=["sealed_secret"])


@transact
def record_mail_use(*, owner_id: int, name: str, problem: str) -> None:
    """Store when an account was used last, and the error, "" for none."""
    MailAccount.objects.filter(owner_id=owner_id, name=name).update(
        used_at=timezone.now(), problem=problem[:400]
    )


def seal_mail_secret(row: MailAccount, secret: str) -> str:
    return seal(f"{row.public_id}\n{secret}")


def open_mail_secret(row: MailAccount) -> str:
    """Return an account's secret; raises SecretUnreadable."""
    place, __, secret = unseal(row.sealed_secret).partition("\n")
    if place != str(row.public_id):
        raise SecretUnreadable("A stored secret belongs to another account; enter it anew.")
    return secret


def list_mail_accounts(owner_id: int) -> list[MailAccount]:
    """Return the accounts without their secrets."""
    rows = MailAccount.objects.filter(owner_id=owner_id).defer("sealed_secret")
    return list(rows.order_by("name"))


def read_mail_account(owner_id: int, public_id: UUID) -> Account | None:
    """Return an account by its id, with an empty secret where it cannot be opened."""
    row = MailAccount.objects.filter(owner_id=owner_id, public_id=public_id).first()
    if row is None:
        return None
    try:
        return _build_account(row, open_mail_secret(row))
    except SecretUnreadable:
        return _build_account(row, "")


def read_mail_account_by_name(owner_id: int, name: str) -> Account | None:
    """Return an account with its secret by name; raises SecretUnreadable."""
    row = MailAccount.objects.filter(owner_id=owner_id, name=name).first()
    return None if row is None else _build_account(row, open_mail_secret(row))


def list_mail_providers() -> dict[str, Provider]:
    """Return the site's OAuth providers by name; incomplete settings are skipped."""
    rows = [tuple(each.split()) for each in conf.mail_providers]
    return {row[0]: Provider(*row) for row in rows if 3 <= len(row) <= 4}


def has_mail_account(conversation: Conversation) -> bool:
    if not read_contents(conversation).mail:
        return False
    return MailAccount.objects.filter(owner_id=conversation.owner_id).exists()


def _build_account(row: MailAccount, secret: str) -> Account:
    smtp = Server(row.smtp_host, row.smtp_port, cast("Security", row.smtp_security))
    return Account(
        name=row.name,
        address=row.address,
        login=row.login,
        imap=Server(row.imap_host, row.imap_port, cast("Security", row.imap_security)),
        smtp=smtp if row.smtp_host else None,
        auth=cast("Auth", row.auth),
        provider=list_mail_providers().get(row.provider),
        folder=row.folder,
        secret=secret,
    )
