"""F63: a page that reads nothing is disconnected, delays nobody else, and recovers completely."""

from __future__ import annotations

import asyncio

import psutil
import pytest

from tests.rig.client import Chat
from tests.rig.installations import Installation
from tests.rig.model import Model
from tests.rig.scenes import started_chat

pytestmark = pytest.mark.asyncio
LONG = "answer in 3000 words emulator:pace=0"


def is_held(rig: Installation, port: int) -> bool:
    """Return whether a web process still has a connection from this port."""
    links = [
        link for web in rig.webs for link in psutil.Process(web.pid).net_connections(kind="tcp")
    ]
    return any(link.raddr and link.raddr.port == port for link in links)


async def test_f63_a_page_that_stops_reading_is_cut_and_whole_once_it_reads_again(
    rig: Installation, model: Model
) -> None:
    chat = await started_chat(rig)
    slow = Chat(chat.person, chat.path, room=2_048)
    await slow.load()
    slow.follow()
    chat.person.chats.append(slow)
    await slow.shows(lambda: slow.frames > 0)
    assert slow.socket is not None
    reader = slow.socket
    reader.stop_reading()
    port = reader.transport.get_extra_info("sockname")[1]
    number = 1
    while await asyncio.to_thread(is_held, rig, port):
        # More than all buffers on the way can hold.
        number += 1
        assert number < 30
        assert await chat.say(f"Number {number}: {LONG}") == "done"
        await asyncio.sleep(1)
    assert slow.number == 1
    reader.resume_reading()
    assert await slow.ended(number) == "done"
    assert slow.opened == 2
    assert chat.opened == 1
    await rig.check()
