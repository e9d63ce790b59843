"""Secrets at rest: passwords of mail accounts, headers of MCP servers, secrets of webhooks.

They are stored encrypted (Fernet), so a copy of the database or a backup alone reveals none. The
keys are those of AGENTWEB_SECRETS_KEY, or the site's SECRET_KEY where none is set, each derived by
HKDF. The first key encrypts and all of them decrypt, so a key is rotated by putting the new one
before the old, and `manage.py secrets rotate` then encrypts with it what was encrypted before. A
decrypted secret goes to the client that needs it and is never shown again.
"""

from __future__ import annotations

import base64
import json

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings

from conversations.conf import conf

#: The text shown in place of a stored secret.
MASK = "••••••••"


class SecretUnreadable(Exception):
    """The secret was encrypted with a key that the site no longer has."""

    code = "secret_unreadable"


def seal(text: str) -> str:
    """Encrypt a secret for the database; "" stays ""."""
    return _build_box().encrypt(text.encode()).decode("ascii") if text else ""


def unseal(sealed: str) -> str:
    """Decrypt a secret; raises SecretUnreadable."""
    if not sealed:
        return ""
    try:
        return _build_box().decrypt(sealed.encode()).decode()
    except InvalidToken:
        raise SecretUnreadable(
            "A stored secret cannot be opened: its key is not in AGENTWEB_SECRETS_KEY."
            " Set the key again, or enter the secret anew."
        ) from None


def reseal(sealed: str) -> str:
    """Encrypt a secret with the first key, unless it is so already; raises SecretUnreadable."""
    try:
        Fernet(_derive_key(_list_keys()[0])).decrypt(sealed.encode())
    except InvalidToken:
        return seal(unseal(sealed))
    return sealed


def open_values(sealed: str) -> dict[str, str]:
    """Decrypt a sealed object of names and values; raises SecretUnreadable."""
    return json.loads(unseal(sealed)) if sealed else {}


def _build_box() -> MultiFernet:
    return MultiFernet([Fernet(_derive_key(key)) for key in _list_keys()])


def _list_keys() -> tuple[str, ...]:
    return conf.secrets_key or (settings.SECRET_KEY, *map(str, settings.SECRET_KEY_FALLBACKS))


def _derive_key(key: str) -> bytes:
    made = HKDF(algorithm=SHA256(), length=32, salt=None, info=b"agentweb secrets at rest")
    return base64.urlsafe_b64encode(made.derive(key.encode()))
