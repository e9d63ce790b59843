"""A hundred sends at once, in several processes: spent plus held never exceeds the limit.

Another connection watches the windows all the time. Afterwards nothing is held, and every window
equals the sum of its entries, to the micro-dollar; also when a fifth of the processes was killed in
mid-call and settlements came twice.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import astuple, dataclass, field
from pathlib import Path
from typing import Any, Self

import pytest
from django.contrib.auth.models import Group
from django.db import connection
from django.db.models import Sum

from conversations.budgets.reconciliation import check_windows, has_drift
from conversations.log.leases import Lease
from conversations.models import ApiCall, ApiResult, Budget, BudgetWindow, LedgerEntry, Reservation
from conversations.turns import takeovers
from tests.faults.calling_processes import Plan, written
from tests.support import people_and_turns
from tests.support.budget_rows import padded, worst
from tests.support.environment import DATABASE

pytestmark = pytest.mark.django_db(transaction=True)
SENDS = 100
ROOT = Path(__file__).parents[2]
#: Threads of one process: no more than its pool has connections; SQLite has one writer at a time.
THREADS = 16 if DATABASE == "postgres" else 4


def address() -> str:
    """Return the URL of this run's database for another process."""
    known: dict[str, Any] = connection.settings_dict
    if DATABASE == "sqlite":
        return f"sqlite:///{Path(known['NAME']).as_posix().lstrip('/')}"
    # A busy machine is slow, and no lock is contended for long here.
    patient = "options=-c%20lock_timeout%3D60s"
    return f"postgresql://{known['USER']}@{known['HOST']}:{known['PORT']}/{known['NAME']}?{patient}"


@dataclass
class Watch:
    """Reads every window through its own connection until it is stopped."""

    looks: int = 0
    most: Counter[int] = field(default_factory=Counter)
    passed: list[tuple[Any, ...]] = field(default_factory=list)
    is_over: bool = False

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._look)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.is_over = True
        self._thread.join()

    def _look(self) -> None:
        rows = BudgetWindow.objects.values_list("budget", "spent", "held", "limit", "budget__limit")
        try:
            while not self.is_over:
                for budget, spent, held, limit, most in rows.all():
                    self.most[budget] = max(self.most[budget], spent + held)
                    if spent + held > min(limit, most):
                        self.passed.append((budget, spent, held, limit, most))
                self.looks += 1
                time.sleep(0.005)
        finally:
            connection.close()


def spend(plans: list[Plan]) -> Counter[str]:
    """Run the processes; return the counts of how their calls ended."""
    env = os.environ | {"DATABASE_URL": address(), "DJANGO_SETTINGS_MODULE": "agentweb.settings"}
    done = subprocess.run(
        [sys.executable, "-m", "tests.faults.calling_processes"], input=written(plans), env=env,
        cwd=ROOT, check=True, capture_output=True, text=True, timeout=200,
    )  # fmt: skip
    return sum((Counter(json.loads(line)) for line in done.stdout.splitlines()), Counter[str]())


def plans(leases: list[Lease], processes: int, dying: int, ticks: float = 0.0) -> list[Plan]:
    shares = [leases[at::processes] for at in range(processes)]
    return [
        Plan(
            tuple(astuple(lease) for lease in share),
            max(1, THREADS // (1 if DATABASE == "postgres" else processes)),
            rounds=1,
            is_dying=at < dying,
            seed=1_000 * at,
            ticks=ticks,
            is_within_hold=ticks > 0,
        )
        for at, share in enumerate(shares)
    ]


@pytest.mark.parametrize(("processes", "dying"), [(2 if DATABASE == "postgres" else 1, 0), (5, 1)])
def test_a_hundred_sends_never_pass_a_limit(processes: int, dying: int, settings: Any) -> None:
    settings.AGENTWEB_MAX_LIVE_TURNS = 2 * SENDS
    user = people_and_turns.person()
    user.groups.add(Group.objects.create(name="Research"))
    leases = [people_and_turns.started_turn(user, f"Send {at}") for at in range(SENDS)]
    most = worst(leases[0])
    own = people_and_turns.limited(user, 12 * most)
    Budget.objects.create(scope="site", kind="pool", period="day", limit=40 * most)
    Budget.objects.create(
        scope="group", group=Group.objects.latest("pk"), kind="pool", unit="tokens",
        limit=45 * (padded(leases[0]) + 2_000),
    )  # fmt: skip
    Budget.objects.create(scope="site", unit="turns", period="week", limit=70)
    Budget.objects.create(scope="site", kind="pool", model="sonnet", limit=11 * most)
    with Watch() as watch:
        ended = spend(plans(leases, processes, dying))
    assert set(ended) <= {"settled", "budget"}, ended
    assert ended["settled"] > 10
    assert ended["budget"] > 10
    assert watch.passed == []
    assert watch.looks > 20
    # The test is only meaningful if the limit was nearly reached.
    assert watch.most[own.pk] > 10 * most
    assert ApiCall.objects.filter(result=None).exists() == bool(dying)
    for key in takeovers.list_expired_turns(everything=True):
        takeovers.take_over_turn(turn_id=key, everything=True)
    check_books()


def test_a_hundred_sends_never_pass_a_limit_of_any_minute(settings: Any) -> None:
    """Counted by the calls and their results alone, where the clocks of two processes differ."""
    settings.AGENTWEB_MAX_LIVE_TURNS = 2 * SENDS
    user = people_and_turns.person()
    leases = [people_and_turns.started_turn(user, f"Send {at}") for at in range(SENDS)]
    tokens = 5 * (padded(leases[0]) + 2_000)
    Budget.objects.create(scope="site", unit="requests", period="minute", limit=7)
    Budget.objects.create(scope="site", kind="pool", unit="tokens", period="minute", limit=tokens)
    with Watch() as watch:
        ended = spend(plans(leases, 2 if DATABASE == "postgres" else 1, 0, ticks=1.0))
    assert set(ended) <= {"settled", "rate_limit"}, ended
    assert watch.passed == []
    made, used = Counter[Any](), Counter[Any]()
    for call in ApiCall.objects.select_related("result"):
        minute = call.sent_at.replace(second=0, microsecond=0)
        made[minute] += 1
        used[minute] += (call.result.input_tokens or 0) + (call.result.output_tokens or 0)
    assert sum(made.values()) == ended["settled"]
    # Without the limits there were more; each was reached, and more than one minute passed.
    assert ended["rate_limit"] > 10
    assert len(made) > 1
    assert max(made.values()) <= 7
    assert max(made.values()) > 2
    assert max(used.values()) <= tokens
    assert not BudgetWindow.objects.filter(held__gt=0).exists()
    assert list(check_windows()) == []


def check_books() -> None:
    """Check that nothing is held, and that windows, entries and results agree."""
    assert not BudgetWindow.objects.filter(held__gt=0).exists()
    assert not Reservation.objects.filter(is_open=True).exists()
    assert not has_drift()
    assert list(check_windows()) == []
    paid = ApiResult.objects.aggregate(sum=Sum("cost_micros"))["sum"]
    assert paid > 0
    for window in BudgetWindow.objects.select_related("budget"):
        entries = LedgerEntry.objects.filter(window=window, kind__in=("settle", "release"))
        settled = entries.aggregate(sum=Sum("amount"))["sum"]
        assert window.spent + window.overrun == settled
        assert window.spent <= window.budget.limit
        if window.budget.unit == "money":
            assert settled == paid
        if window.budget.unit == "turns":
            results = ApiResult.objects.exclude(cost_basis="none")
            assert settled == results.values("call__turn").distinct().count()
    assert BudgetWindow.objects.count() == 5
