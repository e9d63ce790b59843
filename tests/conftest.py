"""What every test may ask for: the database of the run, real PostgreSQL, real Redis."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import mailservers, servers
from tests.environment import DATABASE
from tests.flush import keep_seed, read_seed


def pytest_configure() -> None:
    from django.conf import settings

    if DATABASE not in settings.DATABASES["default"]["ENGINE"]:
        raise pytest.UsageError("Django's settings were read too early: use --ds=tests.settings")


def pytest_report_header() -> str:
    return f"database: {DATABASE}"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the browser's tests by their folder, so none is forgotten."""
    browser = Path(__file__).parent / "e2e"
    for item in items:
        if item.path.is_relative_to(browser):
            item.add_marker(pytest.mark.e2e)


@pytest.fixture(scope="session")
def django_db_keepdb() -> bool:
    """Leave the test database: its folder or server goes away with the run."""
    return True


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: Any) -> None:
    with django_db_blocker.unblock():
        keep_seed(read_seed())


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
def dovecot() -> mailservers.MailServer:
    """Give the run's real IMAP server; where there is none the test is skipped, but not in CI."""
    return mailservers.shared_dovecot()


@pytest.hookimpl(wrapper=True)
def pytest_terminal_summary(terminalreporter: Any) -> Iterator[None]:
    """Leave the counts where `manage.py test` adds those of its runs."""
    path = os.environ.get("AGENTWEB_TEST_TALLY")
    if path:
        names = ("passed", "failed", "error", "skipped")
        counts = {name: len(terminalreporter.stats.get(name, ())) for name in names}
        Path(path).write_text(json.dumps(counts), encoding="ascii")
    return (yield)
