"""A turn that calls a tool of an MCP server: the supervisor's own connection, seen by the model."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client
from django.urls import reverse

from agentweb.emulator import server
from agentweb.emulator.scenes import SCENES
from agentweb.emulator.scenes.scene import Reply, ToolUse, call, say
from agentweb.emulator.scenes.view import Request
from agentweb.emulator.server import EmulatorServer
from conversations.audit.verify import Tally, verify_everything
from conversations.context.view import wire
from conversations.db import run_db
from conversations.models import Conversation, McpServer, ToolCall, Transformation, Turn, User
from conversations.runtime.mcp_servers import pool_synchronizer
from conversations.runtime.supervisor import Supervisor
from conversations.toolbox.mcp import servers
from conversations.toolbox.mcp.approved_tools import tool_status
from conversations.turns import turns
from tests.support import attached_files, mcp_servers, people_and_turns, small_files
from tests.support.running_turns import answer_text, ended, is_valid, run, supervising, until
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
    assert await run_db(answer_text, turn)
    page = await run_db(shown, turn, row.tool_use_id)
    assert f'src="data:image/png;base64,{blocks[1]["source"]["data"]}"' in page
    assert "http://127.0.0.1:9/secret" in page


def take_pictures(request: Request) -> Reply | None:
    """Call the tool as often as the prompt says, for images as wide as it says."""
    found = re.search(r"take (\d+) pictures of (\d+)", request.prompt)
    if found is None:
        return None
    done = len(request.turn_uses)
    if done == int(found[1]):
        return say(f"I took {done}.")
    return call(ToolUse("mcp__demo__picture", {"width": int(found[2])}), thinking="Next.")


@asynccontextmanager
async def taking_pictures(settings: Any) -> AsyncIterator[tuple[EmulatorServer, Supervisor]]:
    """Serve a model that takes pictures, and let it; every request must be admitted."""
    with server.start(pace=0, record=True, scenes=(take_pictures, *SCENES)) as emulator:
        settings.ANTHROPIC_BASE_URL = emulator.url
        settings.AGENTWEB_TITLE_MODEL = "off"
        found = await run_db(lambda: added(**child()))
        async with supervising() as supervisor:
            await until(lambda: state(found) == "connected")
            await run_db(approve, found, "picture")
            yield emulator, supervisor
        assert {row.status for row in emulator.emulator.log} == {200}
        kinds = Transformation.objects.values_list("kind", flat=True)
        assert await run_db(lambda: set(kinds)) == {"repair"}
        assert await run_db(lambda: list(verify_everything(Tally()))) == []


def images_sent(emulator: EmulatorServer) -> tuple[int, int]:
    """Count the images of people and those of tools in the last request."""
    body = [row.body for row in emulator.emulator.log if row.path == "/v1/messages"][-1]
    blocks = [block for each in json.loads(body)["messages"] for block in each["content"]]
    inside = [part for block in blocks for part in block.get("content") or () if "type" in part]
    return tuple(sum(one["type"] == "image" for one in some) for some in (blocks, inside))


async def test_a_turn_may_take_more_large_pictures_than_a_request_does(settings: Any) -> None:
    async with taking_pictures(settings) as (emulator, supervisor):
        turn = await run(supervisor, "Please take 24 pictures of 2880")
        assert (turn.state, await run_db(answer_text, turn)) == ("done", "I took 24.")
        again = await run(supervisor, "And what did you see?", turn.conversation)
        assert again.state == "done"
        assert images_sent(emulator) == (0, 19)
    assert await run_db(Transformation.objects.count) == 1


async def test_pictures_of_tools_leave_room_for_the_photos_of_a_person(settings: Any) -> None:
    async with taking_pictures(settings) as (emulator, supervisor):
        turn = await run(supervisor, "Please take 10 pictures of 300")

        def send() -> Turn:
            owner, chat = turn.conversation.owner, turn.conversation
            photos = [small_files.png(4_000, 2, (number, 3, 5)) for number in range(12)]
            ids = [attached_files.kept(owner, photo).public_id for photo in photos]
            given = {"text": "Look.", "client_id": uuid4(), "attachments": ids}
            sent = turns.send_prompt(conversation=chat, **given)
            assert isinstance(sent, Turn)
            return sent

        asked = await run_db(send)
        supervisor.wake(asked.pk)
        assert (await ended(asked)).state == "done"
        assert images_sent(emulator) == (12, 7)


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
    assert "not offered" in await run_db(answer_text, second)
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
        nowhere, root = {"PYTHONPATH": "/nowhere"}, await run_db(User.objects.get, username="root")
        await run_db(
            partial(servers.save_server, server=found, actor=root, changed=[], environment=nowhere)
        )
        pool_synchronizer.wake()
        await until(lambda: state(found) == "failed")
        turn = await run(supervisor, "Call the tool mcp__demo__look")
        assert turn.state == "done"
        call = await run_db(lambda: ToolCall.objects.get(turn=turn))
    assert (call.state, call.details["code"]) == ("error", "mcp_failed")
    error = await run_db(lambda: McpServer.objects.get().last_error)
    assert "code 1" in error


async def test_one_bad_tool_among_good_ones_is_left_out_visibly_and_the_chat_goes_on(
    emulator: EmulatorServer,
) -> None:
    found = await run_db(lambda: added(**child("mixed")))

    def approve_all() -> None:
        for name in ("look", "both", "named", "painful"):
            approve(found, name)
        # Approved by a version that did not know the rule.
        bad = found.tools.get(name="either")
        found.tools.filter(pk=bad.pk).update(
            approved=bad.listed, approved_digest=bad.listed_digest, effect="read"
        )

    async with supervising() as supervisor:
        await until(lambda: state(found) == "connected")
        await run_db(approve_all)
        first = await run(supervisor, "Call the tool mcp__demo__look")
        assert (first.state, first.error_code) == ("done", "")
        chat = first.conversation
        given = '{"file_path": "a.txt", "gr__e": "7"}'
        for words in (f"Call the tool mcp__demo__named with {given}",
                      'Call the tool mcp__demo__both with {"where": "here", "how": "so"}',
                      "Call the tool mcp__demo__painful", "And now?"):  # fmt: skip
            turn = await run(supervisor, words, chat)
            assert (turn.state, turn.error_code) == ("done", "")
        await run_db(is_valid, chat)
    rows = await run_db(lambda: list(ToolCall.objects.select_related("output").order_by("pk")))
    texts = {row.name: row.output.text for row in rows if row.output is not None}
    assert r"\"file path\": \"a.txt\"" in texts["mcp__demo__named"]
    assert [row.status for row in emulator.emulator.log if row.status != 200] == []
    sent = [json.loads(row.body) for row in emulator.emulator.log if row.path == "/v1/messages"]
    tools = {tool["name"]: tool["input_schema"] for tool in sent[-1]["tools"]}
    assert "mcp__demo__either" not in tools
    assert tools["mcp__demo__both"]["required"] == ["where", "how"]
    assert set(tools["mcp__demo__named"]["properties"]) == {"file_path", "gr__e"}
    page = await run_db(read_pages, chat, found)
    assert (
        "Not available: the model does not accept the description of its inputs." in page["tools"]
    )
    assert "at its top level, which the model does not take" in page["approval"]
    assert "is called &#x27;file_path&#x27; for the model" in page["approval"]


def read_pages(chat: Conversation, found: McpServer) -> dict[str, str]:
    """Give the page of the conversation's tools, and that on which tools are approved."""
    owner, root = Client(), Client()
    owner.force_login(chat.owner)
    User.objects.filter(username="root").update(is_staff=True)
    root.force_login(User.objects.get(username="root"))
    return {
        "tools": owner.get(reverse("tools", args=[chat.public_id])).content.decode(),
        "approval": root.get(reverse("admin:mcp_tools", args=[found.pk])).content.decode(),
    }
