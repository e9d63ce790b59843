"""Trials: what another policy would have done to a conversation, replayed in a thread.

The subject is read in the request; the replay is arithmetic and needs no database. One thread of
the process runs them, so that a trial never takes more than one core from the answers of others;
each is bounded in bytes, in time and to one for each person. What was found is kept in this process
until the person asks anew: it can be made again at any time and is nobody's record.
"""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from threading import Lock

from conversations.lab.replayer import Step
from conversations.lab.report import Report, simulate
from conversations.reductions.trial_subject import Subject, TrialError

logger = logging.getLogger("agentweb.trials")

#: Bounds of one trial, and of what waits and is kept.
MOST_BYTES, MOST_SECONDS, MOST_WAITING, MOST_KEPT = 8_000_000, 120.0, 10, 200


@dataclass(frozen=True, slots=True)
class Trial:
    """One person's trial: how far it is, and the reports so far; `problem` says why it ended."""

    conversation_id: int
    head: int
    names: tuple[str, ...]
    own: str
    reports: tuple[Report, ...] = ()
    actual: Report | None = None
    is_running: bool = True
    problem: str = ""


class _OverdueError(Exception):
    pass


class Trials:
    """The trials of this process."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="trials")
        self._lock = Lock()
        self._found: OrderedDict[int, Trial] = OrderedDict()

    def of(self, user_id: int, conversation_id: int) -> Trial | None:
        """Return the person's trial of this conversation."""
        with self._lock:
            trial = self._found.get(user_id)
        return trial if trial is not None and trial.conversation_id == conversation_id else None

    def admit(self, user_id: int, size: int) -> None:
        """Raise TrialError when a trial of so many bytes would not begin now."""
        if size > MOST_BYTES:
            raise TrialError(
                f"This conversation has {size:,} bytes; at most {MOST_BYTES:,} are"
                " replayed here. The command below has no such limit."
            )
        with self._lock:
            self._demand_room(user_id)

    def start(
        self, user_id: int, conversation_id: int, head: int, subject: Subject
    ) -> Future[None]:
        """Begin a trial; raises TrialError when one is running or too much is asked for."""
        self.admit(user_id, subject.size)
        names = tuple(world.policy.name for world in subject.worlds)
        with self._lock:
            self._demand_room(user_id)
            trial = Trial(conversation_id, head, names, subject.own, actual=subject.actual)
            self._keep(user_id, trial)
        return self._pool.submit(self._run, user_id, trial, subject)

    def _demand_room(self, user_id: int) -> None:
        mine = self._found.get(user_id)
        if mine is not None and mine.is_running:
            raise TrialError("Your last trial is still running; wait for it to end.")
        if sum(trial.is_running for trial in self._found.values()) >= MOST_WAITING:
            raise TrialError("Too many trials are waiting; try again in a minute.")

    def _run(self, user_id: int, trial: Trial, subject: Subject) -> None:
        until = time.monotonic() + MOST_SECONDS

        def watch(step: Step) -> None:
            # Lets go of the interpreter, so that an answer on its way is not held up.
            time.sleep(0.0005)
            if time.monotonic() > until:
                raise _OverdueError

        problem = ""
        try:
            for world in subject.worlds:
                report = simulate(subject.record, world, watch)
                trial = replace(trial, reports=(*trial.reports, report))
                self._put(user_id, trial)
        except _OverdueError:
            problem = (
                f"The trial was ended after {MOST_SECONDS:.0f} seconds; the command below has no"
                " such limit."
            )
        except Exception:
            logger.exception("a trial failed")
            problem = "The replay failed on the server; it was logged."
        self._put(user_id, replace(trial, is_running=False, problem=problem))

    def _put(self, user_id: int, trial: Trial) -> None:
        with self._lock:
            self._keep(user_id, trial)

    def _keep(self, user_id: int, trial: Trial) -> None:
        self._found[user_id] = trial
        self._found.move_to_end(user_id)
        ended = [key for key, one in self._found.items() if not one.is_running]
        for key in ended[: max(0, len(self._found) - MOST_KEPT)]:
            del self._found[key]


trials = Trials()
