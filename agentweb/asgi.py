"""ASGI: pages by Django, sockets by Channels, both behind the same checks.

A socket is accepted only from a page of this very site: the Origin must be the scheme, host and
port of the request, not merely an allowed host. `Daphne-Root-Path` is a header a client could send
to bend our links, so it is dropped.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from typing import Any

from channels.auth import AuthMiddlewareStack
from channels.routing import ProtocolTypeRouter, URLRouter
from channels.security.websocket import WebsocketDenier
from django.core.asgi import get_asgi_application

import agentweb.celery  # noqa: F401  (tasks sent from here go to this app)

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentweb.settings")
django_application = get_asgi_application()

from django.conf import settings  # noqa: E402
from django.http.request import split_domain_port, validate_host  # noqa: E402

from conversations.routing import websocket_urlpatterns  # noqa: E402

# Frameworks disagree on the type of a scope; here it is whatever the server made.
Scope = Any
Application = Callable[[Any, Any, Any], Awaitable[None]]


def same_origin(application: Application) -> Application:
    """Deny sockets whose Origin is not the site they are opened to."""

    async def checked(scope: Scope, receive: Any, send: Any) -> None:
        if is_same_origin(scope):
            await application(scope, receive, send)
        else:
            await WebsocketDenier()(scope, receive, send)

    return checked


def is_same_origin(scope: Scope) -> bool:
    headers = {name.lower(): value.decode("latin1") for name, value in scope["headers"]}
    host, origin = headers.get(b"host", ""), headers.get(b"origin", "")
    secure = scope.get("scheme") == "wss" or (
        settings.HTTPS and headers.get(b"x-forwarded-proto") == "https"
    )
    expected = f"{'https' if secure else 'http'}://{host}"
    allowed = validate_host(split_domain_port(host)[0], settings.ALLOWED_HOSTS)
    return bool(host) and allowed and origin.lower() == expected.lower()


def without_root_path(application: Application) -> Application:
    """Drop what a client may not decide."""

    async def clean(scope: Scope, receive: Any, send: Any) -> None:
        if "headers" in scope:
            kept = [pair for pair in scope["headers"] if pair[0].lower() != b"daphne-root-path"]
            scope = {**scope, "headers": kept, "root_path": ""}
        await application(scope, receive, send)

    return clean


sockets: Any = AuthMiddlewareStack(URLRouter(websocket_urlpatterns))
router: Any = ProtocolTypeRouter({"http": django_application, "websocket": same_origin(sockets)})
application = without_root_path(router)
