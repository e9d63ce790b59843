"""Counting a request: no turn depends on it."""

from __future__ import annotations

import asyncio

import pytest

from agentweb.emulator.server import EmulatorServer
from conversations.claude.client import Deadlines
from conversations.context.view.envelope import build_envelope, join_body
from tests.claude.wire_server import PATIENT, Answer, client, http, listen, raw, refuses, sends

pytestmark = pytest.mark.asyncio
QUICK = Deadlines(60, 60, 120, count=0.5)
UNHURRIED = Deadlines(60, 60, 120, count=60)
SILENCE = sends(b"", then=300)
MADE = build_envelope(model="claude-sonnet-5-5", max_tokens=1_000, system="Be brief.")
MESSAGES = '[{"role":"user","content":[{"type":"text","text":"Héllo"}]}]'


async def test_the_count_is_what_the_call_is_billed_for(emulator: EmulatorServer) -> None:
    async with client(emulator.url, PATIENT) as claude:
        counted = await claude.count(join_body(MADE.counting, MESSAGES))
        heard = await listen(claude, join_body(MADE.text, MESSAGES))
    usage = heard.events[0]["message"]["usage"]
    assert counted == usage["input_tokens"] > 0
    asked = [row for row in emulator.emulator.log if row.path.endswith("count_tokens")]
    assert asked[-1].body == join_body(MADE.counting, MESSAGES).encode()


@pytest.mark.parametrize(
    "answer",
    [
        refuses("529 Overloaded"),
        refuses("400 Bad", body='{"type":"error","error":{"type":"invalid_request_error"}}'),
        refuses("307 Elsewhere", "location: http://127.0.0.1:1/"),
        sends(http("200 OK", "content-type: application/json", body="{}")),
        sends(http("200 OK", "content-type: application/json", body='{"input_tokens":null}')),
        sends(http("200 OK", "content-type: text/html", body="<html>")),
        sends(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{"),
        SILENCE,
    ],
)
async def test_whatever_goes_wrong_there_is_no_count_and_no_failure(answer: Answer) -> None:
    deadlines = QUICK if answer is SILENCE else UNHURRIED
    async with raw(answer) as server, client(server.url, deadlines) as claude:
        assert await asyncio.wait_for(claude.count("{}"), 90) is None
        assert len(server.bodies) == 1


async def test_a_failed_count_does_not_hold_up_the_calls() -> None:
    failing = refuses("529 Overloaded")
    async with raw(failing) as server, client(server.url, UNHURRIED) as claude:
        for _ in range(20):
            assert await claude.count("{}") is None
        heard = await listen(claude, "{}")
        assert heard.code == "overloaded"
        assert len(server.bodies) == 21


async def test_a_key_that_is_none_is_no_count() -> None:
    async with raw(refuses("500 No")) as server, client(server.url, QUICK, key="ключ") as claude:
        assert await claude.count("{}") is None
        assert server.bodies == []
