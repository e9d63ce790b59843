"""Numbers to coordinates, with round numbers at the tick lines."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from conversations.charts.elements import HEIGHT, WIDTH, Label, Limit, Mark, Rule, Tick

#: Most labels under the base line; most steps above it.
MOST_WORDS, MOST_STEPS = 5, 4

Show = Callable[[int], str]


def format_number(number: int) -> str:
    return f"{number:,}"


def choose_step(highest: int, most: int = MOST_STEPS) -> int:
    """Return the least of 1, 2, 5, 10, 20, ... that reaches the highest number in `most` steps."""
    step = 1
    while step * most < highest:
        power = 10 ** (len(str(step)) - 1)
        step = next(power * factor for factor in (2, 5, 10) if power * factor > step)
    return step


def choose_top(values: Sequence[int | None]) -> int:
    """Return the number at the top line, a multiple of the step and never 0."""
    highest = max((value for value in values if value is not None), default=0)
    step = choose_step(highest)
    return max(1, -(-highest // step)) * step


def list_ticks(top: int, show: Show) -> tuple[Tick, ...]:
    numbers = range(0, top + 1, choose_step(top))
    return tuple(
        Tick(format_coordinate(scale_value(number, top)), show(number)) for number in numbers
    )


def write_path(values: Sequence[int | None], top: int, *, is_backwards: bool = False) -> str:
    """Write the path through the middles of the columns; a single point becomes a dot."""
    step, parts, is_drawing = WIDTH / max(len(values), 1), [], False
    for at, value in enumerate(values):
        if value is None:
            is_drawing = False
            continue
        column = len(values) - 1 - at if is_backwards else at
        x, y = format_coordinate(step * (column + 0.5)), format_coordinate(scale_value(value, top))
        parts.append(f"L{x} {y}" if is_drawing else f"M{x} {y}h0")
        is_drawing = True
    return "".join(parts)


def scale_value(value: int, top: int) -> float:
    return HEIGHT - value * HEIGHT / top


def format_coordinate(place: float) -> str:
    return f"{round(place, 2):g}"


def place_marks(marks: Sequence[Mark], columns: int) -> tuple[Rule, ...]:
    step = 100 / max(columns, 1)
    return tuple(Rule(format_coordinate(step * mark.at), mark.text, mark.href) for mark in marks)


def place_limits(limits: Sequence[Limit], top: int) -> tuple[Rule, ...]:
    return tuple(
        Rule(format_coordinate(scale_value(limit.value, top)), limit.text) for limit in limits
    )


def choose_labels(labels: Sequence[str]) -> tuple[Label, ...]:
    """Choose evenly spaced labels, the first included; one at the right end is right-aligned."""
    every = -(-len(labels) // MOST_WORDS) or 1
    step, found = 100 / max(len(labels), 1), []
    for at in range(0, len(labels), every):
        middle = step * (at + 0.5)
        is_last = middle > 94 and at
        found.append(
            Label(format_coordinate(step * (at + 1)), "end", labels[at])
            if is_last
            else Label(format_coordinate(middle), "middle", labels[at])
        )
    return tuple(found)
