"""Full answers from the web: `fetch_page` follows redirects, `send_request` does not.

Both use the guarded transport hop by hop, so there are no cookies, and each redirect is checked.
One deadline covers name lookups, hops and body, so a slow server cannot hold a call for longer. A
request with a password or a body is never repeated at another address: `send_request` returns a
redirect as the answer.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field

import httpx2

from tools.framework.clean_text import quote
from tools.framework.errors import FetchError, RedirectRefusedError
from tools.framework.outside_access import WebAccess
from tools.http.targets import format_host_port, parse_url
from tools.http.transport import GuardedTransport

REDIRECTS = frozenset({301, 302, 303, 307, 308})
HEADERS = {
    "User-Agent": "agentweb/0.1",
    "Accept": "text/html, application/json;q=0.9, text/*;q=0.9, */*;q=0.5",
}


@dataclass(frozen=True, slots=True)
class Answer:
    url: str
    status: int
    content_type: str
    body: bytes
    #: the URLs that redirected here, in order
    hops: tuple[str, ...] = ()
    #: by lower-case name; repeated headers are joined
    headers: Mapping[str, str] = field(default_factory=dict)


async def fetch_page(
    url: str, access: WebAccess, headers: Mapping[str, str] | None = None
) -> Answer:
    """Get a URL and follow its redirects; raises a ToolError that says why it cannot."""
    return await _within_deadline(
        access, _follow_redirects(parse_url(url), access, {**HEADERS, **(headers or {})})
    )


async def send_request(
    method: str,
    url: str,
    access: WebAccess,
    *,
    headers: Mapping[str, str] | None = None,
    content: bytes = b"",
) -> Answer:
    """Make one request and read its answer, whatever its status; follow no redirect."""
    request = httpx2.Request(
        method, parse_url(url), headers={**HEADERS, **(headers or {})}, content=content
    )
    return await _within_deadline(access, _request_once(request, access))


async def _within_deadline(access: WebAccess, answer: Awaitable[Answer]) -> Answer:
    try:
        async with asyncio.timeout(access.deadline) as deadline:
            return await answer
    except TimeoutError as error:
        if not deadline.expired():
            raise
        raise FetchError(
            f"There was no whole answer within {access.deadline:g} seconds."
        ) from error
    except httpx2.TimeoutException as error:
        raise FetchError("The server took too long to answer.") from error
    except httpx2.HTTPError as error:
        raise FetchError(_describe_error(error)) from error


async def _follow_redirects(
    url: httpx2.URL, access: WebAccess, headers: Mapping[str, str]
) -> Answer:
    hops: list[str] = []
    while True:
        url = url.copy_with(fragment=None)
        answer = await _request_once(
            httpx2.Request("GET", url, headers=headers), access, tuple(hops)
        )
        location = answer.headers.get("location")
        if location is None or answer.status not in REDIRECTS:
            return answer
        hops.append(str(url))
        if len(hops) > access.max_redirects:
            raise FetchError(f"There were more than {access.max_redirects} redirects.")
        there = parse_url(location, url)
        _check_redirect(url, there, access)
        url = there


def _check_redirect(url: httpx2.URL, there: httpx2.URL, access: WebAccess) -> None:
    if access.is_held_to_host and not _is_same_host(url, there):
        reason = "another host, and something private was read before"
    elif (url.scheme, there.scheme) == ("https", "http"):
        reason = "no longer encrypted"
    else:
        return
    raise RedirectRefusedError(
        f"{quote(str(url), 200)} redirects to {quote(str(there), 200)}, which is {reason}; it was"
        " not followed. Fetch that address itself if it is wanted."
    )


def _is_same_host(url: httpx2.URL, there: httpx2.URL) -> bool:
    """Return whether a redirect stays at host and port, or only adds encryption to them."""
    before, after = format_host_port(url), format_host_port(there)
    if (url.scheme, there.scheme) == ("http", "https"):
        before, after = before.removesuffix(":80"), after.removesuffix(":443")
    return before == after


async def _request_once(
    request: httpx2.Request, access: WebAccess, hops: tuple[str, ...] = ()
) -> Answer:
    async with GuardedTransport(access) as transport:
        response = await transport.handle_async_request(_with_timeout(request, access))
        try:
            is_redirect = response.status_code in REDIRECTS and "location" in response.headers
            body = b"" if is_redirect else await response.aread()
        finally:
            await response.aclose()
    headers = dict(response.headers.items())
    kind = headers.get("content-type", "")
    return Answer(str(request.url), response.status_code, kind, body, hops, headers)


def _with_timeout(request: httpx2.Request, access: WebAccess) -> httpx2.Request:
    request.extensions["timeout"] = httpx2.Timeout(access.deadline).as_dict()
    return request


def _describe_error(error: BaseException) -> str:
    """Describe an error by its kind; the texts of exceptions may name addresses."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"The server's certificate is not valid: {cause.verify_message}."
        cause = cause.__cause__ or cause.__context__
    if isinstance(error, httpx2.ConnectError):
        return "The server could not be reached."
    return "The server broke off or did not speak HTTP properly."
