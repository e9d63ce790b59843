"""Another charset than UTF-8 is refused by the server itself, whatever address and query."""

from __future__ import annotations

import pytest
from channels.testing import HttpCommunicator

from agentweb.asgi import application
from agentweb.edge.charsets import is_readable

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]
CHARSETS = ("utf-16", "utf-7", "idna", "punycode", "hex", "undefined", "bogus", "latin-1", "\u00fc")
KINDS = ("text/plain", "application/json", "application/x-www-form-urlencoded", "a/b", "x")
PATHS = ("/accounts/login/", "/", "/nowhere", "/live/", "/admin/login/")


async def status(path: str, kind: str, method: str = "GET") -> int:
    headers = [(b"host", b"testserver"), (b"content-type", kind.encode())]
    answer = await HttpCommunicator(application, method, path, headers=headers).get_response(60)
    assert any(name.lower() == b"content-security-policy" for name, _ in answer["headers"])
    return int(answer["status"])


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("method", ["GET", "POST", "PUT"])
async def test_an_unknown_charset_is_refused_before_a_query_is_read(path: str, method: str) -> None:
    for charset in CHARSETS:
        for kind in KINDS:
            asked = f"{path}?q=%ff&x=%c3%a4"
            assert await status(asked, f"{kind}; charset={charset}", method) == 415, charset


@pytest.mark.parametrize("charset", ["utf-8", "UTF-8", "utf8", '"utf-8"'])
async def test_utf_8_is_read_by_any_of_its_names(charset: str) -> None:
    assert is_readable(f"text/plain; charset={charset}")
    assert await status("/accounts/login/?q=%ff", f"text/plain; charset={charset}") == 200


async def test_a_query_of_too_many_fields_is_a_bad_request() -> None:
    many = "/accounts/login/?" + "a=1&" * 5_000
    assert await status(many, "text/plain; charset=utf-8") == 400
