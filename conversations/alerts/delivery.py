"""The sweep of alerts: queue what was crossed, send what is due.

Nothing is sent in a request, a turn or a transaction. The process repeats the sweep, or beat does;
any number of them may run at once.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from django.utils import timezone

from conversations.accounts.account_mail import send_mail_now
from conversations.alerts import outbox
from conversations.alerts.alert_messages import AlertMail, write_body, write_mail
from conversations.alerts.failure import DeliveryFailed
from conversations.alerts.webhook import name_message, post_webhook
from conversations.db import run_db
from conversations.models import AlertDelivery
from conversations.toolbox.secrets import SecretUnreadable, unseal

_READ = (
    "alert", "person", "crossing__window__user", "crossing__window__budget__user",
    "crossing__window__budget__group",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Webhook:
    url: str
    secret: str
    message_id: str
    body: bytes


async def deliver_alerts() -> int:
    """Queue new crossings and attempt what is due; return how many attempts were made."""
    claimed = await run_db(_claim_due)
    await asyncio.gather(*map(_attempt, claimed))
    return len(claimed)


def _claim_due() -> list[int]:
    outbox.queue_crossings()
    return outbox.claim_deliveries()


async def _attempt(delivery_id: int) -> None:
    try:
        match await run_db(_prepare, delivery_id=delivery_id):
            case AlertMail() as mail:
                await asyncio.to_thread(_send_mail, mail)
            case Webhook() as webhook:
                at = int(timezone.now().timestamp())
                await post_webhook(
                    url=webhook.url, secret=webhook.secret, message_id=webhook.message_id, at=at,
                    body=webhook.body,
                )  # fmt: skip
    except DeliveryFailed as error:
        await run_db(
            outbox.record_failure, delivery_id=delivery_id, error=str(error),
            is_final=error.is_final,
        )  # fmt: skip
    else:
        await run_db(outbox.record_sent, delivery_id=delivery_id)


def _prepare(*, delivery_id: int) -> AlertMail | Webhook:
    """Write what is sent; raises DeliveryFailed for a receiver that is no longer one."""
    row = AlertDelivery.objects.select_related(*_READ).get(pk=delivery_id)
    alert, person = row.alert, row.person
    if alert is None or not alert.is_active:
        raise DeliveryFailed("The alert was switched off or deleted.", is_final=True)
    if person is not None:
        if not person.is_active or not alert.people.filter(pk=person.pk).exists():
            raise DeliveryFailed("The person is no longer one that is told.", is_final=True)
        if not person.email:
            raise DeliveryFailed("The person has no e-mail address.")
        return write_mail(alert, row.crossing, person)
    if not alert.url:
        raise DeliveryFailed("The alert has no webhook any more.", is_final=True)
    try:
        secret = unseal(alert.sealed_secret)
    except SecretUnreadable:
        raise DeliveryFailed("The secret of the webhook cannot be opened.") from None
    body = write_body(row, alert, row.crossing)
    return Webhook(alert.url, secret, name_message(row.public_id), body)


def _send_mail(mail: AlertMail) -> None:
    try:
        send_mail_now(to=mail.to, subject=mail.subject, text=mail.text)
    except (OSError, ValueError) as error:
        # Not its text: it may quote the address, or what the mail server said of it.
        name = type(error).__name__
        raise DeliveryFailed(f"The mail server did not take it ({name}).") from error
