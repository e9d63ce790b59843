"""In what two outcomes of one request differ, as a file for each difference and a table of all."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from agentweb.emulator import json_codec
from agentweb.emulator.comparison.known_requests import KnownRequest
from agentweb.emulator.comparison.outcome import Outcome

_WIDTH = 60


@dataclass(frozen=True, slots=True)
class Difference:
    request: KnownRequest
    #: The part of the outcome that differs: `status`, `error_text`, `usage.input_tokens`.
    part: str
    here: json_codec.Value
    there: json_codec.Value


def find_differences(request: KnownRequest, here: Outcome, there: Outcome) -> list[Difference]:
    ours, theirs = here.as_json(), there.as_json()
    mine, other = ours.pop("usage"), theirs.pop("usage")
    found = [
        Difference(request, name, ours[name], theirs[name])
        for name in ours
        if ours[name] != theirs[name]
    ]
    if ours["status"] != theirs["status"]:
        # One of the two has no usage.
        return found
    return found + [
        Difference(request, f"usage.{name}", mine.get(name), other.get(name))
        for name in sorted(mine.keys() | other.keys())
        if mine.get(name) != other.get(name)
    ]


def write_case(folder: Path, number: int, one: Difference) -> Path:
    """Write a difference with the complete request that shows it."""
    name = re.sub(r"[^a-z0-9]+", "-", f"{one.request.name} {one.part}".lower()).strip("-")
    path = folder / f"{number:03}-{name[:120]}.json"
    case = {
        "part": one.part,
        "emulator": one.here,
        "api": one.there,
        "request": one.request.as_json(),
    }
    text = json.dumps(case, ensure_ascii=False, indent=1)
    path.write_text(text + "\n", encoding="utf-8", errors="backslashreplace")
    return path


def show_table(played: int, found: Sequence[Difference]) -> str:
    """Format the number of differences by part, and each difference with both sides shortened."""
    unlike = len({one.request.name for one in found})
    if not found:
        return f"{played} requests, no difference"
    lines = [f"{played} requests, {len(found)} differences in {unlike} of them"]
    lines += [
        f"  {count:4}  {part}" for part, count in Counter(d.part for d in found).most_common()
    ]
    for one in found:
        lines += [
            f"{one.request.name}: {one.part}",
            f"  emulator  {_shorten(one.here)}",
            f"  api       {_shorten(one.there)}",
        ]
    return "\n".join(lines)


def _shorten(value: json_codec.Value) -> str:
    text = json.dumps(value, ensure_ascii=True)
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 3]}..."
