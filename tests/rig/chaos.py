"""Random people, and processes that are killed at random: `python -m tests.rig.chaos --kills 2000`.

    --seed N          first seed of the random numbers; it and that of every round are printed
    --kills N         processes to kill, of both modes together
    --mode MODE       embedded, scaled or both
    --out FILE        where the report goes as JSON; without it, a long run is stored with others

People send messages, use tools, answer approvals, stop, retry, and reload their pages. Their
context windows are small, so that conversations are compacted. Meanwhile processes are killed,
paused or stopped, and connections to the model, the database and Redis are cut. After each round,
which has its own installation, everything must come to rest and tests.rig.oracle checks all
invariants. The seed of a round determines its people and faults, but not how the processes
interleave.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from tests.rig import model as models
from tests.rig.client import FINAL, Away, Chat, Person
from tests.rig.forking import base
from tests.rig.installations import Fell, Installation
from tests.rig.processes import Process
from tests.rig.proxy import Proxy
from tests.rig.report import ENOUGH, Report, dumped, keep, print_line
from tests.rig.scenes import SCRIPT, SMALL, TOOLS
from tests.support import prepared_databases, servers

#: Kills of a run, without another number.
KILLS = 2_000
#: Kills of one round, and rounds that run at the same time.
ROUND, AT_ONCE = 100, 4
#: Databases of a Redis; concurrent rounds use one each.
_DATABASES = 16
PEOPLE = 4
#: Acknowledged messages for each kill, which come sometimes earlier and sometimes later.
MESSAGES, SWAY = 2.2, (-4, -2, 0, 2, 4)
#: Seconds after which a disaster comes although people were silent, or nobody could hear them.
SILENCE = 6
SETTINGS = SMALL | {
    "AGENTWEB_DRAIN_SECONDS": "2",
    "AGENTWEB_WORKER_DRAIN_SECONDS": "2",
    "AGENTWEB_LEASE_SECONDS": "3",
    "AGENTWEB_LOG_LEVEL": "WARNING",
}
#: Faults of a process, with their frequency in percent; "crash" kills all processes at once.
DISASTERS = {"kill": 60, "crash": 24, "terminate": 6, "pause": 5, "cut": 5}


@dataclass
class Round:
    """One installation, its people and its faults."""

    rig: Installation
    dice: Random
    report: Report
    kills: int
    proxies: Sequence[Proxy] = ()
    is_over: bool = False
    _busy: set[str] = field(default_factory=set)

    async def run(self) -> None:
        people = await asyncio.to_thread(self.rig.persons, PEOPLE)
        lives = [asyncio.create_task(self._live(person)) for person in people]
        try:
            await self._strike()
        finally:
            self.is_over = True
            for proxy in self.proxies:
                proxy.behave()
        await asyncio.to_thread(self.rig.heal)
        await asyncio.gather(*lives)
        await self._settle(people)

    # Disasters

    async def _strike(self) -> None:
        disasters: list[asyncio.Task[None]] = []
        while self.report.kills < self.kills:
            await self._talk()
            await asyncio.sleep(self.dice.uniform(0.02, 0.2))
            free = [each for each in self._victims() if each.name not in self._busy]
            if free:
                victim = self.dice.choice(free)
                self._busy.add(victim.name)
                disasters.append(asyncio.create_task(self._disaster(victim)))
        await asyncio.gather(*disasters)

    def _victims(self) -> list[Process]:
        """Return who may be next: beat, which has little to do, in one of three cases."""
        rig = self.rig
        hits_beat = rig.beat is not None and self.dice.random() < 0.3
        return rig.processes if hits_beat else [*rig.webs, *rig.workers]

    async def _disaster(self, victim: Process) -> None:
        kind = self.dice.choices(list(DISASTERS), list(DISASTERS.values()))[0]
        try:
            match kind:
                case "kill":
                    await self._kill(victim)
                case "crash":
                    rest = [each for each in self.rig.processes if each.name not in self._busy]
                    self._busy.update(each.name for each in rest)
                    try:
                        await asyncio.gather(*(self._kill(each) for each in (victim, *rest)))
                    finally:
                        self._busy.difference_update(each.name for each in rest)
                case "terminate":
                    self.report.terminations += 1
                    victim.terminate()
                    code = await asyncio.to_thread(victim.wait)
                    if code:
                        self.report.bad_exits += 1
                        print_line(f"{victim.name} ended with {code}:\n{victim.tail(2_000)}")
                    await self._succeed(victim)
                case "pause":
                    self.report.pauses += 1
                    victim.pause()
                    await asyncio.sleep(self.dice.choice((0.2, 1.0, self.rig.lease + 1.5)))
                    victim.resume()
                case _ if self.proxies:
                    self.report.cuts += 1
                    self.dice.choice(self.proxies).kill()
        finally:
            self._busy.discard(victim.name)

    async def _kill(self, victim: Process) -> None:
        self.report.kills += 1
        await asyncio.to_thread(victim.kill)
        await self._succeed(victim)

    async def _succeed(self, victim: Process) -> None:
        """Start a successor, and another one if a cut connection ended that at its start."""
        while True:
            cuts = self.report.cuts
            try:
                await asyncio.to_thread(self.rig.restart, victim)
            except Fell:
                if self.report.cuts == cuts:
                    raise
            else:
                return

    async def _talk(self) -> None:
        """Wait until people have said enough for the kills so far, however slow the machine is."""
        goal = MESSAGES * self.report.kills + self.dice.choice(SWAY)
        deadline = time.monotonic() + SILENCE
        while self._acknowledged() < goal and time.monotonic() < deadline:
            await asyncio.sleep(0.01)

    def _acknowledged(self) -> int:
        return sum(len(person.acknowledged) for person in self.rig.people)

    # People

    async def _live(self, person: Person) -> None:
        dice = person.dice
        while not self.is_over:
            await person.close()
            chat = await person.begin(self._words(dice), seconds=120)
            for _ in range(dice.randrange(4, 14)):
                if self.is_over:
                    break
                await self._wait(chat, dice)
                await self._act(person, chat, dice)

    async def _act(self, person: Person, chat: Chat, dice: Random) -> None:
        chance = dice.random()
        if chat.state() not in FINAL and chance < 0.5:
            return
        if chance < 0.3 and chat.page.text("queue"):
            await chat.post("queue/send", {}, seconds=120)
        elif chance < 0.3 and chat.state() == "interrupted":
            await chat.retry(chat.number)
        elif chance < 0.36:
            # A page that is loaded again, beside the one that stays open.
            for other in person.chats[1:]:
                await other.close()
                person.chats.remove(other)
            await person.open(chat.path, seconds=120)
        else:
            await chat.send(self._words(dice), seconds=120)
            if dice.random() < 0.5:
                # Another one, which waits for the first to be answered.
                await chat.send(self._words(dice), seconds=120)

    async def _wait(self, chat: Chat, dice: Random) -> None:
        """Watch the answer for a while: stop it, decide its approvals, or let it finish."""
        deadline = time.monotonic() + 20
        stops = dice.random() < 0.08
        await asyncio.sleep(dice.uniform(0.0, 0.3))
        if stops:
            await chat.stop()
        while chat.state() not in FINAL and time.monotonic() < deadline and not self.is_over:
            if chat.state() == "approval_wait":
                with suppress(Away):
                    await chat.decide(dice.choice(("once", "once", "denied")))
            await asyncio.sleep(0.05)

    def _words(self, dice: Random) -> str:
        """Return a message; some bring so much text that older messages are summarised."""
        number = dice.randrange(10**6)
        kind = dice.random()
        if kind < 0.45:
            size, pace = dice.choice((20, 80, 200)), dice.choice(("0", "0.001", "0.003"))
            return f"Number {number}: answer in {size} words emulator:pace={pace}"
        if kind < 0.65:
            pasted = " ".join(str(dice.randrange(10**6)) for _ in range(1_500))
            return f"Number {number}: answer in 20 words. {pasted}"
        return f"Number {number}: please {dice.choice((*TOOLS, 'fire', 'both'))}"

    # The end

    async def _settle(self, people: Sequence[Person]) -> None:
        report, rig = self.report, self.rig
        while True:
            stuck = await rig.stuck(rig.lease + 180)
            waits = await rig.acall("tests.rig.site_actions:waiting_turns")
            if stuck or not waits:
                break
            # Nobody is left to decide approvals.
            for person in people:
                for path in waits:
                    if path in person.paths:
                        await person.insist(f"{path}stop/", {})
        report.stuck_turns += len(stuck)
        found = await rig.examine()
        report.lost_messages += len(found["lost"])
        report.doubled_side_effects += len(found["doubled"])
        report.illegal_requests += len(found["illegal"])
        report.ledger_drift += len(found["drift"])
        report.bad_rows += len(found["rows"])
        report.pages_out_of_step += len(found["pages"])
        for name, problems in ({"stuck": stuck} | found).items():
            for problem in problems:
                report.blame(f"{name}: {problem}")
        report.messages_acknowledged += self._acknowledged()
        report.tool_runs += len(rig.ran())
        report.model_requests += len(rig.model.bodies())
        for row in rig.turns():
            report.turns[row["state"]] = report.turns.get(row["state"], 0) + 1
            report.takeovers += row["takeovers"]
        report.summaries += await rig.acall("tests.rig.site_actions:count_summaries")
        await rig.close()


async def play(mode: str, seed: int, kills: int, folder: Path) -> Report:
    """Run one round and report it."""
    report, started = Report(mode, seed, rounds=1), time.monotonic()
    # Started from this thread, since it ends with its parent thread.
    base()
    folder.mkdir()
    model = models.start(SCRIPT)
    ways = [Proxy(model.port)]
    settings = SETTINGS | {"ANTHROPIC_BASE_URL": f"http://127.0.0.1:{ways[0].port}"}
    try:
        if mode == "scaled":
            settings |= _through(ways, seed % _DATABASES)
        with await asyncio.to_thread(Installation.of, mode, folder, model, **settings) as rig:
            dice = Random(seed)
            rig.dice = Random(dice.random())
            await Round(rig, dice, report, kills, ways).run()
    finally:
        for way in ways:
            way.stop()
        model.stop()
    report.seconds = time.monotonic() - started
    return report


def _through(ways: list[Proxy], number: int) -> dict[str, str]:
    """Put proxies before PostgreSQL and one database of Redis."""

    store, broker = servers.shared_postgres(), servers.shared_redis()
    ways += [Proxy(store.port), Proxy(broker.port)]
    url = prepared_databases.postgres(store).replace(f":{store.port}/", f":{ways[1].port}/")
    return {"DATABASE_URL": url, "REDIS_URL": f"redis://127.0.0.1:{ways[2].port}/{number}"}


async def play_all(
    modes: Sequence[str],
    seed: int,
    kills: int,
    folder: Path,
    print_reports: Callable[[list[Report]], None],
) -> list[Report]:
    """Run rounds until `kills` processes were killed, some at the same time."""
    totals = {mode: Report(mode, seed) for mode in modes}
    rounds = [
        (modes[number % len(modes)], seed * 1_000 + number, min(ROUND, kills - number * ROUND))
        for number in range(-(-kills // ROUND))
    ]
    room = asyncio.Semaphore(AT_ONCE)

    async def one(mode: str, seed: int, size: int) -> None:
        async with room:
            report = await play(mode, seed, size, folder / f"{mode}-{seed}")
            totals[mode].add(report)
            print_reports(list(totals.values()))
            end = "clean" if report.is_clean else "NOT CLEAN"
            print_line(
                f"{mode} seed {seed}: {report.kills} kills in {report.seconds:.0f} s,"
                f" {report.messages_acknowledged} messages, {end}"
            )

    await asyncio.gather(*(one(*each) for each in rounds))
    return list(totals.values())


def main() -> None:
    parser = argparse.ArgumentParser(prog="tests.rig.chaos", description=__doc__)
    parser.add_argument("kills", nargs="?", type=int, default=KILLS)
    parser.add_argument("seed", nargs="?", type=int, default=int.from_bytes(os.urandom(3)))
    parser.add_argument("--kills", type=int, dest="named_kills")
    parser.add_argument("--seed", type=int, dest="named_seed")
    parser.add_argument("--mode", choices=("embedded", "scaled", "both"), default="both")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    seed, kills = options.named_seed or options.seed, options.named_kills or options.kills
    modes = ("embedded", "scaled") if options.mode == "both" else (options.mode,)
    print_line(f"chaos: {kills} kills, seed {seed}")
    started, folder = time.monotonic(), servers.folder_of("chaos")
    out = options.out or folder / "report.json"

    def found(reports: list[Report]) -> dict[str, Any]:
        return {
            "seed": seed,
            "kills": sum(report.kills for report in reports),
            "seconds": round(time.monotonic() - started, 1),
            "load": round(os.getloadavg()[0], 1),
            "is_clean": all(report.is_clean for report in reports),
            "modes": [asdict(report) for report in reports],
        }

    def print_reports(reports: list[Report]) -> None:
        out.write_text(dumped(found(reports)), encoding="utf-8")

    done = found(asyncio.run(play_all(modes, seed, kills, folder, print_reports)))
    print_line(dumped(done))
    if options.out is None and not keep(done):
        print_line(f"It is not kept: that takes {ENOUGH:,} kills, in both modes. It is in {out}.")
    sys.exit(not done["is_clean"])


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        main()
