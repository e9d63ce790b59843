"""The real product as processes, embedded or scaled out, with an emulator that can be held.

    with Installation.embedded(folder, model) as rig: ...
    with Installation.scaled(folder, model, postgres, redis, webs=2, workers=2) as rig: ...
    with Installation.of(mode, folder, model) as rig: ...  # by name, on the run's own servers

    person = rig.person()                    # tests.rig.client.Person, logged in
    rig.webs[0].kill(); rig.restart(rig.webs[0])         # the same port, a new process
    rig.runner(chat).pause(); rig.heal()                 # the process of its turn; all run again
    await rig.rest()                         # no turn is running any more
    await rig.check()                        # the checks of tests.rig.oracle, on all open pages too
    held = rig.held(); ...; await rig.back_to(held)      # O8: nothing is leaked

Settings are keyword arguments, `AGENTWEB_` names of the environment (`Installation.embedded(folder,
model, AGENTWEB_MAX_ROUNDS="5")`); `ANTHROPIC_BASE_URL`, `DATABASE_URL` and `REDIS_URL` are possible
too, to put a `proxy.Proxy` in between. A lease has five seconds, not thirty, and the sweep runs
every `sweep` seconds. A process started with `halts` stops at a named place and reports it
(`rig.halted`): see roles. The tools of tests/support/toy_tools.py are available; `rig.ran()` lists
those that have run.
"""

from __future__ import annotations

import asyncio
import functools
import json
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Self
from uuid import uuid4

from conversations.context.view import wire
from tests.rig.client import Chat, Person
from tests.rig.forking import Template, base
from tests.rig.model import Model
from tests.rig.oracle import invalid
from tests.rig.processes import Process
from tests.support import prepared_databases, servers, toy_tools

MODES = ("embedded", "scaled")
#: Micro-dollars that a person of a rig may spend.
BUDGET = 500_000_000
#: Output of processes once they are ready.
GREETINGS = {"web": "agentweb is running", "worker": "worker runs up to"}
#: Seconds after the end of a lease within which its turn is taken over.
GRACE = 5.0


class Fell(AssertionError):
    """A process ended before it was ready."""


@dataclass
class Installation:
    """One installation and its processes."""

    mode: str
    folder: Path
    model: Model
    environment: dict[str, str]
    sweep: float = 1.0
    dice: Random = field(default_factory=Random)
    webs: list[Process] = field(default_factory=list)
    workers: list[Process] = field(default_factory=list)
    beat: Process | None = None
    ports: list[int] = field(default_factory=list)
    people: list[Person] = field(default_factory=list)
    template: Template = field(init=False)
    _checked: int = 0
    #: Ends of the verified chains; None: nothing was verified yet.
    _ends: dict[str, str] | None = None

    @classmethod
    def embedded(cls, folder: Path, model: Model, *, starts: bool = True, **settings: str) -> Self:
        """Create one process on SQLite."""
        environment = _environment(folder, model, settings)
        (folder / "data").mkdir(mode=0o700, parents=True)
        if "DATABASE_URL" not in settings:
            shutil.copy(prepared_databases.sqlite(), folder / "data" / "agentweb.sqlite3")
        rig = cls("embedded", folder, model, environment)
        rig._begin()
        if starts:
            rig.add_web()
        return rig

    @classmethod
    def scaled(
        cls,
        folder: Path,
        model: Model,
        postgres: servers.Server | None = None,
        redis: servers.Server | None = None,
        *,
        webs: int = 2,
        workers: int = 2,
        has_beat: bool = True,
        **settings: str,
    ) -> Self:
        """Create web processes and workers, by default on the run's PostgreSQL and Redis."""
        store = postgres or servers.shared_postgres()
        fixed = {
            "DATABASE_URL": prepared_databases.postgres(store),
            "REDIS_URL": (redis or servers.shared_redis()).url,
            "AGENTWEB_RUN_TURNS_IN": "worker",
        }
        environment = _environment(folder, model, fixed | settings)
        (folder / "data").mkdir(mode=0o700, parents=True)
        rig = cls("scaled", folder, model, environment)
        rig._begin()
        for _ in range(webs):
            rig.add_web()
        for _ in range(workers):
            rig.add_worker()
        if has_beat:
            rig.beat = rig._beat()
        return rig

    @classmethod
    def of(cls, mode: str, folder: Path, model: Model, **settings: str) -> Self:
        make = cls.embedded if mode == "embedded" else cls.scaled
        return make(folder, model, **settings)

    def _begin(self) -> None:
        self.look_from_here()
        self.template = base().template(self.folder, self.environment)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    # Processes

    @property
    def lease(self) -> int:
        """Return the seconds of a turn's lease."""
        return int(self.environment["AGENTWEB_LEASE_SECONDS"])

    @property
    def processes(self) -> list[Process]:
        return [*self.webs, *self.workers, *([self.beat] if self.beat else [])]

    def add_web(self, **options: Any) -> Process:
        """Start another web process; `options` are those of `Template.start` and `roles.serve`."""
        self.ports.append(servers.free_port())
        self.webs.append(self._web(len(self.ports) - 1, **options))
        return self.webs[-1]

    def add_worker(self, **options: Any) -> Process:
        self.workers.append(self._worker(len(self.workers), **options))
        return self.workers[-1]

    def restart(self, process: Process, **options: Any) -> Process:
        """Start the successor of an ended process in its place."""
        assert not process.is_running
        if process in self.webs:
            at = self.webs.index(process)
            self.webs[at] = self._web(at, **options)
            return self.webs[at]
        if process is self.beat:
            self.beat = self._beat()
            return self.beat
        at = self.workers.index(process)
        self.workers[at] = self._worker(at, **options)
        return self.workers[at]

    def _web(self, at: int, **options: Any) -> Process:
        options |= {"port": self.ports[at]}
        return self._start(f"web-{at}", "tests.rig.roles:serve", **options)

    def _worker(self, at: int, **options: Any) -> Process:
        return self._start(f"worker-{at}", "tests.rig.roles:worker", **options)

    def _beat(self) -> Process:
        return self.template.start("beat", "tests.rig.roles:beat", self.folder / "beat.log")

    def _start(self, name: str, function: str, **options: Any) -> Process:
        options = {"sweep": self.sweep} | options
        return self.greeted(name, lambda log: self.template.start(name, function, log, **options))

    def greeted(self, name: str, start: Callable[[Path], Process]) -> Process:
        """Start a process and wait until it is ready."""
        log, greeting = self.folder / f"{name}.log", GREETINGS[name.partition("-")[0]]
        before = log.read_text(errors="replace").count(greeting) if log.exists() else 0
        process = start(log)
        deadline = time.monotonic() + 300
        while not log.exists() or log.read_text(errors="replace").count(greeting) <= before:
            if not process.is_running:
                raise Fell(f"{name} ended at its start:\n{process.tail()}")
            if time.monotonic() > deadline:
                raise AssertionError(f"{name} did not start:\n{process.tail()}")
            time.sleep(0.05)
        return process

    def halted(self) -> list[str]:
        """Return the halts that processes have reached."""
        path = self.folder / "halted"
        return path.read_text(encoding="ascii").splitlines() if path.exists() else []

    async def halts(self, halt: str, times: int = 1, seconds: float = 120) -> None:
        """Wait until `times` processes have reached a halt."""
        async with asyncio.timeout(seconds):
            while self.halted().count(halt) < times:
                await asyncio.sleep(0.01)

    def heal(self) -> None:
        """Resume or restart every process, whatever was done to it."""
        for process in self.processes:
            if process.is_running:
                process.resume()
            else:
                self.restart(process)

    def runner(self, chat: Chat) -> Process:
        """Return the process that runs the last turn of a conversation."""
        owner = self.turns(chat)[-1]["lease_owner"].rpartition(":")[2]
        return next(process for process in self.processes if str(process.pid) == owner)

    def look_from_here(self) -> None:
        """Ignore the requests so far: another rig may have made them."""
        self._checked = len(self.model.emulator.log)

    async def close(self) -> None:
        """Close the tabs of all people."""
        for person in self.people:
            await person.close()

    def end(self) -> None:
        """Kill all processes."""
        self.model.let_go()
        for process in self.processes:
            process.end()
        self.template.end()

    # People

    def person(self, limit: int = BUDGET, ports: Sequence[int] | None = None) -> Person:
        """Create a logged-in person; `ports` for one who connects through a proxy."""
        return self.persons(1, limit, ports)[0]

    def persons(
        self, count: int, limit: int = BUDGET, ports: Sequence[int] | None = None
    ) -> list[Person]:
        prefix = f"p{uuid4().hex[:8]}-"
        rows = self.call("tests.rig.site_actions:people", count=count, limit=limit, prefix=prefix)
        made = []
        for row in rows:
            dice = Random(self.dice.random())
            person = Person(lambda: self.ports if ports is None else ports, row["name"], dice=dice)
            person.cookies[row["cookie"]] = row["session"]
            made.append(person)
        self.people += made
        return made

    # Rows

    def call(self, function: str, **arguments: Any) -> Any:
        """Call a function in the installation's environment, in a process of its own."""
        return self.template.call(function, self.folder / "site_actions.log", **arguments)

    async def acall(self, function: str, **arguments: Any) -> Any:
        """Call like `call`, without blocking the event loop."""
        return await asyncio.to_thread(functools.partial(self.call, function, **arguments))

    def turns(self, chat: Chat | None = None) -> list[dict[str, Any]]:
        """Return the stored turns of one conversation or of all."""
        found: list[dict[str, Any]] = self.call(
            "tests.rig.site_actions:turns", conversation=chat.conversation if chat else ""
        )
        return found

    def ran(self) -> list[tuple[str, str]]:
        """Return name and key of every run of a toy tool."""
        return toy_tools.ran(self.folder / "ran")

    # The oracle

    async def rest(self, seconds: float = 0) -> None:
        """Wait until no turn is running; one that waits for a person does not count (O1)."""
        found = await self.stuck(seconds or self.lease + GRACE + 120)
        assert not found, found

    async def stuck(self, seconds: float) -> list[str]:
        """Return the turns that are still running after `seconds`."""
        deadline = time.monotonic() + seconds
        while found := await self.acall("tests.rig.oracle:live"):
            if time.monotonic() > deadline:
                return list(found)
            await asyncio.sleep(0.2)
        return []

    async def check(self) -> None:
        """Wait for rest, then check rows, requests and every open page."""
        await self.rest()
        found = await self.examine()
        assert not any(found.values()), json.dumps(found, indent=1)

    def verify(self) -> None:
        """Check all rows again, including those already verified."""
        found = self.call("tests.rig.oracle:check")["wrong"]
        assert not any(found.values()), json.dumps(found, indent=1)

    async def examine(self) -> dict[str, list[str]]:
        """Return new failures by kind, in an installation at rest."""
        chats = [chat for person in self.people for chat in person.chats]
        pages = [each for chat in chats for each in await chat.differences()]
        log = self.model.emulator.log[self._checked :]
        self._checked += len(log)
        bodies = [row.body.decode() for row in log if row.path == "/v1/messages"]
        sent = [
            (each.conversation, each.client_id, each.text)
            for person in self.people
            for each in person.acknowledged
        ]
        done = await self.acall(
            "tests.rig.oracle:check",
            acknowledged=sent,
            digests=[wire.digest(body) for body in bodies],
            ran=str(self.folder / "ran"),
            ends=self._ends,
        )
        found: dict[str, list[str]] = done["wrong"]
        if not found["rows"]:
            self._ends = done["ends"]
        found["illegal"] += await asyncio.to_thread(invalid, log)
        return found | {"pages": pages}

    async def back_to(self, held: dict[str, int], room: int = 24, seconds: float = 60) -> None:
        """Wait until the processes hold the same resources as before (O8): see `held`.

        `room` allows for pools that were not full before: eight threads with their connections.
        """
        deadline = time.monotonic() + seconds
        while grown := {
            name: (held[name], count)
            for name, count in (await asyncio.to_thread(self.held)).items()
            if name in held and count > held[name] + room
        }:
            assert time.monotonic() < deadline, grown
            await asyncio.sleep(0.1)

    def held(self) -> dict[str, int]:
        """Count descriptors and threads of each process, and the sessions of the database."""
        found = {"sessions": int(self.call("tests.rig.site_actions:sessions"))}
        for process in self.processes:
            if process.is_running:
                found[f"{process.pid} descriptors"] = process.descriptors
                found[f"{process.pid} threads"] = process.threads
        return found


def _environment(folder: Path, model: Model, settings: dict[str, str]) -> dict[str, str]:
    return {
        "DJANGO_SETTINGS_MODULE": "agentweb.settings",
        "AGENTWEB_DATA_DIR": str(folder / "data"),
        "AGENTWEB_TITLE_MODEL": "off",
        "AGENTWEB_LEASE_SECONDS": "5",
        "AGENTWEB_WORKER_DRAIN_SECONDS": "10",
        "AGENTWEB_MAX_BACKOFF_SECONDS": "1",
        "SECRET_KEY": "only for rigs, " * 4,
        "ANTHROPIC_API_KEY": "sk-test",
        "ANTHROPIC_BASE_URL": model.url,
        toy_tools.RAN: str(folder / "ran"),
        "AGENTWEB_RIG_HALTED": str(folder / "halted"),
    } | settings  # fmt: skip
