"""A refresh token is sent to its provider only, and the access token logs in."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
import pytest_asyncio

from tests.support.fake_mail import FakeImap
from tests.support.mail_servers import Authority, make_authority
from tests.tools.conftest import build_reply
from tests.tools.mailboxes import Mailboxes
from tools.framework.execute import execute_tool
from tools.framework.registry import TOOLS
from tools.framework.tool import ToolContext
from tools.mail.accounts import Account, MailAccess, Provider, Server
from tools.mail.trial import try_account

pytestmark = pytest.mark.asyncio
REFRESH, ACCESS, CLIENT = "QxRefreshQ", "QxAccessQ", "QxClientQ"


@dataclass
class FakeProvider:
    """An OAuth provider with a given answer, which records the requests."""

    reply: bytes = b""
    asked: list[dict[str, list[str]]] = field(default_factory=list)
    port: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        size = int(head.partition("content-length: ")[2].partition("\r\n")[0])
        self.asked.append(parse_qs((await reader.readexactly(size)).decode()))
        writer.write(self.reply)
        await writer.drain()
        writer.close()

    def gives(self, **values: object) -> None:
        self.reply = build_reply(json.dumps(values), Content_Type="application/json")


@dataclass
class Place:
    giver: FakeProvider
    imap: FakeImap
    mail: Mailboxes


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return make_authority(tmp_path, "127.0.0.1")


@pytest_asyncio.fixture
async def place(authority: Authority) -> AsyncIterator[Place]:
    giver = FakeProvider()
    server = await asyncio.start_server(giver.serve, "127.0.0.1", 0, ssl=authority.serving())
    giver.port = server.sockets[0].getsockname()[1]
    giver.gives(access_token=ACCESS)
    imap = await FakeImap(authority.serving()).start()
    provider = Provider("acme", f"https://127.0.0.1:{giver.port}/token", "id", CLIENT)
    host = Server("127.0.0.1", imap.port)
    account = Account(
        "work", "ada@x.org", "ada", host, auth="refresh", provider=provider, secret=REFRESH
    )
    opened = frozenset({f"127.0.0.1:{port}" for port in (giver.port, imap.port)})
    yield Place(giver, imap, Mailboxes(MailAccess(opened, tls=authority.trusted()), [account]))
    server.close()
    assert imap.server is not None
    imap.server.close()


async def search(place: Place, context: ToolContext) -> Any:
    return await execute_tool(TOOLS["search_mail"], {}, replace(context, mail=place.mail))


async def test_a_refresh_token_becomes_the_access_token_that_logs_in(
    place: Place, context: ToolContext
) -> None:
    result = await search(place, context)
    assert not result.is_error, result.content
    assert place.giver.asked == [
        {
            "grant_type": ["refresh_token"], "refresh_token": [REFRESH], "client_id": ["id"],
            "client_secret": [CLIENT],
        }
    ]  # fmt: skip
    assert place.imap.credentials == [f"user=ada\1auth=Bearer {ACCESS}\1\1"]
    assert place.mail.accounts[0].secret == REFRESH
    for secret in (REFRESH, ACCESS, CLIENT):
        assert secret not in repr((result, place.mail))


async def test_a_new_refresh_token_takes_the_place_of_the_old(
    place: Place, context: ToolContext
) -> None:
    place.giver.gives(access_token=ACCESS, refresh_token="QxNextQ")
    await search(place, context)
    assert place.mail.accounts[0].secret == "QxNextQ"
    tried = await try_account(place.mail.accounts[0], place.mail.access)
    assert (tried.auth, tried.secret) == ("refresh", "QxNextQ")


@pytest.mark.parametrize(
    "reply",
    [
        build_reply('{"error": "invalid_grant QxRefreshQ"}', status="400 Bad Request"),
        build_reply('{"access_token": 5}'),
        build_reply('{"access_token": "a\\r\\nb"}'),
        build_reply('["access_token"]'),
        build_reply("[" * 50_000),
        build_reply("not JSON QxRefreshQ"),
        build_reply("x" * 200_000),
        build_reply(status="302 Found", Location="https://evil.example/"),
        b"",
    ],
)
async def test_without_an_access_token_nobody_logs_in_and_nothing_is_repeated(
    place: Place, context: ToolContext, reply: bytes
) -> None:
    place.giver.reply = reply
    result = await search(place, context)
    assert result.details["code"] == "mail_login"
    assert "acme gave no access token" in str(result.content)
    assert REFRESH not in str(result.content)
    assert place.imap.commands == []


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/token", "", None])
async def test_a_provider_that_is_gone_or_has_no_https_is_never_asked(
    place: Place, context: ToolContext, url: str | None
) -> None:
    provider = None if url is None else Provider("acme", url, "id")
    place.mail.accounts[0] = replace(place.mail.accounts[0], provider=provider)
    result = await search(place, context)
    assert "not set up on this site" in str(result.content)
    assert place.giver.asked == []
