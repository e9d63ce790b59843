"""What goes into a chart, and what comes out: series, marks and limits; bars, paths and words."""

from __future__ import annotations

from dataclasses import dataclass

#: Pixels from the top line to the base line, and units across in which paths are drawn.
HEIGHT, WIDTH = 160, 1_000


@dataclass(frozen=True, slots=True)
class Series:
    """A number for each label, None where nothing is known; `kind` (0 to 5) is its colour."""

    name: str
    values: tuple[int | None, ...]
    kind: int | None = None


@dataclass(frozen=True, slots=True)
class Mark:
    """Something that happened before column `at`: a line across the drawing."""

    at: int
    text: str
    href: str = ""


@dataclass(frozen=True, slots=True)
class Limit:
    """A number to compare with: a line along the drawing."""

    value: int
    text: str


@dataclass(frozen=True, slots=True)
class Tick:
    y: str
    text: str


@dataclass(frozen=True, slots=True)
class Label:
    """A label under the base line."""

    x: str
    anchor: str
    text: str


@dataclass(frozen=True, slots=True)
class Bar:
    x: str
    y: str
    width: str
    height: str
    kind: int
    text: str
    href: str = ""


@dataclass(frozen=True, slots=True)
class Path:
    """A line, or with `fill` the area between two of them; across in units of WIDTH."""

    line: str
    kind: int
    text: str
    fill: str = ""


@dataclass(frozen=True, slots=True)
class Rule:
    """A mark or a limit, placed."""

    place: str
    text: str
    href: str = ""


@dataclass(frozen=True, slots=True)
class Legend:
    kind: int
    name: str


@dataclass(frozen=True, slots=True)
class Row:
    label: str
    cells: tuple[str, ...]
    href: str = ""


@dataclass(frozen=True, slots=True)
class Chart:
    """What one drawing shows, and the same as a table."""

    legend: tuple[Legend, ...]
    rows: tuple[Row, ...]
    ticks: tuple[Tick, ...] = ()
    words: tuple[Label, ...] = ()
    bars: tuple[Bar, ...] = ()
    paths: tuple[Path, ...] = ()
    marks: tuple[Rule, ...] = ()
    limits: tuple[Rule, ...] = ()
    height: int = HEIGHT
    width: int = WIDTH

    @property
    def is_empty(self) -> bool:
        return not (self.bars or self.paths)

    @property
    def has_links(self) -> bool:
        return any(bar.href for bar in self.bars) or any(mark.href for mark in self.marks)
