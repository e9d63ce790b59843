"""Trials: what another policy would have done to a conversation, replayed in a thread.

The subject is read in the request; the replay is arithmetic and needs no database. One thread of
the process runs all trials, so that they never take more than one core from answers. Each is
bounded in bytes and time, and a person has one at a time. Results are kept in this process until
the person starts another one: they can be computed again and are no record. The page shows them in
whichever process it is asked of: web/shared_trials.py.
"""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from threading import Lock

from django.utils.translation import gettext as _

from conversations.context.translation import gettext_noop, mark_recorded
from conversations.lab.replayer import Step
from conversations.lab.report import Report, simulate_record
from conversations.reductions.trial_subject import Subject, TrialError
from conversations.rendering.numbers import write_number

logger = logging.getLogger("agentweb.trials")

#: Limits: bytes and seconds of one trial, number of waiting trials, number of kept trials.
MOST_BYTES, MOST_SECONDS, MOST_WAITING, MOST_KEPT = 8_000_000, 120.0, 10, 200

_OVERDUE = mark_recorded(
    gettext_noop(
        "The trial was ended after %(number)s seconds; the command below has no such limit."
    )
)
_FAILED = mark_recorded(gettext_noop("The replay failed on the server; it was logged."))


@dataclass(frozen=True, slots=True)
class Trial:
    """One person's trial with its reports so far; `problem` says why it ended early."""

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
        trial = self.find(user_id)
        return trial if trial is not None and trial.conversation_id == conversation_id else None

    def find(self, user_id: int) -> Trial | None:
        """Return the person's last trial."""
        with self._lock:
            return self._found.get(user_id)

    def put(self, user_id: int, trial: Trial, seconds: float = MOST_SECONDS) -> None:
        """Keep the person's trial; one that runs is put again, or has ended, in `seconds`."""
        with self._lock:
            self._keep(user_id, trial)

    def admit(self, user_id: int, size: int) -> None:
        """Raise TrialError when a trial of that many bytes cannot start now."""
        if size > MOST_BYTES:
            words = _(
                "This chat has %(size)s bytes; at most %(most)s are replayed here. The"
                " command below has no such limit."
            )
            most = write_number(MOST_BYTES)
            raise TrialError(words % {"size": write_number(size), "most": most})
        _demand_ended(self.find(user_id))
        with self._lock:
            self._demand_room(user_id)

    def start(
        self, user_id: int, conversation_id: int, head: int, subject: Subject
    ) -> Future[None]:
        """Start a trial; raises TrialError when one is running or the limits are exceeded."""
        self.admit(user_id, subject.size)
        names = tuple(world.policy.name for world in subject.worlds)
        with self._lock:
            self._demand_room(user_id)
            trial = Trial(conversation_id, head, names, subject.own, actual=subject.actual)
            self._keep(user_id, trial)
        self.put(user_id, trial, MOST_WAITING * MOST_SECONDS)
        return self._pool.submit(self._run, user_id, trial, subject)

    def _demand_room(self, user_id: int) -> None:
        _demand_ended(self._found.get(user_id))
        if sum(trial.is_running for trial in self._found.values()) >= MOST_WAITING:
            raise TrialError(_("Too many trials are waiting; try again in a minute."))

    def _run(self, user_id: int, trial: Trial, subject: Subject) -> None:
        until = time.monotonic() + MOST_SECONDS

        def watch(step: Step) -> None:
            # Releases the interpreter lock, so that running answers are not delayed.
            time.sleep(0.0005)
            if time.monotonic() > until:
                raise _OverdueError

        self.put(user_id, trial)
        problem = ""
        try:
            for world in subject.worlds:
                report = simulate_record(subject.record, world, watch)
                trial = replace(trial, reports=(*trial.reports, report))
                self.put(user_id, trial)
        except _OverdueError:
            problem = _OVERDUE % {"number": f"{MOST_SECONDS:.0f}"}
        except Exception:
            logger.exception("a trial failed")
            problem = _FAILED
        self.put(user_id, replace(trial, is_running=False, problem=problem))

    def _keep(self, user_id: int, trial: Trial) -> None:
        self._found[user_id] = trial
        self._found.move_to_end(user_id)
        ended = [key for key, one in self._found.items() if not one.is_running]
        for key in ended[: max(0, len(self._found) - MOST_KEPT)]:
            del self._found[key]


def _demand_ended(trial: Trial | None) -> None:
    if trial is not None and trial.is_running:
        raise TrialError(_("Your last trial is still running; wait for it to end."))
