"""The one door out: everything a tool sends over the network goes through `fetch`.

Each hop is checked, then sent straight to a checked address: the URL that is connected to holds
the address, the Host header and TLS hold the name. Only the transport of the HTTP library is used,
never its client, so there are no cookies, no proxies or passwords from the environment and no
redirects that nobody looked at. One deadline covers names, hops and body, so a server that drips
is only slow once.
"""

from __future__ import annotations

import asyncio
import ssl
from dataclasses import dataclass
from functools import cache

import httpx2

from tools.access import WebAccess
from tools.body import ENCODING, read_body
from tools.errors import FetchError
from tools.targets import Target, aim, read_url

MOST_HEADERS = 200
REDIRECTS = frozenset({301, 302, 303, 307, 308})
SINGLE_USE = httpx2.Limits(max_connections=1, max_keepalive_connections=0)
HEADERS = {
    "User-Agent": "agentweb/0.1",
    "Accept": "text/html, application/json;q=0.9, text/*;q=0.9, */*;q=0.5",
    "Accept-Encoding": ENCODING,
    "Connection": "close",
}


@dataclass(frozen=True, slots=True)
class Answer:
    url: str
    status: int
    content_type: str
    body: bytes
    #: the URLs that redirected here, first one first
    hops: tuple[str, ...] = ()


async def fetch(url: str, access: WebAccess) -> Answer:
    """Get one URL from the public internet, or raise a ToolError that says why not."""
    try:
        async with asyncio.timeout(access.deadline) as deadline:
            return await _follow(read_url(url), access)
    except TimeoutError as error:
        if not deadline.expired():
            raise
        raise FetchError(
            f"There was no whole answer within {access.deadline:g} seconds."
        ) from error
    except httpx2.TimeoutException as error:
        raise FetchError("The server took too long to answer.") from error
    except httpx2.HTTPError as error:
        raise FetchError(_words(error)) from error


async def _follow(url: httpx2.URL, access: WebAccess) -> Answer:
    hops: list[str] = []
    while True:
        answer = await _visit(await aim(url, access), access, tuple(hops))
        if isinstance(answer, Answer):
            return answer
        hops.append(str(url))
        if len(hops) > access.max_redirects:
            raise FetchError(f"There were more than {access.max_redirects} redirects.")
        url = answer


async def _visit(target: Target, access: WebAccess, hops: tuple[str, ...]) -> Answer | httpx2.URL:
    tls = access.tls or _trust()
    async with httpx2.AsyncHTTPTransport(verify=tls, trust_env=False, limits=SINGLE_USE) as door:
        response = await _send(door, target, access)
        try:
            if len(response.headers) > MOST_HEADERS:
                raise FetchError(f"The answer has more than {MOST_HEADERS} headers.")
            location = response.headers.get("location")
            if location is not None and response.status_code in REDIRECTS:
                return read_url(location, target.url)
            body = await read_body(response, access.max_bytes)
        finally:
            await response.aclose()
    content_type = response.headers.get("content-type", "")
    return Answer(str(target.url), response.status_code, content_type, body, hops)


async def _send(
    door: httpx2.AsyncHTTPTransport, target: Target, access: WebAccess
) -> httpx2.Response:
    failed: httpx2.TransportError | None = None
    for address in target.addresses:
        try:
            return await door.handle_async_request(_request(target, address, access))
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            failed = failed or error
    raise failed or httpx2.ConnectError("no address")


def _request(target: Target, address: str, access: WebAccess) -> httpx2.Request:
    timeout = httpx2.Timeout(access.deadline, connect=access.connect_timeout)
    extensions: dict[str, object] = {"timeout": timeout.as_dict()}
    if target.name is not None:
        extensions["sni_hostname"] = target.name
    headers = {"Host": target.url.netloc.decode("ascii"), **HEADERS}
    pinned = target.url.copy_with(host=address)
    return httpx2.Request("GET", pinned, headers=headers, extensions=extensions)


@cache
def _trust() -> ssl.SSLContext:
    return httpx2.create_ssl_context(trust_env=False)


def _words(error: BaseException) -> str:
    """Say what went wrong by kind; the texts of exceptions may name addresses."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"The server's certificate is not valid: {cause.verify_message}."
        cause = cause.__cause__ or cause.__context__
    if isinstance(error, httpx2.ConnectError):
        return "The server could not be reached."
    return "The server broke off or did not speak HTTP properly."
