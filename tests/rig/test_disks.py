"""F52 to F54: a disk that is full or read-only, and a database that others write to.

Whatever is full: what cannot be stored is refused with the reason, before the API is called; stored
data can be read; once there is room everything works again without a restart.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from agentweb.bench.http_client import Answer
from tests.rig import model as models
from tests.rig.client import Chat, make_request
from tests.rig.installations import Fell, Installation
from tests.rig.model import Model
from tests.rig.scenes import started_chat, works

pytestmark = pytest.mark.asyncio


@pytest.fixture
def own_model() -> Iterator[Model]:
    running = models.start()
    yield running
    running.stop()


@contextmanager
def disk(place: Path, megabytes: int = 24) -> Iterator[Path]:
    """Mount a small file system there; only root can."""
    place.mkdir(exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(place)]
    done = subprocess.run(command, check=False, capture_output=True)
    if done.returncode:
        pytest.skip("no file system can be mounted here")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def fill(place: Path) -> Path:
    """Fill the disk; return the file to delete for space."""
    filler = place / "filler"
    for size in (65_536, 512):
        with filler.open("ab", buffering=0) as file:
            try:
                while file.write(b"\0" * size) == size:
                    pass
            except OSError:
                pass
    return filler


async def test_f53_on_a_full_disk_nothing_is_asked_of_the_api_and_all_can_be_read(
    own_model: Model, tmp_path: Path
) -> None:
    with disk(tmp_path / "disk") as place, Installation.embedded(place / "rig", own_model) as rig:
        chat = await started_chat(rig)
        asked = len(own_model.bodies())
        filler = fill(place)
        form = {"text": "Full", "client_id": os.urandom(16).hex()}
        answer = await chat.person.ask("POST", f"{chat.path}send/", form)
        assert answer.status == 503
        assert "no room left" in answer.text, answer.text[:3_000]
        assert (await chat.person.ask("GET", chat.path)).status == 200
        assert len(own_model.bodies()) == asked
        filler.unlink()
        await works(rig, chat)


async def test_f53_a_full_disk_of_the_log_does_not_keep_anybody_from_an_answer(
    own_model: Model, tmp_path: Path
) -> None:
    with disk(tmp_path / "logs", 1) as place:
        folder = tmp_path / "rig"
        folder.mkdir()
        (folder / "web-0.log").symlink_to(place / "web-0.log")
        with Installation.embedded(folder, own_model) as rig:
            chat = await started_chat(rig)
            filler = fill(place)
            assert await chat.say("Nobody writes this down") == "done"
            filler.unlink()
            await works(rig, chat)


async def test_f53_a_full_disk_of_uploads_is_said_and_does_not_keep_anybody_from_an_answer(
    own_model: Model, tmp_path: Path
) -> None:
    rig_of = partial(Installation.embedded, tmp_path / "rig", own_model)
    with disk(tmp_path / "uploads", 4) as place, rig_of(TMPDIR=str(place)) as rig:
        chat = await started_chat(rig)
        assert (await upload(rig, chat)).status == 302
        filler = fill(place)
        assert (await upload(rig, chat)).status == 507
        assert await chat.say("And now?") == "done"
        filler.unlink()
        assert (await upload(rig, chat)).status == 302
        await works(rig, chat)


async def upload(rig: Installation, chat: Chat) -> Answer:
    """Add a file of two megabytes to the workspace."""
    body = (
        b'--end\r\nContent-Disposition: form-data; name="files"; filename="large.txt"\r\n'
        b"Content-Type: text/plain\r\n\r\n" + b"a line\n" * 300_000 + b"\r\n--end--\r\n"
    )
    headers = chat.person.headers | {
        "Content-Type": "multipart/form-data; boundary=end",
        "X-CSRFToken": chat.person.cookies["csrftoken"],
    }
    return await make_request(rig.ports[0], "POST", "/files/", headers, body)


async def test_f53_a_full_disk_of_the_workspace_is_told_to_the_model(
    own_model: Model, tmp_path: Path
) -> None:
    with Installation.embedded(tmp_path / "rig", own_model) as rig:
        chat = await started_chat(rig)
        with disk(rig.folder / "data" / "workspaces", 1) as place:
            filler = fill(place)
            assert await chat.say("Write the file plan.md with content: buy milk") == "done"
            assert "no room left" in chat.text(2)
            assert "no room left" in (await upload(rig, chat)).text
            filler.unlink()
            assert await chat.say("Write the file plan.md with content: buy bread") == "done"
            assert (place / "filler").exists() is False
            assert list(place.rglob("*"))
            await works(rig, chat)


async def test_f54_on_a_read_only_disk_it_does_not_start_and_says_why(
    own_model: Model, tmp_path: Path
) -> None:
    with (
        disk(tmp_path / "disk") as place,
        Installation.embedded(tmp_path / "rig", own_model) as rig,
    ):
        chat = await started_chat(rig)
        web, data = rig.webs[0], rig.folder / "data"
        web.kill()
        for path in data.iterdir():
            if path.is_file():
                (place / path.name).write_bytes(path.read_bytes())
        subprocess.run(["mount", "--bind", str(place), str(data)], check=True)
        try:
            subprocess.run(["mount", "-o", "remount,ro,bind", str(data)], check=True)
            with pytest.raises(Fell, match=r"nothing can be written to .*: Read-only file system"):
                rig.restart(web)
        finally:
            subprocess.run(["umount", "-l", str(data)], check=True)
        rig.restart(web)
        assert await chat.say("Are you there?") == "done"
        await rig.check()


async def test_f52_writes_wait_for_another_writer_of_the_embedded_database(
    own_model: Model, tmp_path: Path
) -> None:
    with Installation.embedded(tmp_path / "rig", own_model) as rig:
        chat = await started_chat(rig)
        other = sqlite3.connect(rig.folder / "data" / "agentweb.sqlite3", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        sending = asyncio.create_task(chat.send("Wait for me", seconds=60))
        await asyncio.sleep(1.5)
        assert (await chat.person.ask("GET", chat.path)).status == 200
        assert not sending.done()
        other.execute("COMMIT")
        other.close()
        assert (await sending).status == 200
        assert await chat.ended(2) == "done"
        await works(rig, chat)
