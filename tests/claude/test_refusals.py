from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from agentweb.emulator.server import EmulatorServer
from tests.claude.test_wire import BODY
from tests.claude.wire_server import PATIENT, ask, raw, refuses

pytestmark = pytest.mark.asyncio


@pytest.mark.parametrize(
    ("fault", "code", "status", "may_retry"),
    [
        ("bad_request", "invalid_request", 400, False),
        ("spend400", "billing", 400, False),
        ("overflow", "overflow", 400, False),
        ("context_limit", "overflow", 400, False),
        ("authentication", "authentication", 401, False),
        ("billing", "billing", 402, False),
        ("permission", "permission", 403, False),
        ("not_found", "not_found", 404, False),
        ("conflict", "upstream", 409, True),
        ("too_large", "overflow", 413, False),
        ("rate_limited:7", "rate_limited", 429, True),
        ("rate_limited:none", "rate_limited", 429, True),
        ("spend_limit", "billing", 429, False),
        ("api_error", "upstream", 500, True),
        ("unavailable", "upstream", 503, True),
        ("timeout", "upstream", 504, True),
        ("overloaded", "overloaded", 529, True),
        ("compaction_unavailable", "overloaded", 529, True),
    ],
)
async def test_every_refusal_of_the_api_is_one_of_the_closed_set(
    fault: str, code: str, status: int, may_retry: bool, emulator: EmulatorServer
) -> None:
    heard = await ask(emulator.url, BODY.replace("Héllo", f"emulator:fault={fault}"), PATIENT)
    assert (heard.code, heard.may_retry) == (code, may_retry)
    assert heard.failure is not None
    assert heard.failure.http_status == status
    assert heard.failure.retry_after == (7.0 if fault == "rate_limited:7" else None)
    assert heard.failure.request_id.startswith("req_") or status == 413
    assert heard.head is None
    assert heard.failure.text.endswith(".")


async def test_the_api_s_words_are_kept_for_the_record_and_not_shown(
    emulator: EmulatorServer,
) -> None:
    heard = await ask(
        emulator.url, BODY.replace('"stream":true', '"stream":true,"temp":1'), PATIENT
    )
    assert heard.code == "invalid_request"
    assert heard.failure is not None
    assert heard.failure.api_text == "temp: Extra inputs are not permitted"
    assert "temp" not in heard.failure.text
    assert heard.failure.api_text in heard.failure.recorded


async def test_a_file_that_the_api_does_not_have_is_told_from_an_unknown_model(
    emulator: EmulatorServer,
) -> None:
    body = json.loads(BODY)
    source = {"type": "file", "file_id": "file_011CNha8iCJcU1wXNR6q4V8w"}
    body["messages"][0]["content"] = [{"type": "document", "source": source}]
    heard = await ask(emulator.url, json.dumps(body), PATIENT)
    assert heard.code == "invalid_request"
    assert heard.failure is not None
    assert heard.failure.http_status == 404
    assert heard.failure.api_text == "File not found: file_011CNha8iCJcU1wXNR6q4V8w"


@pytest.mark.parametrize(
    ("form", "least", "most"),
    [
        ("2", 2, 2),
        ("0", 0, 0),
        pytest.param(
            format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True),
            600,
            3_600,
            id="a date",
        ),
        ("999999999999", 1e7, 1e7),
    ],
)
async def test_the_wait_that_is_asked_for_is_read(form: str, least: float, most: float) -> None:
    async with raw(refuses("429 Too Many Requests", f"retry-after: {form}")) as server:
        heard = await ask(server.url)
    assert heard.failure is not None
    assert heard.failure.retry_after is not None
    assert least <= heard.failure.retry_after <= most


@pytest.mark.parametrize("form", ["soon", "-3", "nan", "", f"Mon, 01 Jan {10**20} 00:00:00 GMT"])
async def test_a_wait_that_is_none_is_none(form: str) -> None:
    async with raw(refuses("429 Too Many Requests", f"retry-after: {form}")) as server:
        heard = await ask(server.url)
    assert heard.failure is not None
    assert (heard.code, heard.may_retry) == ("rate_limited", True)
    assert heard.failure.retry_after is None


async def test_what_the_api_says_must_not_be_tried_again_is_not() -> None:
    async with raw(refuses("500 Server Error", "x-should-retry: false")) as server:
        assert not (await ask(server.url)).may_retry


@pytest.mark.parametrize(
    ("status", "code", "may_retry"),
    [
        ("400 Bad Request", "invalid_request", False),
        ("403 Forbidden", "permission", False),
        ("407 Proxy Authentication Required", "invalid_request", False),
        ("413 Payload Too Large", "overflow", False),
        ("502 Bad Gateway", "upstream", True),
        ("529 Overloaded", "overloaded", True),
        ("302 Found", "protocol_error", False),
        ("204 No Content", "protocol_error", False),
        ("200 OK", "protocol_error", False),
    ],
)
async def test_a_page_of_a_proxy_is_judged_by_its_status(
    status: str, code: str, may_retry: bool
) -> None:
    page = "" if status.startswith("204") else "<html><h1>Nginx</h1></html>"
    headers = ("content-type: text/html", f"request-id: {'r' * 300}")
    async with raw(refuses(status, *headers, body=page)) as server:
        heard = await ask(server.url)
    assert (heard.code, heard.may_retry) == (code, may_retry)
    assert heard.failure is not None
    assert "html" not in heard.failure.text
    assert len(heard.failure.request_id) <= 100


async def test_a_portal_s_page_with_200_is_no_answer(emulator: EmulatorServer) -> None:
    heard = await ask(emulator.url, BODY.replace("Héllo", "emulator:fault=html200"), PATIENT)
    assert (heard.code, heard.may_retry) == ("protocol_error", False)
    assert heard.head is None
