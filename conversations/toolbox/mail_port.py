"""The mail tools' port to a person's accounts, and the limits the site sets for mail."""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from conversations.conf import conf
from conversations.db import run_db
from conversations.toolbox.mail_accounts import (
    list_mail_accounts,
    read_mail_account_by_name,
    record_mail_use,
    renew_mail_secret,
)
from conversations.toolbox.secrets import SecretUnreadable
from tools.mail.accounts import Account, MailAccess
from tools.mail.errors import LoginError


@dataclass(frozen=True, slots=True)
class Mailboxes:
    """The accounts of one person."""

    owner_id: int

    @property
    def access(self) -> MailAccess:
        return build_mail_access()

    async def names(self) -> Sequence[str]:
        return [row.name for row in await run_db(list_mail_accounts, self.owner_id)]

    async def find(self, name: str) -> Account | None:
        try:
            return await run_db(read_mail_account_by_name, self.owner_id, name)
        except SecretUnreadable as error:
            refused = LoginError(
                "The stored password of this account cannot be opened any more; the user must"
                " enter it again on the page Settings, Mail."
            )
            await self.used(name, str(refused))
            raise refused from error

    async def renewed(self, name: str, secret: str) -> None:
        await run_db(renew_mail_secret, owner_id=self.owner_id, name=name, secret=secret)

    async def used(self, name: str, problem: str) -> None:
        await run_db(record_mail_use, owner_id=self.owner_id, name=name, problem=problem)


def build_mail_access() -> MailAccess:
    """Return the hosts, TLS settings and sizes that the site allows for mail."""
    return MailAccess(
        allowed_private=frozenset(conf.mail_private_hosts),
        tls=_build_tls_context(conf.mail_ca_file) if conf.mail_ca_file else None,
        max_bytes=conf.mail_bytes,
    )


@cache
def _build_tls_context(path: str) -> ssl.SSLContext:
    """Return a TLS context that trusts a file of authorities besides the system's."""
    context = ssl.create_default_context()
    context.load_verify_locations(cafile=path)
    return context
