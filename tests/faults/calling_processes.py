"""Many processes that make calls for started turns at the same time; some are killed in mid-call.

Run as `python -m tests.faults.calling_processes` with a plan on its stdin: Django is set up once,
then the process forks, so that many processes cost the start of one.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from random import Random

BEGINS = datetime(2026, 11, 26, 11, 59, 30, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Plan:
    """The work of one process; with `is_dying` it is killed with its first call open."""

    leases: tuple[tuple[int, int, int, int, int], ...]
    threads: int
    rounds: int
    is_dying: bool
    seed: int
    #: Seconds that its clock moves on each time it is read, from BEGINS; 0: the real clock.
    ticks: float = 0.0
    #: Whether no call uses more than was held for it.
    is_within_hold: bool = False


def written(plans: list[Plan]) -> str:
    return json.dumps([asdict(plan) for plan in plans])


def main() -> None:
    plans = [Plan(**row) for row in json.loads(sys.stdin.read())]
    import django

    django.setup()
    reading, writing = os.pipe()
    children = [child for plan in plans if (child := _forked(plan, reading, writing))]
    os.close(writing)
    for child in children:
        os.waitpid(child, 0)


def _forked(plan: Plan, reading: int, writing: int) -> int:
    """Fork a process; a surviving one starts when no other holds the write end of the pipe."""
    child = os.fork()
    if not child:
        try:
            if not plan.is_dying:
                os.close(writing)
                os.read(reading, 1)
            found = _spend(plan, writing)
        except BaseException as error:
            found = Counter({repr(error): 1})
        os.write(1, (json.dumps(found) + "\n").encode())
        os._exit(0)
    return child


def _spend(plan: Plan, writing: int) -> Counter[str]:
    opened = count(1)
    if plan.ticks:
        _set_clock(plan.ticks)

    def is_open() -> None:
        if plan.is_dying and next(opened) == 1:
            os.close(writing)
            time.sleep(0.05)
            os.kill(os.getpid(), signal.SIGKILL)

    with ThreadPoolExecutor(plan.threads) as pool:
        sends = (
            pool.submit(
                _send, lease, plan.rounds, Random(plan.seed + at), is_open, plan.is_within_hold
            )
            for at, lease in enumerate(plan.leases)
        )
        return sum((send.result() for send in list(sends)), Counter[str]())


def _set_clock(ticks: float) -> None:
    """Let a process read a clock of its own, so that minutes pass without waiting for them."""
    from django.utils import timezone

    read = count()
    timezone.now = lambda: BEGINS + timedelta(seconds=ticks * next(read))


def _send(
    numbers: tuple[int, int, int, int, int],
    rounds: int,
    dice: Random,
    opened: Callable[[], None],
    is_within_hold: bool,
) -> Counter[str]:
    """Make the calls of one turn, as its worker does; some are settled twice."""
    from django.db import connection

    from conversations.agent.ports import Ending, ModelFailed, Refused
    from conversations.agent.usage import Usage
    from conversations.log.leases import Lease
    from tests.support import people_and_turns, stored_turns

    lease, found = Lease(*numbers), Counter[str]()
    for _ in range(rounds):
        try:
            sent = people_and_turns.opened(lease)
            opened()
            time.sleep(dice.random() / 50)
            usage = Usage(200, dice.randrange(2_500), 0, 0, 0)
            if is_within_hold:
                usage = Usage(10, min(usage.output, sent.record.max_tokens), 0, 0, 0)
            ending = people_and_turns.complete(usage=usage)
            if dice.random() < 0.1:
                ending = Ending("error", failure=ModelFailed("cut", "cut"))
            stored_turns.close(lease, sent.call, ending)
            found["settled"] += 1
            if dice.random() < 0.3:
                _settle_again(sent.call)
        except Refused as refused:
            found[refused.code] += 1
        except Exception as error:
            found[repr(error)] += 1
        finally:
            connection.close()
    return found


def _settle_again(call: int) -> None:
    from django.db import transaction

    from conversations.agent.usage import Usage
    from conversations.budgets import holds
    from conversations.budgets.units import CallUse
    from conversations.log.chain import lock_conversation
    from conversations.models import ApiCall

    with transaction.atomic():
        row = ApiCall.objects.get(pk=call)
        used = CallUse(1_000_000, Usage(1_000_000, 0, 0, 0, 0))
        holds.settle_holds(call=row, used=used, conversation=lock_conversation(row.conversation_id))


if __name__ == "__main__":
    main()
