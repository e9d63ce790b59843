"""Requests in another charset than UTF-8 are answered 415 before the application sees them.

Django reads the query string in the charset of the Content-Type, and it does so while it makes the
request, outside of all middleware: a charset that cannot decode it would be a failure of the server
at every address. A charset that is no charset at all is ignored by Django, and refused here too.
"""

from __future__ import annotations

import codecs
from collections.abc import Awaitable, Callable
from email.message import Message
from http import HTTPStatus
from typing import Any

from agentweb.edge.error_responses import describe_status, make_headers

Application = Callable[[Any, Any, Any], Awaitable[None]]


def refuse_other_charsets(application: Application) -> Application:
    """Answer 415 to a request whose Content-Type names another charset than UTF-8."""

    async def call(scope: Any, receive: Any, send: Any) -> None:
        kinds = [value for name, value in scope["headers"] if name.lower() == b"content-type"]
        if all(is_readable(kind.decode("latin-1")) for kind in kinds):
            await application(scope, receive, send)
            return
        status = HTTPStatus.UNSUPPORTED_MEDIA_TYPE
        start = {"type": "http.response.start", "status": int(status)}
        await send(start | {"headers": list(make_headers())})
        await send({"type": "http.response.body", "body": describe_status(status)})

    return call


def is_readable(content_type: str) -> bool:
    """Return whether a Content-Type names no charset, or UTF-8."""
    header = Message()
    header["content-type"] = content_type.replace("\r", " ").replace("\n", " ")
    charset = header.get_param("charset")
    if charset is None:
        return True
    try:
        return isinstance(charset, str) and codecs.lookup(charset).name == "utf-8"
    except (LookupError, ValueError):
        return False
