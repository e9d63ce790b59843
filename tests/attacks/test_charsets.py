"""A form in any character set is answered, and never by a failure of the server."""

from __future__ import annotations

import pytest
from django.test import Client

pytestmark = pytest.mark.django_db
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


def post(path: str, kind: str, body: bytes, charset: str) -> int:
    client = Client(enforce_csrf_checks=True, raise_request_exception=False)
    client.cookies["csrftoken"] = TOKEN
    response = client.generic("POST", path, body, f"{kind}; charset={charset}")
    assert "Content-Security-Policy" in response.headers
    return response.status_code


@pytest.mark.parametrize("path", PATHS)
def test_another_character_set_is_refused_before_anything_reads_the_form(path: str) -> None:
    for charset in CHARSETS:
        for kind, body in BODIES:
            assert post(path, kind, body, charset) == 415, (charset, kind)


@pytest.mark.parametrize("charset", ["utf-8", "UTF-8", "utf8", '"utf-8"'])
@pytest.mark.parametrize("path", PATHS)
def test_utf_8_is_read_by_any_of_its_names(path: str, charset: str) -> None:
    for kind, body in BODIES:
        assert post(path, kind, body, charset) < 500
