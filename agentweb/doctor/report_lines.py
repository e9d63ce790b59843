"""The lines of the doctor's report: good, warning or failed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Literal

State = Literal["ok", "warn", "failed"]
_CODES = {"ok": 0, "warn": 0, "failed": 1}


@dataclass(frozen=True, slots=True)
class Line:
    """One finding; `hint` says what to change."""

    name: str
    state: State
    text: str
    hint: str = ""

    def __str__(self) -> str:
        shown = self.state.upper() if self.state == "failed" else self.state
        return f"{shown:<7}{self.name}: {self.text}" + (
            f"\n       {self.hint}" if self.hint else ""
        )

    def data(self) -> dict[str, str]:
        return asdict(self)


Check = Callable[[], Iterable[Line]]


def ok(name: str, text: str) -> Line:
    return Line(name, "ok", text)


def warn(name: str, text: str, hint: str) -> Line:
    return Line(name, "warn", text, hint)


def failed(name: str, text: str, hint: str) -> Line:
    return Line(name, "failed", text, hint)


def run_check(check: Check) -> list[Line]:
    """Run a check; an exception in it becomes a finding."""
    found: list[Line] = []
    try:
        found.extend(check())
    except Exception as error:
        # Only its type: the text of a driver's error may name users and addresses.
        name = check.__name__.replace("_", " ")
        text = f"could not be looked at ({type(error).__name__})"
        found.append(failed(name, text, "Mend what failed above, or see the log, and try again."))
    return found


def exit_code(lines: Iterable[Line]) -> int:
    """Return 1 if any line is a failure, else 0."""
    return max((_CODES[line.state] for line in lines), default=0)
