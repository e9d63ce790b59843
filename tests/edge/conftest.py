"""One server for all attacks on the wire: each must leave it as it was for the next."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.e2e import served
from tests.e2e.served import Served
from tests.edge.wire import Site, visit

#: An address of this machine that the server takes for its own proxy.
PROXY = "127.0.0.2"


@pytest.fixture(scope="session")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The server alone, with an application that floods, blocks and waits."""
    running = served.start(
        tmp_path_factory.mktemp("plain") / "data", program=("tests/edge/plain.py",)
    )
    yield running
    running.stop()


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    running = served.start(
        tmp_path_factory.mktemp("edge") / "data",
        program=("tests/edge/hasty.py",),
        AGENTWEB_TRUSTED_PROXIES=PROXY,
        # A socket that was refused lingers for a moment, and these tests refuse many.
        AGENTWEB_MAX_SOCKETS_PER_USER="500",
    )
    yield visit(running)
    assert running.stop() == 0
    log = running.log.read_text()
    # Django's own words for a form with too many fields come with a stack; nothing of ours does,
    # but for what the watchdog says of a machine that had no time for the process.
    told = r" (ERROR|CRITICAL) (?!django\.security|agentweb\.edge the event loop has been busy)"
    assert not re.search(told, log), log
