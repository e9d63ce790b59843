"""Processes that are killed while they write or migrate, forked from one with all imports done.

`python -m tests.faults.killed_processes write SEED KILLS`, `migrate SEED KILLS`, `steps SEED
LEAST`: after each kill everything acknowledged is looked up; at the end the record is verified.
What the steps left is written to contents.json in the data folder.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import sys
import time
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path

import django

django.setup()

from django.conf import settings  # noqa: E402
from django.contrib.auth.models import Group  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.db import connection, connections  # noqa: E402
from django.db.migrations.recorder import MigrationRecorder  # noqa: E402

from conversations.audit.verify import Tally, verify_everything  # noqa: E402
from conversations.context.view import wire  # noqa: E402
from conversations.log.triggers import find_missing_guards  # noqa: E402
from conversations.models import Message, User  # noqa: E402
from tests.support import database_contents  # noqa: E402

#: The step of an older database after which each one is killed, and other apps that it has.
OLDER = "0062_rights_to_make_tokens"
OTHERS = ("account", "admin", "mfa", "socialaccount")


def killed(
    work: Callable[[Callable[[str], object]], None], pause: float, *, begun: bool = False
) -> list[str]:
    """Run the work in a child that is killed after `pause` seconds; return what it reported.

    With `begun` the seconds count from its first report.
    """
    let_go()
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.close(reader)
        try:
            work(lambda text: os.write(writer, f"{text}\n".encode()))
        finally:
            os._exit(0)
    os.close(writer)
    told = os.read(reader, 64) if begun else b""
    time.sleep(pause)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with os.fdopen(reader, "rb") as file:
        return (told + file.read()).decode().split()


def let_go() -> None:
    """Close every connection: one shared with a child would outlive it, with its transaction."""
    connections.close_all()
    if connection.vendor == "postgresql":
        connection.close_pool()  # type: ignore[attr-defined]


def write(chance: random.Random, kills: int) -> str:
    from tests.support import stored_turns

    call_command("migrate", verbosity=0)
    stored_turns.played()
    done = 0
    for each in range(kills):
        texts = killed(partial(talk, each), 0.15 * chance.random(), begun=True)
        with sqlite3.connect(connection.settings_dict["NAME"]) as database:
            assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        rows = Message.objects.filter(kind="prompt").values_list("content", flat=True)
        stored = {wire.decode(content)[0]["text"] for content in rows}
        assert set(texts) <= stored, (each, set(texts) - stored)
        done += len(texts)
    assert list(verify_everything(Tally())) == []
    return f"{kills} kills, {done} acknowledged messages"


def talk(each: int, tell: Callable[[str], object]) -> None:
    """Send messages and answer them one after the other; report each acknowledged one."""
    from tests.support import people_and_turns

    user = User.objects.get(username="ada")
    for at in range(1_000):
        turn = people_and_turns.queued(user, f"{each}-{at}")
        tell(f"{each}-{at}")
        people_and_turns.answered(people_and_turns.claimed(turn))


def migrate(chance: random.Random, kills: int) -> str:
    for each in range(kills):
        # Later each time, so that every part of it is reached.
        killed(move, 0.02 + 0.12 * each + 0.1 * chance.random())
    # All tables are one step, and none of those before came to its end.
    assert died(inside=True)
    assert died(inside=False)
    is_whole()
    return f"killed {each + 3} times"


def move(tell: Callable[[str], object]) -> None:
    """Migrate; die at the end of a step of ours: a fast machine is there before it is killed."""
    del tell
    die_at_steps(inside=True)
    call_command("migrate", verbosity=0)


def steps(chance: random.Random, least: int) -> str:
    """Die at each of the last steps of an older site, just before and just after its commit."""
    call_command("migrate", "conversations", "0001_initial", verbosity=0)
    # While there are few tables they take no time.
    for app in OTHERS:
        call_command("migrate", app, verbosity=0)
    call_command("migrate", "conversations", OLDER, verbosity=0)
    # They were given the rights on the first tables alone, as on no site.
    Group.objects.all().delete()
    done = 0
    while died(inside=True):
        assert died(inside=False)
        done += 1
    assert done >= least, done
    left = json.dumps(database_contents.describe())
    (Path(settings.DATA_DIR) / "contents.json").write_text(left, encoding="utf-8")
    is_whole()
    return f"killed at {done} steps"


def died(*, inside: bool) -> bool:
    """Migrate in a child that dies when one of ours is recorded; return whether there was one."""
    let_go()
    child = os.fork()
    if not child:
        die_at_steps(inside=inside)
        code = 1
        try:
            call_command("migrate", verbosity=0)
            code = 0
        except Exception:
            traceback.print_exc()
        finally:
            os._exit(code)
    status = os.waitpid(child, 0)[1]
    assert status in (0, signal.SIGKILL), status
    return status == signal.SIGKILL


def die_at_steps(*, inside: bool) -> None:
    record = MigrationRecorder.record_applied

    def dying(recorder: MigrationRecorder, app: str, name: str) -> None:
        if inside and app == "conversations":
            die()
        record(recorder, app, name)
        if app == "conversations":
            recorder.connection.on_commit(die)

    MigrationRecorder.record_applied = dying  # type: ignore[method-assign]


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def is_whole() -> None:
    """Finish the migration and check that everything works."""
    call_command("migrate", verbosity=0)
    assert find_missing_guards() == []
    from tests.support import replayed_turns, stored_turns

    replayed_turns.forget()
    stored_turns.played()
    assert list(verify_everything(Tally())) == []


if __name__ == "__main__":
    seed, kills = int(sys.argv[2]), int(sys.argv[3])
    work = {"write": write, "migrate": migrate, "steps": steps}[sys.argv[1]]
    sys.stdout.write(work(random.Random(seed), kills) + "\n")
