"""Who asks the API: whoever has a token in the header `Authorization`, and nobody by a cookie."""

from __future__ import annotations

import re

from django.http import HttpRequest
from django.utils import timezone

from conversations.accounts.api_tokens import (
    TokenThrottled,
    count_request,
    find_token,
    may_read,
)
from conversations.web.api.problems import ApiRefused

_BEARER = re.compile(r"bearer +([A-Za-z0-9_.~+/=-]{1,200})", re.IGNORECASE)
_REALM = 'Bearer realm="agentweb"'


def admit_request(request: HttpRequest, scope: str) -> None:
    """Make the owner of the token the request's user; raises ApiRefused."""
    given = request.headers.get("Authorization", "")
    if not given:
        raise ApiRefused(
            401, "Send a token as Authorization: Bearer <token>.", WWW_Authenticate=_REALM
        )
    now, found = timezone.now(), _BEARER.fullmatch(given)
    token = find_token(found[1], now) if found else None
    if token is None:
        raise ApiRefused(
            401,
            "This token is unknown, revoked or too old, or its owner is not active.",
            WWW_Authenticate=f'{_REALM}, error="invalid_token"',
        )
    try:
        count_request(token, now)
    except TokenThrottled as error:
        raise ApiRefused(
            429,
            f"This token asked too often. Try again in {error.seconds} s.",
            Retry_After=str(error.seconds),
        ) from error
    if not may_read(token, scope):
        raise ApiRefused(
            403,
            f"This needs the scope {scope}, and an owner of the token with the rights for it.",
            WWW_Authenticate=f'{_REALM}, error="insufficient_scope", scope="{scope}"',
        )
    request.user = token.owner
