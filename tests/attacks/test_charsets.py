"""A form in any character set is answered, and never by a failure of the server."""

from __future__ import annotations

import pytest
from channels.testing import HttpCommunicator

from agentweb.asgi import application
from tests.support.one_database import ON_SQLITE

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio, ON_SQLITE]
CHARSETS = (
    "utf-16", "utf-7", "bogus", "idna", "punycode", "hex", "rot13", "undefined", "utf-8-sig",
    "latin-1", "x" * 300, "ü",
)  # fmt: skip
PATHS = ("/accounts/login/", "/", "/c/start/", "/nowhere", "/admin/login/", "/setup/")
TOKEN = "a" * 32
PART = b'--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n\xff\r\n--x--\r\n'
BODIES = (
    ("application/x-www-form-urlencoded", f"csrfmiddlewaretoken={TOKEN}&username=%80".encode()),
    ("application/x-www-form-urlencoded", b"a=\xff"),
    ("multipart/form-data; boundary=x", PART),
)


async def post(path: str, kind: str, body: bytes, charset: str) -> int:
    headers = [
        (b"host", b"testserver"),
        (b"cookie", f"csrftoken={TOKEN}".encode()),
        (b"content-type", f"{kind}; charset={charset}".encode()),
    ]
    asked = HttpCommunicator(application, "POST", path, body=body, headers=headers)
    answer = await asked.get_response(60)
    assert any(name.lower() == b"content-security-policy" for name, _ in answer["headers"])
    return int(answer["status"])


@pytest.mark.parametrize("path", PATHS)
async def test_another_character_set_is_refused_before_anything_reads_the_form(path: str) -> None:
    for charset in CHARSETS:
        for kind, body in BODIES:
            assert await post(path, kind, body, charset) == 415, (charset, kind)


@pytest.mark.parametrize("charset", ["utf-8", "UTF-8", "utf8", '"utf-8"'])
@pytest.mark.parametrize("path", PATHS)
async def test_utf_8_is_read_by_any_of_its_names(path: str, charset: str) -> None:
    for kind, body in BODIES:
        assert await post(path, kind, body, charset) not in (400, 415, 500)
