"""OAuth: a refresh token is exchanged for an access token at the provider an administrator named.

The token is sent to the provider's own address, by the guarded transport and over HTTPS only; no
account and no mail can name another. Two values are read from the answer, and it is never quoted.
"""

from __future__ import annotations

import json
from dataclasses import replace
from urllib.parse import urlencode

from tools.framework.errors import ToolError
from tools.http.fetch import send_request
from tools.mail.accounts import Account, MailAccess
from tools.mail.errors import LoginError

LONGEST_TOKEN = 8_000
FORM = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}


async def authorise_account(account: Account, access: MailAccess) -> tuple[Account, str]:
    """Return the account ready to log in, and the secret to store; raises LoginError."""
    if account.auth != "refresh":
        return account, account.secret
    provider = account.provider
    if provider is None or not provider.token_url.startswith("https://"):
        raise LoginError("The OAuth provider of this account is not set up on this site any more.")
    form = {"grant_type": "refresh_token", "refresh_token": account.secret}
    form["client_id"] = provider.client_id
    if provider.client_secret:
        form["client_secret"] = provider.client_secret
    body = urlencode(form).encode("ascii")
    try:
        answer = await send_request(
            "POST", provider.token_url, access.web, headers=FORM, content=body
        )
    except ToolError as error:
        raise LoginError(f"{provider.name} gave no access token: {error}") from error
    found = _parse_tokens(answer.body) if answer.status == 200 else {}
    token = found.get("access_token", "")
    if not token:
        raise LoginError(
            f"{provider.name} gave no access token (status {answer.status}); the refresh token may"
            " have ended. A new one can be entered on the page Settings, Mail."
        )
    kept = found.get("refresh_token", "") or account.secret
    return replace(account, auth="token", secret=token), kept


def _parse_tokens(body: bytes) -> dict[str, str]:
    """Return the string values that can be tokens."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    values = found.items() if isinstance(found, dict) else ()
    return {
        name: value
        for name, value in values
        if isinstance(value, str) and len(value) <= LONGEST_TOKEN and value.isprintable()
    }
