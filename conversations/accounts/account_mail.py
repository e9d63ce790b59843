"""Mails of the site to its people: links to a new password, events of their account.

They leave in a thread, so that a slow mail server delays nobody. Without a mail server Django's
file backend writes them into the data folder, where an administrator finds them.
"""

from __future__ import annotations

import logging
from concurrent.futures import Future, ThreadPoolExecutor

from django.conf import settings
from django.core import mail

logger = logging.getLogger("agentweb.account_mail")
_senders = ThreadPoolExecutor(max_workers=2, thread_name_prefix="account-mail")


def can_send_mail() -> bool:
    """Return whether mails of the site reach people's mailboxes."""
    return bool(settings.SENDS_MAIL)


def send_account_mail(*, to: str, subject: str, text: str) -> Future[None] | None:
    """Hand a mail over to be sent; None without an address."""
    if not to:
        return None
    return _senders.submit(_send, to, subject, text)


def send_mail_now(*, to: str, subject: str, text: str) -> None:
    """Send a mail before this returns; raises OSError, and ValueError for an address."""
    mail.send_mail(f"agentweb: {' '.join(subject.split())}", text, None, [to])


def _send(to: str, subject: str, text: str) -> None:
    try:
        send_mail_now(to=to, subject=subject, text=text)
    except (OSError, ValueError) as error:
        # Not the address: the log is read by more people than the mail.
        logger.warning("a mail to an account was not sent: %s", type(error).__name__)
