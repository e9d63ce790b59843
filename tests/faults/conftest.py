from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
import pytest_asyncio

from agentweb.emulator import server
from agentweb.emulator.server import EmulatorServer
from tests.faults.running_app import App, running


@pytest.fixture(scope="session")
def emulator() -> Iterator[EmulatorServer]:
    with server.start(pace=0, record=True) as started:
        yield started


@pytest_asyncio.fixture
async def app(
    emulator: EmulatorServer, settings: Any, monkeypatch: Any, transactional_db: None
) -> AsyncIterator[App]:
    """The app with short waits; a test may set others first."""
    settings.ANTHROPIC_BASE_URL = emulator.url
    settings.AGENTWEB_MAX_BACKOFF_SECONDS = 0.05
    async with running(emulator, monkeypatch) as found:
        yield found
