"""F30 to F39: a worker is killed at each boundary of a tool round; another one continues.

The process is really killed, by its id, while it halts at the boundary. Executions of tools are
counted in a file outside the database: no write runs twice, wherever a process dies.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentweb.emulator import server
from agentweb.emulator.script import Script, after, call, say, when
from agentweb.emulator.server import EmulatorServer
from conversations.agent.tool_calls import CUT_SHORT
from conversations.context.view import wire
from conversations.db import run_db
from conversations.files.workspace import UserWorkspace
from conversations.files.workspace.arrange import restore_files
from conversations.models import ToolCall, Turn, WorkspaceFile
from conversations.turns.takeovers import MOST_TAKEOVERS
from tests.faults.halting_worker import BORDERS
from tests.faults.oracle import check_rows
from tests.faults.test_overspending import ROOT, address
from tests.support import toy_tools
from tests.support.running_turns import answer_text, ended, is_valid, queue, supervising, unrecorded

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]
EFFECTS = {"peek": "read", "put": "keyed", "fire": "write"}
FILES = ("write_file", "edit_file", "move_file", "delete_file")
SCRIPT = Script([
    *(when(f"please {name}", call(name, at="here")) for name in EFFECTS),
    *(after(name, say("It says: {result}")) for name in (*EFFECTS, *FILES)),
    when("please write", call("write_file", path="plan.md", content="buy milk")),
    when("please edit", call("edit_file", path="plan.md", old="buy", new="buy, buy")),
    when("please move", call("move_file", path="old.md", to="plan.md")),
    when("please delete", call("delete_file", path="plan.md")),
    when("", say("Yes.")),
])  # fmt: skip


@pytest.fixture(scope="module")
def emulator() -> Iterator[EmulatorServer]:
    with server.start(pace=0, record=True, script=SCRIPT) as running:
        yield running


@pytest.fixture
def ran(emulator: EmulatorServer, settings: Any, monkeypatch: Any, tmp_path: Path) -> Path:
    """Return the file of executed tools; those that write are allowed without approval."""
    from conversations.models import ApprovalRule

    emulator.emulator.reset()
    settings.ANTHROPIC_BASE_URL = emulator.url
    toy_tools.install(monkeypatch, tmp_path / "ran")
    ApprovalRule.objects.create(tool="fire", rule="allow")
    return tmp_path / "ran"


@pytest.fixture(scope="module")
def workers(django_db_setup: None, emulator: EmulatorServer) -> Iterator[subprocess.Popen[str]]:
    """Start the process that workers are forked from, on the database and files of the test."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.faults.halting_worker"],
        cwd=ROOT,
        env=os.environ | {
            "DATABASE_URL": address(),
            "DJANGO_SETTINGS_MODULE": "agentweb.settings",
            "AGENTWEB_TITLE_MODEL": "off",
            "ANTHROPIC_API_KEY": "sk-test",
            "ANTHROPIC_BASE_URL": emulator.url,
        },
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
        text=True,
    ) as process:  # fmt: skip
        yield process
        process.kill()


def kill_at(border: str, workers: subprocess.Popen[str]) -> None:
    """Run a worker up to a boundary, and kill it there."""
    assert workers.stdin is not None
    assert workers.stdout is not None
    workers.stdin.write(json.dumps([border, {toy_tools.RAN: os.environ[toy_tools.RAN]}]) + "\n")
    workers.stdin.flush()
    here, _, pid = workers.stdout.readline().partition(" ")
    assert here == "here"
    os.kill(int(pid), signal.SIGKILL)
    assert workers.stdout.readline() == "gone\n"


#: Executions of a tool in the end, by the boundary at which its first worker was killed.
RUNS = {"planned": 1, "started": 1, "effect": 2, "finished": 1, "results": 1}


@pytest.mark.parametrize("border", BORDERS)
@pytest.mark.parametrize("name", EFFECTS)
async def test_a_worker_killed_in_a_tool_round_is_followed_by_one_that_goes_on(
    name: str,
    border: str,
    emulator: EmulatorServer,
    ran: Path,
    workers: subprocess.Popen[str],
) -> None:
    turn = await queue(f"please {name}")
    kill_at(border, workers)
    async with supervising():
        row = await ended(turn)
    assert (row.state, row.finish_reason, row.takeovers) == ("done", "end_turn", 1)
    call = await run_db(ToolCall.objects.select_related("output").get)
    is_unknown = name == "fire" and border in ("started", "effect")
    runs = toy_tools.ran(ran)
    if is_unknown:
        assert len(runs) == (border == "effect")
        assert (call.state, wire.decode(call.output.text)) == ("unknown", CUT_SHORT)
        assert CUT_SHORT in await run_db(answer_text, row)
    else:
        assert len(runs) == RUNS[border]
        assert call.state == "ok"
        assert f"{name} has run" in await run_db(answer_text, row)
    assert len({key for _, key in runs}) <= 1
    assert len(emulator.emulator.log) == 2
    await run_db(check_rows)
    await run_db(is_valid, row.conversation)
    assert await run_db(unrecorded, emulator) == []


def write(owner_id: int, text: str, path: str = "plan.md") -> None:
    UserWorkspace(owner_id).write(path, text.encode())


def restore(owner_id: int) -> None:
    row = WorkspaceFile.objects.get(owner=owner_id, state="trash")
    assert row.batch is not None
    restore_files(owner_id=owner_id, batch=row.batch)


def list_sizes(owner_id: int) -> list[tuple[str, int]]:
    return [(one.path, one.bytes) for one in UserWorkspace(owner_id).entries()]


@pytest.mark.parametrize(
    ("name", "meanwhile", "said", "state", "left"),
    [
        ("write", None, "Wrote plan.md already (8 bytes).", "ok", 8),
        ("write", "a longer plan", "was changed by another since", "error", 13),
        ("edit", None, "Changed plan.md already", "ok", 13),
        ("edit", "buy a longer plan", "was changed by another since", "error", 17),
        ("move", None, "Moved old.md to plan.md", "ok", 8),
        ("move", "a longer plan", "was changed by another since", "error", 13),
        ("delete", None, "Deleted plan.md; the user can bring it back", "ok", None),
        ("delete", "restored", "the user has brought it back", "ok", 8),
        ("delete", "a longer plan", "was changed by another since", "error", 13),
    ],
)
async def test_a_file_that_was_changed_before_its_worker_died_is_not_changed_again(
    name: str,
    meanwhile: str | None,
    said: str,
    state: str,
    left: int | None,
    ran: Path,
    workers: subprocess.Popen[str],
) -> None:
    turn = await queue(f"please {name}")
    owner = (await run_db(lambda: Turn.objects.get(pk=turn.pk).conversation)).owner_id
    if name != "write":
        await run_db(write, owner, "buy milk", "old.md" if name == "move" else "plan.md")
    await run_db(lambda: kill_at("written", workers))
    if meanwhile == "restored":
        await run_db(restore, owner)
    elif meanwhile:
        await run_db(write, owner, meanwhile)
    async with supervising():
        row = await ended(turn)
    assert (row.state, row.takeovers) == ("done", 1)
    assert said in await run_db(answer_text, row)
    assert (await run_db(ToolCall.objects.get)).state == state
    assert await run_db(list_sizes, owner) == ([] if left is None else [("plan.md", left)])
    await run_db(check_rows)


async def test_a_turn_that_kills_its_workers_is_given_up_and_others_run(
    emulator: EmulatorServer, ran: Path, workers: subprocess.Popen[str]
) -> None:
    poison = await queue("please put")
    for _ in range(1 + MOST_TAKEOVERS):
        kill_at("effect", workers)
    other = await queue("please peek")
    async with supervising():
        row, fine = await ended(poison), await ended(other)
    assert (row.state, row.finish_reason, fine.state) == ("failed", "poison", "done")
    assert len({key for name, key in toy_tools.ran(ran) if name == "put"}) == 1
    assert await run_db(Turn.objects.filter(takeovers__gt=0).count) == 1
    await run_db(check_rows)
    await run_db(is_valid, row.conversation)
