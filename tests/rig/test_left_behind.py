"""O8: after many visitors, disconnected in every way, processes hold no more than before."""

from __future__ import annotations

import asyncio

import pytest

from tests.rig.client import open_socket
from tests.rig.installations import Installation
from tests.rig.scenes import started_chat

pytestmark = pytest.mark.asyncio
VISITORS = 60


async def test_o8_visitors_who_vanish_leave_nothing_behind(rig: Installation) -> None:
    chat = await started_chat(rig)
    await asyncio.gather(*(chat.person.ask("GET", chat.path) for _ in range(8)))
    held = rig.held()
    for port in rig.ports:
        links = [await asyncio.open_connection("127.0.0.1", port) for _ in range(VISITORS)]
        for number, (_, writer) in enumerate(links):
            # Part of a head, a complete one whose response nobody reads, and none.
            head = f"GET {chat.path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
            writer.write((head, f"{head}\r\n", "")[number % 3].encode())
            await writer.drain()
            writer.transport.abort()
    for _ in range(VISITORS // 6):
        address = f"{chat._address}&{chat.page.bookmark}"
        (await open_socket(chat.person.next_ports()[0], address, chat.person.headers)).abort()
    await rig.check()
    await rig.close()
    await rig.back_to(held)
