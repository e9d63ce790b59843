"""What fills the context, as one bar: parts by kind of content, and the free rest.

The parts are estimated; where the API has reported the total, they are scaled to add up to it. For
a large, nearly empty window the bar shows only the beginning, so that the parts are visible.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from django.utils.translation import gettext as _

from conversations.charts import choose_step
from conversations.context.steps.meter_parts import PARTS, Part, PartCounter
from conversations.context.view.view import View
from conversations.reductions.policy_outline import OutlineStep, PolicyOutline

#: Colour and pattern of each part, as numbered in static/charts.css; the system part has its own.
COLOURS: dict[Part, int] = {
    "prompts": 0, "summary": 1, "answers": 2, "thinking": 3, "attachments": 4, "results": 5,
}  # fmt: skip
#: A bar filled by less than one part in this many shows only the beginning of the window.
ZOOMED = 4


@dataclass(frozen=True, slots=True)
class Segment:
    """One part of the bar; `x` and `width` are percent of it, as text for SVG."""

    part: str
    name: str
    tokens: int
    x: str
    width: str
    colour: int | None


@dataclass(frozen=True, slots=True)
class Line:
    """A threshold with its position as text for SVG; "" when the bar ends before it."""

    tokens: int
    words: str
    x: str


@dataclass(frozen=True, slots=True)
class Composition:
    """The bar; `source` says where the total is from: reported, estimated or none."""

    segments: tuple[Segment, ...]
    tokens: int
    window: int
    free: int
    percent: int
    source: str
    cached_percent: int | None
    lines: tuple[Line, ...]
    #: Tokens at the right end of the bar.
    end: int


def name_parts() -> dict[Part, str]:
    return {
        "system": _("System and tools"),
        "summary": _("Summary and notices"),
        "prompts": _("Messages of people"),
        "answers": _("Answers and calls"),
        "thinking": _("Thinking"),
        "results": _("Tool results"),
        "attachments": _("Attachments"),
    }


def weigh_parts(view: View, overhead: int) -> Counter[Part]:
    """Return the parts of a request in estimated tokens."""
    parts = PartCounter().messages(view.messages)
    parts["system"] += overhead
    return parts


def scale_parts(parts: Mapping[Part, int], total: int) -> dict[Part, int]:
    """Scale parts to add up to the total; the rounding difference goes to the largest."""
    parts_total = sum(parts.values())
    if not parts_total:
        return dict(parts)
    found = {part: count * total // parts_total for part, count in parts.items()}
    largest = max(found, key=lambda part: found[part])
    found[largest] += total - sum(found.values())
    return found


def build_composition(
    parts: Mapping[Part, int],
    window: int,
    *,
    total: int | None,
    source: str = "reported",
    cached_percent: int | None = None,
    ahead: PolicyOutline | None = None,
) -> Composition:
    """Lay the parts out on a bar; `total` is the reported size, None if there is none."""
    counted = dict(parts) if total is None else scale_parts(parts, total)
    tokens = sum(counted.values())
    steps = [step for step in ahead.steps if step.tokens] if ahead else []
    end, names, at = _choose_end(tokens, window, steps), name_parts(), 0
    segments = []
    for part in PARTS:
        if count := counted.get(part, 0):
            x, width = _format_share(at, end), _format_share(count, end)
            segments.append(Segment(part, names[part], count, x, width, COLOURS.get(part)))
            at += count
    return Composition(
        tuple(segments),
        tokens,
        window,
        max(0, window - tokens),
        min(100, tokens * 100 // max(1, window)),
        source if total is not None else "estimated",
        cached_percent,
        tuple(_build_line(step, end) for step in steps),
        end,
    )


def _choose_end(tokens: int, window: int, steps: list[OutlineStep]) -> int:
    """Return the length of the bar in tokens: the window, or a round number below it."""
    first = min((step.tokens or 0 for step in steps), default=0)
    wanted = max(tokens * 5 // 4, first * 9 // 8)
    end = 10 * choose_step(wanted, 10) if wanted else window
    return end if tokens * ZOOMED < window and end < window else max(window, tokens, 1)


def _build_line(step: OutlineStep, end: int) -> Line:
    tokens = step.tokens or 0
    return Line(tokens, step.short, _format_share(tokens, end) if tokens < end else "")


def _format_share(part: int, total: int) -> str:
    return f"{round(part * 100 / total, 2):g}"
