"""An outgoing message: checked addresses, a Message-ID fixed for the call, plain text.

The id is derived from the key of the call, so a repeated call makes the same message and can find
the one that an earlier attempt stored.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime

from tools.framework.clean_text import quote
from tools.framework.errors import InputError
from tools.mail.imap_strings import CONTROL

MOST_RECIPIENTS = 50
LONGEST_BODY = 500_000
LONGEST_SUBJECT = 500
ADDRESS = re.compile(
    r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*"
    r"@[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)+"
)
MESSAGE_ID = re.compile(r"<[!-;=?-~]{1,300}>")
#: Text of eight bits may only go to a server that offers 8BITMIME (RFC 6152), which not all do.
SEVEN_BIT = SMTP.clone(cte_type="7bit")


@dataclass(frozen=True, slots=True)
class Composed:
    message_id: str
    recipients: tuple[str, ...]
    #: the message with CR LF line ends, the last line included
    data: bytes


def check_addresses(texts: Sequence[str]) -> tuple[str, ...]:
    """Check bare addresses and remove repeated ones; raises InputError."""
    for text in texts:
        if len(text) > 254 or not ADDRESS.fullmatch(text):
            raise InputError(
                f"{quote(text)} is not a mail address; write it bare, like ada@example.org."
            )
    return tuple(dict.fromkeys(texts))


def compose_message(
    *,
    sender: str,
    to: Sequence[str],
    cc: Sequence[str],
    bcc: Sequence[str] = (),
    subject: str,
    body: str,
    reply_to: str,
    now: datetime,
    key: str,
) -> Composed:
    """Write a message; recipients of blind copies are not named in it."""
    recipients = check_addresses([*to, *cc, *bcc])
    if len(recipients) > MOST_RECIPIENTS:
        raise InputError(f"A mail may have at most {MOST_RECIPIENTS} recipients.")
    if CONTROL.search(subject) or len(subject) > LONGEST_SUBJECT:
        raise InputError(f"The subject must be one line of at most {LONGEST_SUBJECT} characters.")
    if len(body) > LONGEST_BODY:
        raise InputError(f"The text may have at most {LONGEST_BODY:,} characters.")
    if reply_to and not MESSAGE_ID.fullmatch(reply_to):
        raise InputError(f"{quote(reply_to)} is not a Message-ID as read_mail shows it, <...>.")
    message = EmailMessage(policy=SEVEN_BIT)
    message["From"] = sender
    for name, value in (("To", check_addresses(to)), ("Cc", check_addresses(cc))):
        if value:
            message[name] = ", ".join(value)
    message["Subject"] = subject
    message["Date"] = format_datetime(now)
    message["Message-ID"] = make_message_id(sender, key)
    if reply_to:
        message["In-Reply-To"] = message["References"] = reply_to
    message.set_content(body.replace("\r\n", "\n").replace("\r", "\n"))
    data = message.as_bytes()
    return Composed(make_message_id(sender, key), recipients, data)


def make_message_id(sender: str, key: str) -> str:
    digest = hashlib.sha256(f"{sender}\n{key}".encode()).hexdigest()[:40]
    return f"<{digest}@{sender.rpartition('@')[2]}>"


def make_key(key: str, **arguments: object) -> str:
    """Return the key of the call, or one derived from its arguments."""
    return key or json.dumps(arguments, sort_keys=True)
