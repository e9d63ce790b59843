"""A statement of the sheet on the Messages API, with the tests that check the emulator for it.

A statement is identified by a few of its words, a test by the name of its function, a case of a
table by its rule. What the emulator leaves out has a reason.
"""

from __future__ import annotations

from dataclasses import dataclass

SECTIONS = {
    1: "Models, windows, prices",
    2: "Endpoints and headers",
    3: "Streaming",
    4: "usage",
    5: "Tools and messages",
    6: "Thinking",
    7: "cache_control",
    8: "Server-side compaction and editing",
    9: "Errors and retries",
    10: "Emulator checklist",
    11: "The SDK",
    13: "Corrections",
}


@dataclass(frozen=True, slots=True)
class Statement:
    section: int
    #: Words of the statement, quoted from the sheet.
    words: str
    #: Test functions, or rules of table cases.
    tests: tuple[str, ...] = ()
    #: Why the emulator leaves it out.
    left_out: str = ""


def says(section: int, words: str, *tests: str) -> Statement:
    return Statement(section, words, tests)


def leaves_out(section: int, words: str, why: str) -> Statement:
    return Statement(section, words, left_out=why)
