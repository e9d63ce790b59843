"""What every test may ask for: the database of the run, real PostgreSQL, real Redis."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
from hypothesis import HealthCheck, settings

from agentweb.edge.event_loops import make_event_loop
from tests.support import mail_servers, prepared_databases, servers
from tests.support.database_flush import keep_seed, read_seed
from tests.support.environment import DATABASE

#: Of Django's fixtures; whoever has none of them is refused the connection.
DATABASE_FIXTURES = {"db", "transactional_db"}
#: The tests of the browser.
BROWSER = Path(__file__).parent / "e2e"
#: Of the tests that have it every so many are of this run, chosen by their names; 1: all.
SHARE = int(os.environ.get("AGENTWEB_TEST_SHARE") or 1)

# A busy machine is slow: that is never what a law is about.
settings.register_profile(
    "tests", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("tests")


def pytest_configure(config: pytest.Config) -> None:
    from django.conf import settings

    config.addinivalue_line("markers", "one_database(name): `manage.py test` runs it on that one")
    config.addinivalue_line("markers", "only_database(name, why): the other one has no such")

    if DATABASE not in settings.DATABASES["default"]["ENGINE"]:
        raise pytest.UsageError("Django's settings were read too early: use --ds=tests.settings")
    from tests.support.static_files import look_once

    look_once()
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # A script's run in the background: what it starts would not hear Ctrl-C either.
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_asyncio_loop_factories(item: pytest.Item) -> dict[str, Any]:
    """Run async tests on the loop that servers have; those of a browser are no servers."""
    is_server = not item.path.is_relative_to(BROWSER)
    return {"loop": make_event_loop if is_server else asyncio.new_event_loop}


def pytest_report_header() -> str:
    return f"database: {DATABASE}"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the browser's tests by their folder, so none is forgotten; leave what is not wanted."""
    for item in items:
        if item.path.is_relative_to(BROWSER):
            item.add_marker(pytest.mark.e2e)
        only = item.get_closest_marker("only_database")
        if only and only.args[0] != DATABASE:
            item.add_marker(pytest.mark.skip(reason=f"on {only.args[0]} alone: {only.args[1]}"))
    if left := [one for one in items if not is_wanted(one)]:
        config.hook.pytest_deselected(items=left)
        items[:] = [one for one in items if is_wanted(one)]


def is_wanted(item: pytest.Item) -> bool:
    """Tell whether a test is of this run: `manage.py test` has one for each database.

    Some tests are generated, and what their rows differ in is nothing that a database sees: such a
    row may be marked `one_database`, with the name of the one that it runs on. Others of its kind
    run on both, or on the other and in part on this. What is marked `only_database` is never shared
    out: it is of the run on that one. A run by hand leaves out nothing, and says what it skips.
    """
    wanted = os.environ.get("AGENTWEB_TEST_ONLY")
    if only := item.get_closest_marker("only_database"):
        return not wanted or bool(only.args[0] == DATABASE)
    if wanted == "database" and not depends(item):
        return False
    mark = item.get_closest_marker("one_database") if wanted else None
    if mark is not None:
        return mark.args == (DATABASE,)
    return not depends(item) or crc32(item.nodeid.encode()) % SHARE == 0


def depends(item: pytest.Item) -> bool:
    """Tell whether the run's database matters: by Django's connection, or as its file asks."""
    return uses_database(item) or hasattr(getattr(item, "module", None), "DATABASE")


def uses_database(item: pytest.Item) -> bool:
    """Tell whether a test may use Django's connection."""
    names = set(getattr(item, "fixturenames", ()))
    return item.get_closest_marker("django_db") is not None or bool(names & DATABASE_FIXTURES)


def pytest_collection_finish() -> None:
    """Leave what is imported out of every later search for garbage, and search less often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()


def pytest_runtest_logstart(nodeid: str) -> None:
    """Leave the name of the test, for a run that never comes to its end."""
    if path := os.environ.get("AGENTWEB_TEST_TALLY"):
        Path(path).with_suffix(".at").write_text(nodeid, encoding="utf-8")


@pytest.fixture(scope="session")
def django_db_keepdb() -> bool:
    """Leave the test database: its folder or server goes away with the run."""
    return True


@pytest.fixture(scope="session")
def django_db_modify_db_settings() -> None:
    """Begin with the tables that the runs beside this one have, too."""
    from django.db import connection

    if prepared_databases.SHARED and DATABASE == "sqlite":
        shutil.copy(prepared_databases.sqlite(), connection.settings_dict["TEST"]["NAME"])
    elif prepared_databases.SHARED:
        template = prepared_databases.on(servers.shared_postgres())
        connection.settings_dict["TEST"]["TEMPLATE"] = template


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: Any) -> None:
    with django_db_blocker.unblock():
        keep_seed(read_seed())


@pytest.fixture(scope="module")
def module_database(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """Hold a transaction open for rows that a module makes once; its tests roll back to them.

    Only for modules whose tests all have the plain `django_db` mark.
    """
    from django.db import transaction

    block = transaction.atomic()
    block._from_testcase = True  # type: ignore[attr-defined]
    with django_db_blocker.unblock(), block:
        yield
        transaction.set_rollback(True)


@pytest.fixture(scope="session")
def postgres() -> servers.Server:
    """Give the run's PostgreSQL server."""
    return servers.shared_postgres()


@pytest.fixture(scope="session")
def postgres_url(postgres: servers.Server) -> str:
    """Give an empty database for processes of their own; not the one of Django's connection."""
    return servers.make_database(postgres, "elsewhere")


@pytest.fixture
def fresh_postgres_url(postgres: servers.Server) -> str:
    """Give a database that is empty for every test."""
    return servers.make_database(postgres, "fresh")


@pytest.fixture(scope="session")
def redis_server() -> servers.Server:
    return servers.shared_redis()


@pytest.fixture(scope="session")
def redis_url(redis_server: servers.Server) -> str:
    return redis_server.url


@pytest.fixture(scope="session")
def dovecot() -> mail_servers.MailServer:
    """Give the run's real IMAP server; where there is none the test is skipped, but not in CI."""
    return mail_servers.shared_dovecot()


@pytest.hookimpl(wrapper=True)
def pytest_terminal_summary(terminalreporter: Any) -> Iterator[None]:
    """Leave the counts, and what failed, where `manage.py test` adds those of its runs."""
    path = os.environ.get("AGENTWEB_TEST_TALLY")
    if path:
        stats = terminalreporter.stats
        names = ("passed", "failed", "error", "skipped")
        counts: dict[str, Any] = {name: len(stats.get(name, ())) for name in names}
        broken = (*stats.get("failed", ()), *stats.get("error", ()))
        counts["broken"] = sorted({each.nodeid for each in broken})
        Path(path).write_text(json.dumps(counts), encoding="ascii")
    return (yield)
