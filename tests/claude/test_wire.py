from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest

from agentweb.emulator.server import EmulatorServer
from conversations.agent.ports import Head
from conversations.claude.client import Claude, Deadlines
from tests.agent.streams import says
from tests.claude.wire_server import (
    KEY,
    PATIENT,
    QUICK,
    SSE,
    Answer,
    ask,
    client,
    event,
    http,
    listen,
    raw,
    refuses,
    sends,
)

pytestmark = pytest.mark.asyncio
BODY = (
    '{"model":"claude-sonnet-5-5","max_tokens":1000,"stream":true,'
    '"messages":[{"role":"user",  "content":"Héllo \\u00e9 \\u0000 \U0001f34e"}]}'
)


async def test_exactly_our_bytes_are_sent_and_the_api_s_events_come_back(
    emulator: EmulatorServer,
) -> None:
    heard = await ask(emulator.url, BODY, PATIENT)
    assert heard.failure is None
    assert emulator.emulator.log[-1].body == BODY.encode()
    assert heard.head is not None
    assert heard.head.http_status == 200
    assert heard.head.request_id.startswith("req_")
    assert heard.events[0]["type"] == "message_start"
    assert heard.events[-1]["type"] == "message_stop"
    assert not any(e["type"] == "ping" for e in heard.events)
    assert heard.text


async def test_a_request_says_what_it_must_and_is_sent_once() -> None:
    async with raw(refuses("529 Overloaded")) as server:
        heard = await ask(server.url + "/", BODY)
        assert heard.code == "overloaded"
        assert server.bodies == [BODY.encode()]
    lines = server.heads[0].lower().splitlines()
    assert lines[0] == "post /v1/messages http/1.1"
    assert "content-type: application/json" in lines
    assert any(line.startswith("anthropic-version: 202") for line in lines)
    assert KEY in server.heads[0]


async def test_a_key_with_a_line_feed_from_a_file_is_a_key() -> None:
    async with raw(refuses("529 Overloaded")) as server:
        assert (await ask(server.url, key=f" {KEY}\r\n")).code == "overloaded"


@pytest.mark.parametrize("key", ["", "  ", "sk-ant-ü", "sk-ant\nSECRET", "sk-ant\0SECRET"])
async def test_a_key_that_can_be_none_is_refused_here(key: str) -> None:
    async with raw(refuses("200 OK")) as server:
        heard = await ask(server.url, key=key)
        assert (heard.code, heard.may_retry) == ("authentication", False)
        assert server.bodies == []


@pytest.mark.parametrize(
    "answer",
    [
        refuses("401 Unauthorized", body=f'{{"error":{{"message":"not a key: {KEY}"}}}}'),
        refuses(
            "400 Bad Request", body=f'{{"error":{{"message":"{"x" * 480} {KEY} twice {KEY}"}}}}'
        ),
        refuses("404 Not Found", body=f'{{"error":{{"message":"{KEY}"}}}}'),
        refuses("500 Server Error", body=KEY),
        refuses("200 OK", f"x-echo: {KEY}", "content-type: text/html", body=KEY),
        sends(b"no http at all"),
        sends(http("200 OK", SSE), b"data: {oops\n\n"),
        sends(http("200 OK", SSE), then=300),
    ],
)
async def test_the_key_stands_in_no_error_and_no_log(
    answer: Answer, everything: pytest.LogCaptureFixture
) -> None:
    async with raw(answer) as server:
        heard = await ask(server.url, BODY, QUICK)
    assert heard.failure is not None
    assert KEY[:12] not in heard.failure.text + repr(heard.failure)
    assert "SECRET" not in heard.failure.text
    assert everything.records
    assert "SECRET" not in "\n".join(
        record.getMessage() for record in everything.records if "x-echo" not in record.getMessage()
    )
    assert "SECRET" not in "\n".join(str(record.exc_text) for record in everything.records)


async def test_a_redirect_is_not_followed_to_another_host() -> None:
    async with raw(sends()) as silent:
        for status in ("307 Temporary Redirect", "308 Permanent Redirect", "302 Found"):
            async with raw(refuses(status, f"location: {silent.url}/v1/messages")) as server:
                heard = await ask(server.url, BODY)
                assert (heard.code, heard.may_retry) == ("protocol_error", False)
                assert len(server.bodies) == 1
        assert silent.bodies == []


@pytest.mark.parametrize("name", ["HTTP_PROXY", "http_proxy", "ALL_PROXY"])
async def test_an_emulator_on_this_machine_is_not_asked_through_a_proxy(
    name: str, emulator: EmulatorServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert (await ask(emulator.url, BODY, PATIENT)).failure is None
    local = emulator.url.replace("127.0.0.1", "localhost")
    assert (await ask(local, BODY, PATIENT)).failure is None


async def test_another_host_is_asked_through_the_proxy_of_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with raw(refuses("529 Overloaded")) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        assert (await ask("http://api.example", BODY)).code == "overloaded"
        assert proxy.heads[0].startswith("POST http://api.example/v1/messages")


async def test_without_an_address_it_is_the_api_s_own() -> None:
    claude = Claude(api_key=KEY, base_url=None, deadlines=Deadlines())
    assert str(claude._client.base_url) == "https://api.anthropic.com"
    await claude.close()


async def test_a_stream_that_is_left_ends_its_connection_at_once() -> None:
    parts = [http("200 OK", SSE), *map(event, says("Hi")[:3])]
    async with raw(sends(*parts, then=300)) as server, client(server.url, PATIENT) as claude:
        async with aclosing(claude.stream(BODY)) as stream:
            async for item in stream:
                if not isinstance(item, Head):
                    break
        await asyncio.wait_for(server.gone.wait(), 60)


async def test_a_cancelled_request_ends_its_connection_and_propagates() -> None:
    parts = [http("200 OK", SSE), *map(event, says("Hi")[:3])]
    async with raw(sends(*parts, then=300)) as server, client(server.url, PATIENT) as claude:
        task = asyncio.create_task(listen(claude, BODY))
        async with asyncio.timeout(60):
            while not server.bodies:
                await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(server.gone.wait(), 60)


async def test_requests_side_by_side_do_not_wait_for_one_another(
    emulator: EmulatorServer,
) -> None:
    async with client(emulator.url, PATIENT) as claude, asyncio.timeout(60):
        hung = asyncio.create_task(listen(claude, BODY.replace("Héllo", "emulator:fault=hang")))
        answers = await asyncio.gather(*(listen(claude, BODY) for _ in range(20)))
        assert all(heard.failure is None for heard in answers)
        hung.cancel()


async def test_nobody_there_is_unreachable_and_tried_again() -> None:
    async with raw(sends()) as server:
        url = server.url
    heard = await ask(url, BODY)
    assert (heard.code, heard.may_retry) == ("unreachable", True)
    heard = await ask("http://no-such-host.invalid", BODY)
    assert (heard.code, heard.may_retry) == ("unreachable", True)
