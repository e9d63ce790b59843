"""Fixtures of the pages' tests."""

from __future__ import annotations

import pytest

from tests.support import stored_turns
from tests.support.stored_turns import Played


@pytest.fixture
def played() -> Played:
    """Return a conversation with one turn of many calls, stored as an engine would store it."""
    return stored_turns.played()
