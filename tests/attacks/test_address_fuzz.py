"""Generated requests to every address, in and out of a session: none is answered 500."""

from __future__ import annotations

import random

import pytest
from django.test import Client

from agentweb.edge.charsets import is_readable
from tests.attacks.sites import address, quiet_world, views
from tests.attacks.test_matrix import keep_logged_in

pytestmark = pytest.mark.django_db
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "PROPFIND")
KINDS = (
    "", "text/plain", "text/plain; charset=utf-16", "application/json; charset=idna",
    "application/json", 'application/xml; charset="', "multipart/form-data",
    "multipart/form-data; boundary=", "multipart/form-data; boundary=x; charset=utf-7",
    "multipart/form-data; boundary=" + "x" * 300, "application/x-www-form-urlencoded;charset",
    "application/octet-stream", "\u00fc/\u00fc", "multipart/mixed; boundary=x",
)  # fmt: skip
BODIES = (
    b"", b"{", b"[" * 5_000, b"a=%ff%00&b=%u1234", b"\xff\xfe\x00", b"--x\r\n\r\n",
    (b'--x\r\nContent-Disposition: form-data; name="text"\r\n'
     b"Content-Type: text/plain; charset=utf-32\r\n\r\n\x00\x01\xff\r\n--x--\r\n"),
    (b'--x\r\nContent-Disposition: form-data; name="files"; filename="a\x00.txt"\r\n'
     b"Content-Type: text/plain; charset=undefined\r\n\r\nx\r\n--x--\r\n"),
    (b'--x\r\nContent-Disposition: form-data; name="text"\r\n'
     b"Content-Transfer-Encoding: base64\r\n\r\n%%%\r\n--x--\r\n"),
)  # fmt: skip
QUERIES = ("", "?%ff", "?q=%00", "?page=-1&before=x&m=9" + "9" * 30, "?to=%5c&next=//x", "?=&&&=")
HEADERS = (
    {}, {"accept-language": "\u00e4" * 90}, {"cookie": "sessionid=%00; csrftoken=x"},
    {"hx-request": "true", "hx-current-url": "http://["}, {"range": "bytes=9-1"},
    {"if-modified-since": "never"}, {"accept": "*/*;q=x"}, {"x-forwarded-for": "999.1,\u00fc"},
)  # fmt: skip
#: Requests to an address of the site, and to one of the admin, whose views are Django's.
MOST, OF_THE_ADMIN = 12, 4


def test_no_generated_request_is_answered_500() -> None:
    ada, chance, tried = quiet_world(), random.Random(27), 0
    inside, outside = (Client(raise_request_exception=False) for _ in range(2))
    failed = []
    for view in views():
        if view.name in ("logout", "delete_data"):
            continue
        place = address(view, ada)
        for _ in range(OF_THE_ADMIN if view.is_admin else MOST):
            client = chance.choice((inside, inside, outside))
            method, kind = chance.choice(METHODS), chance.choice(KINDS)
            url = place + chance.choice(QUERIES)
            body, headers = chance.choice(BODIES), chance.choice(HEADERS)
            if not is_readable(kind):
                # The edge has answered before a request is made of it: tests/edge/test_charsets.py.
                continue
            keep_logged_in(inside, ada.user)
            answer = client.generic(method, url, body, kind, headers=headers)
            tried += 1
            if answer.status_code >= 500:
                failed.append((method, url, kind, body[:40], headers, answer.status_code))
    assert failed == []
    assert tried > 1_000
