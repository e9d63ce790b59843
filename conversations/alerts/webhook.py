"""Webhooks: a JSON body that is signed as the Standard Webhooks specification says.

The signature is HMAC-SHA256 over id, time and body, so a receiver detects changes, repeats and old
requests with the libraries of that specification. Addresses are checked like those of the tools:
public ones alone, unless the site names host and port, and only then without TLS.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from uuid import UUID

from django.utils.translation import gettext as _

from conversations.alerts.failure import DeliveryFailed
from conversations.conf import conf
from tools.framework.errors import AddressRefusedError, ToolError
from tools.framework.outside_access import WebAccess
from tools.http.fetch import send_request
from tools.http.targets import format_host_port, parse_url

#: By which secrets of this specification begin, before their Base64.
PREFIX = "whsec_"
#: Seconds for name, connection and answer; bytes of an answer, which nobody reads.
DEADLINE, MOST_BYTES = 10.0, 1_000_000


def make_secret() -> str:
    """Make a secret of 32 random bytes."""
    return PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()


def sign(secret: str, message_id: str, timestamp: int, body: bytes) -> str:
    """Return the signature of a body as its header has it."""
    key = base64.b64decode(secret.removeprefix(PREFIX))
    signed = f"{message_id}.{timestamp}.".encode() + body
    return f"v1,{base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()}"


def name_message(public_id: UUID) -> str:
    """Return the id of a delivery, which is the same for each attempt."""
    return f"msg_{public_id.hex}"


def check_webhook_url(text: str) -> None:
    """Refuse a URL that nothing can be sent to; raises AddressRefusedError."""
    url = parse_url(text)
    if url.userinfo:
        raise AddressRefusedError(_("Write no user name or password into the URL."))
    if not url.host or url.scheme not in ("http", "https"):
        raise AddressRefusedError(_("Write a whole URL that begins with https://."))
    if url.scheme != "https" and format_host_port(url) not in conf.alert_private_hosts:
        raise AddressRefusedError(
            _("Use https. Without it only addresses in AGENTWEB_ALERT_PRIVATE_HOSTS are allowed.")
        )


async def post_webhook(*, url: str, secret: str, message_id: str, at: int, body: bytes) -> None:
    """Send a signed body; raises DeliveryFailed with a text that names no address."""
    access = WebAccess(
        allowed_private=frozenset(conf.alert_private_hosts), deadline=DEADLINE, max_bytes=MOST_BYTES
    )
    headers = {
        "Content-Type": "application/json",
        "webhook-id": message_id,
        "webhook-timestamp": str(at),
        "webhook-signature": sign(secret, message_id, at, body),
    }
    try:
        check_webhook_url(url)
        answer = await send_request("POST", url, access, headers=headers, content=body)
    except AddressRefusedError:
        # Its text quotes the URL, which may hold a token of the receiver.
        raise DeliveryFailed(
            "The address is refused: it is not on the public internet, or not https."
        ) from None
    except ToolError as error:
        raise DeliveryFailed(str(error)) from error
    if not 200 <= answer.status < 300:
        raise DeliveryFailed(f"The receiver answered with status {answer.status}.")
