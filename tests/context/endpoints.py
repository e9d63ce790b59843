"""Endpoints that a story's calls go to, and what the story knows of them."""

from __future__ import annotations

from dataclasses import dataclass

from conversations.context.policy.gauge import Report
from conversations.context.view.view import View

WINDOWS = (16_000, 20_000, 32_000, 200_000, 1_000_000)


@dataclass(frozen=True)
class Endpoint:
    """Where calls go: what thinking is bound to besides the messages."""

    model: str
    window: int
    account: str
    system: str

    @property
    def clears(self) -> bool:
        return self.model != "B"

    @property
    def compacts(self) -> bool:
        return self.model in "AC"

    @property
    def binding(self) -> str:
        return f"{self.model} {self.account} {self.system}"


@dataclass(frozen=True)
class Call:
    """A call that was answered, under the number of its answer."""

    model: str
    binding: str
    report: Report | None


@dataclass(frozen=True)
class Expected:
    """The API was expected to clear the results of these calls."""

    ids: tuple[str, ...]


@dataclass(frozen=True)
class Loaded:
    """What a turn starts from, read from the path alone."""

    view: View
    report: Report | None
    bound_to: str
    rejected: int
    compacted_by: str = ""


def is_open(view: View) -> bool:
    """Say whether the API still has to give the result of a tool of its own."""
    shape = view.messages[-1].shape
    return bool(set(shape.server_calls) - set(shape.server_results))
