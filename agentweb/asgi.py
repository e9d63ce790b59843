"""ASGI: pages by Django, sockets by Channels, both behind the same checks.

A socket is accepted only from a page of this site: the Origin must equal the scheme, host and port
of the request (an allowed host is not enough), and the token must be that of the session. Headers
that only a proxy may set are removed unless a trusted proxy set them.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import Any

from channels.routing import ProtocolTypeRouter, URLRouter
from channels.security.websocket import WebsocketDenier
from channels.sessions import CookieMiddleware

import agentweb.celery  # noqa: F401  (tasks sent from here go to this app)
from agentweb.edge.request_threads import make_page_handler

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentweb.settings")
django_application = make_page_handler()

from django.conf import settings  # noqa: E402
from django.http.request import split_domain_port, validate_host  # noqa: E402

from agentweb.edge.charsets import refuse_other_charsets  # noqa: E402
from agentweb.edge.proxies import apply_forwarded, read_networks  # noqa: E402
from agentweb.edge.sharing import queue_by_visitor  # noqa: E402
from conversations.conf import conf  # noqa: E402
from conversations.live.socket_access import has_token  # noqa: E402
from conversations.routing import websocket_urlpatterns  # noqa: E402

# Frameworks type a scope differently; here it is any mapping that the server made.
Scope = Any
Application = Callable[[Any, Any, Any], Awaitable[None]]


def require_same_origin(application: Application) -> Application:
    """Deny sockets whose Origin is not that of the site itself."""

    async def call_with_token(scope: Scope, receive: Any, send: Any) -> None:
        if is_same_origin(scope):
            await application(scope, receive, send)
        else:
            await WebsocketDenier()(scope, receive, send)

    return call_with_token


def is_same_origin(scope: Scope) -> bool:
    headers = {name.lower(): value.decode("latin1") for name, value in scope["headers"]}
    host, origin = headers.get(b"host", ""), headers.get(b"origin", "")
    secure = scope.get("scheme") == "wss" or (
        settings.HTTPS and headers.get(b"x-forwarded-proto") == "https"
    )
    expected = f"{'https' if secure else 'http'}://{host}"
    allowed = validate_host(split_domain_port(host)[0], settings.ALLOWED_HOSTS)
    return bool(host) and allowed and origin.lower() == expected.lower()


def apply_proxy_headers(application: Application) -> Application:
    """Drop forwarding headers of clients; apply those of trusted proxies."""

    async def call_with_proxy_headers(scope: Scope, receive: Any, send: Any) -> None:
        if "headers" in scope:
            scope = apply_forwarded(scope, read_networks(conf.trusted_proxies))
        await application(scope, receive, send)

    return call_with_proxy_headers


def require_socket_token(application: Application) -> Application:
    """Deny sockets without a token of a page of their session."""

    async def call_with_token(scope: Scope, receive: Any, send: Any) -> None:
        if has_token(scope["query_string"], scope["session"].session_key):
            await application(scope, receive, send)
        else:
            await WebsocketDenier()(scope, receive, send)

    return call_with_token


def add_session(application: Application) -> Application:
    """Give a socket the session of its cookie.

    Channels' own would look at each message whether the session is to be saved; no socket changes
    one.
    """
    store: Any = import_module(settings.SESSION_ENGINE).SessionStore

    async def call_with_session(scope: Scope, receive: Any, send: Any) -> None:
        key = scope["cookies"].get(settings.SESSION_COOKIE_NAME)
        await application(scope | {"session": store(key)}, receive, send)

    return call_with_session


# The socket itself looks up its person together with what it is opened on.
_routes: Any = URLRouter(websocket_urlpatterns)
sockets: Any = CookieMiddleware(add_session(require_socket_token(_routes)))
pages = refuse_other_charsets(queue_by_visitor(django_application))
router: Any = ProtocolTypeRouter({"http": pages, "websocket": require_same_origin(sockets)})
read_networks(conf.trusted_proxies)
application = apply_proxy_headers(router)
