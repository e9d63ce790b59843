"""The transport under every request of the app, except those of the API client.

A transport and not a client, so any user of httpx2 can have it, and its redirects, retries and
sign-ins are checked too:

    httpx2.AsyncClient(transport=GuardedTransport(access), trust_env=False)

Each request is resolved and checked anew (`targets`): the URL that is connected to holds a checked
address; the Host header and TLS hold the name. A connection is used once, so no name is ever sent
over a connection that was opened and verified for another name of the same address. Proxies and
passwords from the environment are not used. An answer has at most `MOST_HEADERS` headers, and its
body is decompressed and counted here (`body`), so a client above decodes nothing itself. Redirects
are not followed: following one is a new request through this transport. The caller sets the
deadline.

Refusals are ToolErrors (AddressRefusedError, BodyRefusedError, FetchError); network errors are
those of httpx2.
"""

from __future__ import annotations

import ssl
from functools import cache

import httpx2

from tools.framework.errors import AddressRefusedError, FetchError
from tools.framework.outside_access import WebAccess
from tools.http.body import ENCODING, BoundedBody
from tools.http.targets import Target, resolve_target

MOST_HEADERS = 200
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
SINGLE_USE = httpx2.Limits(max_connections=20, max_keepalive_connections=0)
PATIENCE = 30.0


class GuardedTransport(httpx2.AsyncBaseTransport):
    """Send requests to public addresses, and to those `access` opens by name and port."""

    def __init__(self, access: WebAccess) -> None:
        self._access = access
        self._inner = httpx2.AsyncHTTPTransport(
            verify=access.tls or _trust_store(), trust_env=False, limits=SINGLE_USE
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if request.method.upper() not in METHODS:
            raise AddressRefusedError(f"The method {request.method[:20]!r} is not used here.")
        target = await resolve_target(request.url, self._access)
        response = await self._send(request, target)
        if len(response.headers) > MOST_HEADERS:
            await response.aclose()
            raise FetchError(f"The answer has more than {MOST_HEADERS} headers.")
        stream = BoundedBody(response, self._access.max_bytes)
        headers = httpx2.Headers(
            [pair for pair in response.headers.raw if pair[0].lower() != b"content-encoding"]
        )
        extensions = {
            name: value
            for name, value in response.extensions.items()
            if name in ("http_version", "reason_phrase")
        }
        return httpx2.Response(
            response.status_code, headers=headers, stream=stream, extensions=extensions
        )

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def _send(self, request: httpx2.Request, target: Target) -> httpx2.Response:
        """Try the checked addresses in turn until one takes the connection."""
        failed: httpx2.TransportError | None = None
        for address in target.addresses:
            try:
                return await self._inner.handle_async_request(
                    self._pinned(request, target, address)
                )
            except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
                failed = failed or error
        raise failed or httpx2.ConnectError("no address")

    def _pinned(self, request: httpx2.Request, target: Target, address: str) -> httpx2.Request:
        timeout = dict(request.extensions.get("timeout") or httpx2.Timeout(PATIENCE).as_dict())
        longest = self._access.connect_timeout
        timeout["connect"] = min(timeout.get("connect") or longest, longest)
        extensions: dict[str, object] = {"timeout": timeout}
        if target.name is not None:
            extensions["sni_hostname"] = target.name
        headers = httpx2.Headers(request.headers)
        headers["Host"] = target.url.netloc.decode("ascii")
        headers["Accept-Encoding"] = ENCODING
        headers["Connection"] = "close"
        return httpx2.Request(
            request.method,
            target.url.copy_with(host=address),
            headers=headers,
            stream=request.stream,
            extensions=extensions,
        )


@cache
def _trust_store() -> ssl.SSLContext:
    return httpx2.create_ssl_context(trust_env=False)
