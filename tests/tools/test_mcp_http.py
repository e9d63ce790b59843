"""Servers over HTTP that do not end their answers or send too much: only their own call fails."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.support.hostile_mcp_http import HostileSite, hostile_site, keep_alive, send_body
from tests.support.mcp_servers import Heard, pooled
from tools.http.transport import SINGLE_USE
from tools.mcp import connection
from tools.mcp.errors import ServerError
from tools.mcp.pool import Pool


async def look(pool: Pool, heard: Heard) -> str:
    found = await pool.call("demo", "look", heard.digests["look"], {})
    text: str = found.content[0].text
    return text


async def until_closed(site: HostileSite) -> None:
    async with asyncio.timeout(20):
        while site.writers:
            await asyncio.sleep(0.02)


@pytest.mark.parametrize("sends", ["signs of life", "nothing"])
@pytest.mark.asyncio
async def test_cancelled_calls_that_never_end_leave_the_connections_to_others(sends: str) -> None:
    most = SINGLE_USE.max_connections
    assert most is not None
    left = most

    async def respond(message: dict[str, Any], writer: asyncio.StreamWriter) -> bool:
        nonlocal left
        if message.get("method") == "tools/call" and left:
            left -= 1
            await (keep_alive(writer) if sends == "signs of life" else asyncio.sleep(600))
        return False

    async with hostile_site(respond) as site, pooled(site.address) as (pool, heard):
        await heard.until("connected")
        calls = [asyncio.create_task(look(pool, heard)) for _ in range(most)]
        async with asyncio.timeout(20):
            while left:
                await asyncio.sleep(0.02)
        for call in calls:
            call.cancel()
        async with asyncio.timeout(20):
            assert await look(pool, heard) == "looked"
        await until_closed(site)
    assert [status.state for status in heard.statuses] == ["connecting", "connected", "idle"]


@pytest.mark.asyncio
async def test_signs_of_life_do_not_extend_the_deadline_of_an_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connection, "SLACK", 0.0)

    async def respond(message: dict[str, Any], writer: asyncio.StreamWriter) -> bool:
        if message.get("method") == "tools/call":
            await keep_alive(writer)
        return False

    async with (
        hostile_site(respond) as site,
        pooled(site.address, deadline=1.0) as (pool, heard),
    ):
        await heard.until("connected")
        async with asyncio.timeout(20):
            with pytest.raises(ServerError, match="outcome is unknown"):
                await look(pool, heard)
        await until_closed(site)


@pytest.mark.asyncio
async def test_an_answer_as_json_that_never_ends_fails_only_its_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connection, "SLACK", 0.0)
    left = 2

    async def respond(message: dict[str, Any], writer: asyncio.StreamWriter) -> bool:
        nonlocal left
        if message.get("method") != "tools/call" or not left:
            return False
        left -= 1
        if left:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{")
        await asyncio.sleep(600)
        return True

    async with (
        hostile_site(respond) as site,
        pooled(site.address, deadline=1.0) as (pool, heard),
    ):
        await heard.until("connected")
        async with asyncio.timeout(20):
            for _ in range(2):
                with pytest.raises(ServerError, match="The server refused"):
                    await look(pool, heard)
            assert await look(pool, heard) == "looked"
    assert [status.state for status in heard.statuses] == ["connecting", "connected", "idle"]


@pytest.mark.asyncio
async def test_a_notification_that_is_not_answered_holds_up_nothing_for_long() -> None:
    cancelled = asyncio.Event()

    async def respond(message: dict[str, Any], writer: asyncio.StreamWriter) -> bool:
        if message.get("method") == "notifications/cancelled":
            cancelled.set()
            await asyncio.sleep(600)
        elif message.get("method") == "tools/call" and not cancelled.is_set():
            await keep_alive(writer)
        return False

    async with hostile_site(respond) as site, pooled(site.address) as (pool, heard):
        await heard.until("connected")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                await look(pool, heard)
        await cancelled.wait()
        async with asyncio.timeout(10):
            assert await look(pool, heard) == "looked"


@pytest.mark.parametrize(
    "head",
    [
        "401 Unauthorized\r\nContent-Type: application/json",
        "403 Forbidden\r\nContent-Type: text/html",
        "502 Bad Gateway",
    ],
)
@pytest.mark.asyncio
async def test_the_status_of_a_server_that_refuses_is_said(head: str) -> None:
    body = b'{"error":"invalid_token"}'

    async def respond(message: dict[str, Any], writer: asyncio.StreamWriter) -> bool:
        writer.write(f"HTTP/1.1 {head}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
        return True

    async with hostile_site(respond) as site, pooled(site.address) as (_pool, heard):
        found = await heard.until("failed")
    assert found.error == f"The server refused: 'HTTP status {head[:3]}'."


def make_event(message: dict[str, Any] | str) -> str:
    text = message if isinstance(message, str) else json.dumps(message)
    return f"event: message\nid: 7\ndata: {text}\n\n"


MANY = '{"jsonrpc":"2.0","id":0,"result":{"content":[],"_meta":{"a":[' + "[]," * 500_000 + "1]}}}"
NOTICE: dict[str, Any] = {"jsonrpc": "2.0", "method": "notifications/message"}
PING = {"jsonrpc": "2.0", "id": "a", "method": "ping"}


@pytest.mark.parametrize(
    ("kind", "body", "words"),
    [
        ("application/json", MANY, "400,000 parts"),
        ("application/json", " " * 12_000_001, "larger than 12,000,000 bytes"),
        ("text/event-stream", make_event(MANY), "400,000 parts"),
        ("text/event-stream", ': "\n' + make_event(MANY), "400,000 parts"),
        ("text/event-stream", make_event(NOTICE) * 2_001, "2,000 messages in 10"),
        ("text/event-stream", make_event(PING) * 101, "100 requests in 10"),
        ("text/event-stream", ":\r" * 400_001, "400,000 lines"),
        ("text/event-stream; charset=utf-7", ":+AAo-" * 400_001, "was closed"),
    ],
)
@pytest.mark.asyncio
async def test_a_server_that_sends_too_much_in_a_few_bytes_is_disconnected(
    kind: str, body: str, words: str
) -> None:
    async def respond(message: dict[str, Any], writer: asyncio.StreamWriter) -> bool:
        is_call = message.get("method") == "tools/call"
        if is_call:
            send_body(writer, kind, body.encode())
        return is_call

    async with hostile_site(respond) as site, pooled(site.address) as (pool, heard):
        await heard.until("connected")
        with pytest.raises(ServerError, match="outcome is unknown"):
            await look(pool, heard)
        assert words in (await heard.until("failed")).error


@pytest.mark.asyncio
async def test_an_answer_of_events_is_read_whatever_its_lines_and_texts() -> None:
    said = '1,[{"\\\n' * 200_000

    async def respond(message: dict[str, Any], writer: asyncio.StreamWriter) -> bool:
        is_call = message.get("method") == "tools/call"
        if is_call:
            result = {"content": [{"type": "text", "text": said}]}
            answer = {"jsonrpc": "2.0", "id": message["id"], "result": result}
            lines = json.dumps(answer, indent=1).replace("\n", "\r\ndata: ")
            send_body(
                writer,
                "Text/Event-Stream; charset=utf-8",
                f": hello\nevent: other\ndata: no json\n\n{make_event(NOTICE)}id: 1\ndata:\n\n"
                f"data: {lines}\r\n\r\n".encode(),
            )
        return is_call

    async with hostile_site(respond) as site, pooled(site.address) as (pool, heard):
        await heard.until("connected")
        assert await look(pool, heard) == said
