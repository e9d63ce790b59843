"""What drafting and sending share: compose with the call's fixed id, append to a folder once."""

from __future__ import annotations

from tools.framework.errors import InputError
from tools.framework.tool import ToolContext
from tools.mail.accounts import Account
from tools.mail.compose import Composed, compose_message
from tools.mail.folders import has_message
from tools.mail.imap import Imap
from tools.mail.imap_strings import Literal, encode_folder


def compose_mail(
    context: ToolContext,
    account: Account,
    key: str,
    to: list[str],
    cc: list[str] | None,
    bcc: list[str] | None,
    subject: str,
    body: str,
    reply_to: str,
) -> Composed:
    if not to:
        raise InputError("A mail needs at least one recipient.")
    return compose_message(
        sender=account.address, to=to, cc=cc or (), bcc=bcc or (), subject=subject, body=body,
        reply_to=reply_to, now=context.now(), key=key,
    )  # fmt: skip


async def append_once(imap: Imap, name: str, flags: bytes, mail: Composed) -> bool:
    """Append a message to a folder unless it is there; return whether it was new."""
    if await has_message(imap, name, mail.message_id):
        return False
    await imap.command(b"APPEND", encode_folder(name), flags, Literal(mail.data))
    return True
