"""A turn that calls a tool of an MCP server: the supervisor's own connection, seen by the model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from agentweb.emulator import server
from agentweb.emulator.server import EmulatorServer
from conversations.context.view import wire
from conversations.db import run_db
from conversations.models import McpServer, ToolCall, Turn, User
from conversations.runtime.mcp_servers import pool_synchronizer
from conversations.toolbox.mcp import servers
from conversations.toolbox.mcp.approved_tools import tool_status
from tests.support import mcp_servers, people_and_turns
from tests.support.running_turns import is_valid, run, said, supervising, until
from tests.toolbox.test_mcp import kinds

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]


@pytest.fixture(scope="module")
def emulator() -> Iterator[EmulatorServer]:
    with server.start(pace=0, record=True) as running:
        yield running


@pytest.fixture(autouse=True)
def _served(emulator: EmulatorServer, settings: Any, tmp_path: Path) -> None:
    emulator.emulator.reset()
    settings.ANTHROPIC_BASE_URL = emulator.url
    settings.DATA_DIR = tmp_path


def added(**place: Any) -> McpServer:
    root = User.objects.filter(username="root").first() or people_and_turns.person(
        "root", is_superuser=True
    )
    found = McpServer(name="demo", is_enabled=True, **place)
    environment = {"PYTHONPATH": str(mcp_servers.ROOT)}
    servers.save_server(server=found, actor=root, changed=["name"], environment=environment)
    return found


def child(*given: str) -> dict[str, Any]:
    import sys

    line = (
        ["-m", "tests.support.hostile_mcp", *given]
        if given
        else ["-m", "tests.support.mcp_servers", "stdio"]
    )
    return {"transport": "stdio", "command": sys.executable, "arguments": line}


def approve(found: McpServer, name: str) -> None:
    tool, root = found.tools.get(name=name), User.objects.get(username="root")
    servers.approve_tool(tool_id=tool.pk, digest=tool.listed_digest, effect="read", actor=root)


def state(found: McpServer) -> str:
    return McpServer.objects.get(pk=found.pk).state


def shown(turn: Turn, tool_use_id: str) -> str:
    """Give the page of the whole result."""
    client = Client()
    client.force_login(turn.conversation.owner)
    address = reverse("tool_output", args=[turn.conversation.public_id, tool_use_id])
    return client.get(address).content.decode()


async def test_an_image_and_a_resource_of_a_server_reach_the_model(
    emulator: EmulatorServer,
) -> None:
    found = await run_db(lambda: added(**child()))
    async with supervising() as supervisor:
        await until(lambda: state(found) == "connected")
        await run_db(approve, found, "picture")
        turn = await run(supervisor, "Call the tool mcp__demo__picture")
        assert (turn.state, turn.error_code) == ("done", "")
        row = await run_db(lambda: ToolCall.objects.select_related("output").get(turn=turn))
        await run_db(is_valid, turn.conversation)
    assert (row.name, row.state, row.effect) == ("mcp__demo__picture", "ok", "read")
    assert row.output is not None
    blocks = wire.decode(row.output.text)
    assert [block["type"] for block in blocks] == ["text", "image", "text", "text"]
    sent = [row.body.decode() for row in emulator.emulator.log if row.path == "/v1/messages"]
    assert any(blocks[1]["source"]["data"] in body for body in sent)
    assert any("The plan: 4711" in body for body in sent)
    assert await run_db(lambda: state(found)) == "idle"
    assert await run_db(said, turn)
    page = await run_db(shown, turn, row.tool_use_id)
    assert f'src="data:image/png;base64,{blocks[1]["source"]["data"]}"' in page
    assert "http://127.0.0.1:9/secret" in page


async def test_a_definition_that_changes_in_mid_turn_is_taken_away_and_written_down(
    emulator: EmulatorServer,
) -> None:
    found = await run_db(lambda: added(**child("swap")))
    async with supervising() as supervisor:
        await until(lambda: state(found) == "connected")
        await run_db(approve, found, "look")
        first = await run(supervisor, "Call the tool mcp__demo__look")
        assert await run_db(lambda: ToolCall.objects.get(turn=first).state) == "ok"
        await until(lambda: tool_status(found.tools.get()) == "changed")
        second = await run(supervisor, "Call the tool mcp__demo__look", first.conversation)
    assert "not offered" in await run_db(said, second)
    assert await run_db(kinds, found) == ["added", "approved", "differs"]


async def test_switching_a_server_off_reaches_its_connection(emulator: EmulatorServer) -> None:
    found = await run_db(lambda: added(**child("plain")))
    async with supervising():
        await until(lambda: state(found) == "connected")
        await run_db(lambda: McpServer.objects.update(is_enabled=False))
        pool_synchronizer.wake()
        await until(lambda: state(found) == "idle")
        await run_db(lambda: McpServer.objects.update(is_enabled=True))
        pool_synchronizer.wake()
        await until(lambda: state(found) == "connected")
        seen = await run_db(lambda: McpServer.objects.get().last_seen_at)

        await run_db(lambda: servers.request_check(server=found))
        pool_synchronizer.wake()
        is_checked = McpServer.objects.filter(check_asked_at=None, last_seen_at__gt=seen).exists
        await until(is_checked)


async def test_a_turn_goes_on_when_its_server_is_not_there(emulator: EmulatorServer) -> None:
    found = await run_db(lambda: added(**child("plain")))
    async with supervising() as supervisor:
        await until(lambda: state(found) == "connected")
        await run_db(approve, found, "look")
        await run_db(lambda: McpServer.objects.update(arguments=["-c", "raise SystemExit(3)"]))
        pool_synchronizer.wake()
        await until(lambda: state(found) == "failed")
        turn = await run(supervisor, "Call the tool mcp__demo__look")
        assert turn.state == "done"
        call = await run_db(lambda: ToolCall.objects.get(turn=turn))
    assert (call.state, call.details["code"]) == ("error", "mcp_failed")
    error = await run_db(lambda: McpServer.objects.get().last_error)
    assert "code 3" in error
