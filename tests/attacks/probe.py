"""Try regular expressions with hostile strings, each within a limit of processor time.

Run as a process of its own: patterns as JSON on standard input, those that take too long on
standard output. The strings are made from the pattern: characters it knows, alone and in pairs,
repeated behind its own beginning, and an end that does not fit.
"""

from __future__ import annotations

import json
import re
import signal
import sys
import time
from collections.abc import Iterable, Iterator
from itertools import permutations
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

#: Characters of a hostile string. What is quadratic takes seconds for so many.
LENGTH = 12_000
LIMIT = 0.05
_CATEGORIES = {"DIGIT": "1", "SPACE": " ", "WORD": "a", "NOT_DIGIT": "a", "NOT_SPACE": "a",
               "NOT_WORD": "-"}  # fmt: skip


class TooLong(Exception):
    pass


def characters(parts: Iterable[Any]) -> Iterator[str]:
    """Give characters that the pattern speaks of."""
    for name, value in parts:
        match str(name):
            case "LITERAL" | "NOT_LITERAL":
                yield chr(value)
            case "RANGE":
                yield chr(value[0])
            case "CATEGORY":
                yield _CATEGORIES.get(str(value).removeprefix("CATEGORY_"), "a")
            case "ANY":
                yield "x"
            case kind:
                for inner in inside(kind, value):
                    yield from characters(inner)


def inside(kind: str, value: Any) -> list[Any]:
    """Give the parts within a part."""
    match kind:
        case "IN" | "ATOMIC_GROUP":
            return [value]
        case "BRANCH":
            return list(value[1])
        case "SUBPATTERN" | "ASSERT" | "ASSERT_NOT":
            return [value[-1]]
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
            return [value[2]]
        case _:
            return []


def beginning(parts: Iterable[Any]) -> str:
    """Give the literal text that a pattern begins with."""
    found = ""
    for name, value in parts:
        if str(name) == "SUBPATTERN":
            return found + beginning(value[-1])
        if str(name) != "LITERAL":
            break
        found += chr(value)
    return found


def strings(pattern: str, flags: int) -> Iterator[str]:
    parts = list(parser.parse(pattern, flags))
    known = list(dict.fromkeys([*characters(parts), "a", " ", "\n", "1"]))[:7]
    for start in dict.fromkeys(("", beginning(parts))):
        for one in known:
            yield start + one * LENGTH + "\0!"
        for pair in permutations(known[:5], 2):
            yield start + "".join(pair) * (LENGTH // 2) + "\0!"


def seconds(found: re.Pattern[str], method: str, text: str) -> float:
    """Give the processor time of one try; one that takes very long is cut off."""
    call = getattr(found, method)
    begun = time.process_time()
    signal.setitimer(signal.ITIMER_PROF, LIMIT * 4)
    try:
        call(text)
    except TooLong:
        pass
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return time.process_time() - begun


def slow(pattern: str, flags: int, method: str) -> str | None:
    found = re.compile(pattern, flags)
    for text in strings(pattern, flags):
        # Once may be an accident of a busy machine.
        if all(seconds(found, method, text) > LIMIT for _ in range(5)):
            return text[:40]
    return None


def _cut_off(*_: object) -> None:
    raise TooLong


def main() -> None:
    signal.signal(signal.SIGPROF, _cut_off)
    bad = {}
    for name, pattern, flags, method in json.load(sys.stdin):
        text = slow(pattern, flags, method)
        if text is not None:
            bad[f"{name}.{method}"] = [pattern, text]
    json.dump(bad, sys.stdout)


if __name__ == "__main__":
    main()
