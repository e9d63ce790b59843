"""The pages of the rivals: the proxy's against a real Messages API, Chainlit's by what it sends.

The rivals themselves are installed by `bench turn --rivals` and are no part of this suite.
"""

from __future__ import annotations

import asyncio
import json
import venv
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from agentweb.bench import reader_process, server_subjects
from agentweb.bench.http_client import open_client
from agentweb.bench.processes import NotStarted
from agentweb.bench.readers import Reader
from agentweb.bench.rivals import rival_sites
from agentweb.bench.rivals.rival_pages import CHAINLIT, LITELLM, RELAY, make_page
from agentweb.bench.streaming import make_question
from agentweb.emulator import server

MODEL = "claude-sonnet-5-5"
#: What Chainlit 2.12 sends, in its order; ids and dates shortened.
OPENED = ['0{"sid":"a","pingInterval":25000}', '40{"sid":"b"}', '42["task_end",{}]']
ANSWERED = [
    '42["task_start",{}]',
    '42["stream_start",{"id":"c","output":"calm tHOKDM3LEKL "}]',
    "2",
    '42["stream_token",{"id":"c","token":"tHOKDM3LEKM as"}]',
    '42["new_message",{"id":"c","output":"calm tHOKDM3LEKL tHOKDM3LEKM as"}]',
    '42["task_end",{}]',
]


@pytest.mark.asyncio
async def test_the_page_of_the_proxy_asks_as_the_messages_api_wants_and_counts_each_delta() -> None:
    with server.start(pace=0, rate=400) as api:
        async with open_client(30) as client:
            page, reader = make_page(LITELLM, client, api.url, MODEL), Reader(8)
            await page.open()
            await page.ask(make_question(8 / 40), reader)
    assert reader.seen == 8
    assert reader.is_done.is_set()


@pytest.mark.asyncio
async def test_an_error_of_a_rival_is_not_measured_as_a_cheap_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def start(tabs: int) -> None:
        return

    monkeypatch.setattr(reader_process, "_wait_for_start", start)
    job: dict[str, Any] = {
        "page": LITELLM, "model": MODEL, "chats": [{}], "at_once": 1, "turns": 2, "seconds": 30,
        "text": make_question(8 / 40), "deltas": 8,
    }  # fmt: skip
    with server.start(pace=0, rate=400) as api:
        async with open_client(30) as client:
            found = await reader_process.measure_turns(job | {"url": api.url}, client)
            assert found["turns"] == 2
            with pytest.raises(ConnectionError, match="an answer had 0 of 8 deltas"):
                await reader_process.measure_turns(
                    job | {"url": api.url, "model": "no-such-model"}, client
                )


@pytest.mark.asyncio
async def test_the_page_of_chainlit_keeps_one_socket_over_its_turns() -> None:
    said: list[str] = []
    async with _serve_chainlit(said) as url, open_client(30) as client:
        page = make_page(CHAINLIT, client, url, MODEL)
        await page.open()
        for _ in range(2):
            reader = Reader(2)
            await asyncio.wait_for(page.ask("Hello", reader), 10)
            assert reader.seen == 2
    assert said[0].startswith('40{"sessionId": ')
    assert said[1] == '42["connection_successful"]'
    asked = [json.loads(each[2:]) for each in said if each.startswith('42["client_message"')]
    assert [event[1]["message"]["output"] for event in asked] == ["Hello", "Hello"]
    assert said.count("3") == 2


@asynccontextmanager
async def _serve_chainlit(said: list[str]) -> AsyncIterator[str]:
    async def talk(request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await socket.send_str(OPENED[0])
        async for message in socket:
            said.append(message.data)
            if message.data.startswith("40"):
                await socket.send_str(OPENED[1])
            elif message.data.startswith('42["connection_successful"'):
                await socket.send_str(OPENED[2])
            elif message.data.startswith("42"):
                for each in ANSWERED:
                    await socket.send_str(each)
        return socket

    application = web.Application()
    application.router.add_get("/ws/socket.io/", talk)
    # The page leaves its socket open, as a browser does.
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def test_only_the_product_has_tabs() -> None:
    pages = [rival_sites.find_page(side) for side in (RELAY, LITELLM, CHAINLIT, "embedded")]
    assert pages == [RELAY, LITELLM, CHAINLIT, ""]


def test_a_rival_that_cannot_be_installed_is_named_with_the_reason(tmp_path: Path) -> None:
    venv.create(tmp_path / CHAINLIT, with_pip=False)
    with pytest.raises(NotStarted, match=r"chainlit could not be installed: .*No module named pip"):
        rival_sites.install_rivals([CHAINLIT], tmp_path, print)


def test_an_unknown_rival_is_refused_with_the_known_ones() -> None:
    with pytest.raises(Exception, match="openwebui is no rival; there are litellm, chainlit"):
        server_subjects._rivals("openwebui")
