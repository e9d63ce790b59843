"""Measures work in function calls, not in seconds: the number does not depend on the load."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import TypeVar

T = TypeVar("T")


def counted(work: Callable[[], T]) -> tuple[int, T]:
    """Run `work`; return the number of its Python and C calls, and its result."""
    count = 0

    def heard(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event in {"call", "c_call"}

    before = sys.getprofile()
    sys.setprofile(heard)
    try:
        found = work()
    finally:
        sys.setprofile(before)
    return count, found
