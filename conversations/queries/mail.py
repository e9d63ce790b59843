"""The mail accounts of one person, and of nobody else."""

from __future__ import annotations

from typing import cast
from uuid import UUID

from conversations.conf import conf
from conversations.models import Conversation, MailAccount
from conversations.services.mail import opened
from conversations.services.secrets import SecretUnreadable
from tools.mail.accounts import Account, Auth, Provider, Security, Server


def mail_accounts(owner_id: int) -> list[MailAccount]:
    """List the accounts without their secrets."""
    rows = MailAccount.objects.filter(owner_id=owner_id).defer("sealed_secret")
    return list(rows.order_by("name"))


def mail_account_for(owner_id: int, public_id: UUID) -> Account | None:
    """Give an account by its id, with no secret where it cannot be opened any more."""
    row = MailAccount.objects.filter(owner_id=owner_id, public_id=public_id).first()
    if row is None:
        return None
    try:
        return _account(row, opened(row))
    except SecretUnreadable:
        return _account(row, "")


def mail_account_named(owner_id: int, name: str) -> Account | None:
    """Give an account with its secret, by its name. Raises SecretUnreadable."""
    row = MailAccount.objects.filter(owner_id=owner_id, name=name).first()
    return None if row is None else _account(row, opened(row))


def mail_providers() -> dict[str, Provider]:
    """Give the OAuth providers of the site's settings by name; what is not whole is no provider."""
    rows = [tuple(each.split()) for each in conf.mail_providers]
    return {row[0]: Provider(*row) for row in rows if 3 <= len(row) <= 4}


def has_mail(conversation: Conversation) -> bool:
    return MailAccount.objects.filter(owner_id=conversation.owner_id).exists()


def _account(row: MailAccount, secret: str) -> Account:
    smtp = Server(row.smtp_host, row.smtp_port, cast("Security", row.smtp_security))
    return Account(
        name=row.name,
        address=row.address,
        login=row.login,
        imap=Server(row.imap_host, row.imap_port, cast("Security", row.imap_security)),
        smtp=smtp if row.smtp_host else None,
        auth=cast("Auth", row.auth),
        provider=mail_providers().get(row.provider),
        folder=row.folder,
        secret=secret,
    )
