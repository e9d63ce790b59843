"""A chart's input (series, marks, limits) and its output (bars, paths, ticks, texts)."""

from __future__ import annotations

from dataclasses import dataclass

#: Pixels from the top line to the base line, and the horizontal units of paths.
HEIGHT, WIDTH = 160, 1_000


@dataclass(frozen=True, slots=True)
class Series:
    """A number for each label, None where it is unknown; `kind` (0 to 5) is its colour."""

    name: str
    values: tuple[int | None, ...]
    kind: int | None = None


@dataclass(frozen=True, slots=True)
class Mark:
    """An event before column `at`: a vertical line."""

    at: int
    text: str
    href: str = ""


@dataclass(frozen=True, slots=True)
class Limit:
    """A number to compare with: a horizontal line."""

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
    """A line, or with `fill` the area under it; horizontally in units of WIDTH."""

    line: str
    kind: int
    text: str
    fill: str = ""


@dataclass(frozen=True, slots=True)
class Rule:
    """A mark or a limit with its coordinate."""

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
    """One drawing, and the same numbers as a table."""

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
