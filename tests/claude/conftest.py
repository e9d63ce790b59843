from __future__ import annotations

import logging
import os
from collections.abc import Iterator

import pytest

from agentweb.emulator import server


@pytest.fixture(scope="session")
def emulator() -> Iterator[server.EmulatorServer]:
    with server.start(pace=0, record=True) as running:
        yield running


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)


@pytest.fixture
def everything(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    """All that is logged at DEBUG, whatever the settings pin."""
    names = ("anthropic", "httpx2", "httpcore2", "agentweb")
    for name in names:
        caplog.set_level(logging.DEBUG, name)
        logging.getLogger(name).addHandler(caplog.handler)
    yield caplog
    for name in names:
        logging.getLogger(name).removeHandler(caplog.handler)
