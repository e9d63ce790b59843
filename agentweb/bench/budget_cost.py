"""The cost of opening and closing calls, with and without budgets, next to a baseline.

The baseline is a transaction of one INSERT and one UPDATE on the same database: a counter without
holds. The cases differ in nothing but their budgets, so the cost of a budget is the difference to
the call without one that was measured next to it: in wall time, and in processor time of this
thread, which excludes waiting on a busy machine.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from statistics import median
from typing import TypeAlias
from uuid import uuid4

from django.contrib.auth.models import Group
from django.db import connection, transaction

from agentweb.bench.own_database import Queries, make_person
from conversations.agent.ports import Ending, Sending
from conversations.agent.usage import Usage
from conversations.conf import conf
from conversations.context.view.envelope import build_envelope
from conversations.log import leases
from conversations.log.leases import Lease
from conversations.models import Budget, User
from conversations.turns import calls, turns
from conversations.turns.billed_usage import Timing

_LIMIT = 10**14
_BLOCK = '{"type":"text","text":"Here you are."}'
#: Budgets by case: the number of the person's groups, each with a pool and an allowance per period.
CASES = {"none": None, "one": 0, "many": 3}
#: A minute that turns would make its windows in one measured call and not in the next.
PERIODS = [name for name in Budget.Period.values if name != Budget.Period.MINUTE]


#: Milliseconds of wall-clock time and of processor time.
Time: TypeAlias = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Row:
    """Medians in milliseconds; `ratio` is the opening of a call divided by the floor.

    `added` is what budgets add to the opening, `added_processor` the processor time of it.
    """

    case: str
    budgets: int
    open: float
    close: float
    added: float
    added_processor: float
    added_close: float
    floor: float
    statements: int

    @property
    def data(self) -> dict[str, object]:
        return asdict(self) | {"ratio": round(self.open / self.floor, 1)}


def measure(runs: int) -> list[Row]:
    """Measure every case on the present database."""
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE bench_floor (id integer, number integer)")
    # Interleaved, so that the load of the machine is the same for all cases.
    people = {
        case: _limited(make_person(f"bench-{case}"), groups) for case, groups in CASES.items()
    }
    case_leases = {case: _begin_turn(user) for case, user in people.items()}
    opened: dict[str, list[Time]] = {case: [] for case in CASES}
    closed: dict[str, list[Time]] = {case: [] for case in CASES}
    floors = []
    for _ in range(runs):
        floors.append(_time_call(_measure_floor)[0][0])
        for case, lease in case_leases.items():
            time_opened, call = _time_call(lambda lease=lease: _open_call(lease))  # type: ignore[misc]
            time_closed, _ = _time_call(lambda lease=lease, call=call: _close_call(lease, call))  # type: ignore[misc]
            opened[case].append(time_opened)
            closed[case].append(time_closed)
    return [
        Row(
            case,
            _count(people[case]),
            median(clock for clock, _ in opened[case]),
            median(clock for clock, _ in closed[case]),
            *_added(opened[case], opened["none"]),
            _added(closed[case], closed["none"])[0],
            median(floors),
            _count_statements(case_leases[case]),
        )
        for case in CASES
    ]


def _added(times: list[Time], without: list[Time]) -> Time:
    """Return the median difference to the paired calls without budgets."""
    pairs = list(zip(times, without, strict=True))
    clock, processor = (median(one[at] - other[at] for one, other in pairs) for at in (0, 1))
    return clock, processor


def _limited(user: User, groups: int | None) -> User:
    if groups is not None:
        Budget.objects.create(user=user, limit=_LIMIT)
    for at in range(groups or 0):
        group = Group.objects.create(name=f"bench-{at}")
        user.groups.add(group)
        for period in PERIODS:
            shared = {"scope": "group", "group": group, "period": period, "limit": _LIMIT}
            Budget.objects.create(kind="pool", **shared)
            Budget.objects.create(kind="per_member", **shared)
    return user


def _count(user: User) -> int:
    return (
        Budget.objects.filter(user=user).count()
        + Budget.objects.filter(group__in=user.groups.all()).count()
    )


def _begin_turn(user: User) -> Lease:
    turn = turns.start_conversation(
        owner_id=user.pk, model=conf.model, text="Hello", client_id=uuid4()
    )
    lease = leases.claim_turn(turn_id=turn.pk, owner="bench")
    assert lease is not None  # noqa: S101 - it was begun in the line above
    _close_call(lease, _open_call(lease))  # makes the windows
    return lease


def _open_call(lease: Lease) -> int:
    envelope = build_envelope(model=conf.model, max_tokens=2_000, system="Be brief.")
    messages = '[{"role":"user","content":[{"type":"text","text":"Hello"}]}]'
    return calls.open_call(
        lease=lease, sending=Sending("summary", envelope, messages, 900, None, 1)
    ).call


def _close_call(lease: Lease, call: int) -> None:
    usage = Usage(700, 20, 0, 0, 0)
    ending = Ending("complete", usage, "end_turn", (_BLOCK,))
    calls.close_call(lease=lease, call_id=call, ending=ending, timing=Timing(1, 2), effects={})


def _measure_floor() -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("INSERT INTO bench_floor VALUES (1, 1)")
        cursor.execute("UPDATE bench_floor SET number = number + 1 WHERE id = 0")


def _time_call(work: Callable[[], int | None]) -> tuple[Time, int]:
    started, computed = time.perf_counter(), time.thread_time()
    given = work()
    computed, ended = time.thread_time() - computed, time.perf_counter()
    return ((ended - started) * 1_000, computed * 1_000), given or 0


def _count_statements(lease: Lease) -> int:
    with Queries().counting() as queries:
        _open_call(lease)
    return queries.count
