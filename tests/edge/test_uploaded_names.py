"""Names of uploaded files reach a page as they were given, but for what only hides in them."""

from __future__ import annotations

from typing import Any

import pytest
from channels.testing import HttpCommunicator
from django.http import HttpRequest, HttpResponse
from django.urls import path

from agentweb.edge.request_threads import PageHandler

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]


def say_name(request: HttpRequest) -> HttpResponse:
    sent = request.FILES.get("file")
    return HttpResponse(repr(sent.name if sent else None))


urlpatterns = [path("", say_name)]


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("plan.txt", "plan.txt"),
        ("👩\u200d👧 می\u200cخواهم.png", "👩\u200d👧 می\u200cخواهم.png"),
        ("a\u202eb\u200b\u2028\x07c.png", "abc.png"),
        ("../x\\y&amp;z.png", "y&z.png"),
        ("..", None),
    ],
)
async def test_a_name_keeps_its_joiners(settings: Any, name: str, read: str | None) -> None:
    settings.ROOT_URLCONF, settings.MIDDLEWARE = __name__, []
    part = (
        f'--x\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\nA\r\n--x--'
    )
    kind = (b"content-type", b"multipart/form-data; boundary=x")
    body = part.encode()
    size = (b"content-length", str(len(body)).encode())
    client = HttpCommunicator(PageHandler(), "POST", "/", body=body, headers=[kind, size])
    answer = await client.get_response(60)
    assert answer["body"].decode() == repr(read)
