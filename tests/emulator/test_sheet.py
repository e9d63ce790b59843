"""Every statement of the sheet has its tests, and every case cites a section that exists."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.emulator.known_refusals import KNOWN
from tests.emulator.rule_refusals import RULES
from tests.emulator.shape_refusals import SHAPES
from tests.emulator.sheet import SECTIONS, STATEMENTS, Statement
from tests.emulator.test_accepted import ACCEPTED
from tests.emulator.test_betas import BETAS
from tests.emulator.test_family_refusals import FAMILIES
from tests.emulator.tool_refusals import TOOL_RULES

SHEET = Path(__file__).resolve().parents[2] / ".." / "shared" / "MESSAGES_API.md"
TABLES: tuple[list[Any], ...] = (RULES, SHAPES, FAMILIES, ACCEPTED, TOOL_RULES, BETAS, KNOWN)
CASES = [str(row[0]) for table in TABLES for row in table]
_DEFINED = re.compile(r"^(?:async )?def (test_\w+)", re.MULTILINE)


def existing_tests() -> set[str]:
    folders = (Path(__file__).parent, Path(__file__).parents[1] / "claude")
    texts = (file.read_text(encoding="utf-8") for folder in folders for file in folder.glob("*.py"))
    return {name for text in texts for name in _DEFINED.findall(text)}


@pytest.mark.parametrize("case", CASES)
def test_a_case_cites_a_section_of_the_sheet(case: str) -> None:
    section, _, rule = case.partition(" ")
    assert int(section) in SECTIONS
    assert rule


def test_there_are_two_hundred_cases() -> None:
    assert len(CASES) >= 200
    assert set(Counter(case.partition(" ")[0] for case in CASES)) >= set("235678")


@pytest.mark.parametrize("statement", STATEMENTS, ids=lambda s: f"{s.section} {s.words}")
def test_a_statement_has_tests_that_exist_or_says_why_it_is_left_out(statement: Statement) -> None:
    assert statement.section in SECTIONS
    assert bool(statement.tests) != bool(statement.left_out)
    known = existing_tests()
    for name in statement.tests:
        assert name in known or name in CASES or any(c.startswith(name) for c in CASES), name


@pytest.mark.skipif(not SHEET.exists(), reason="the sheet is not beside the project")
@pytest.mark.parametrize("statement", STATEMENTS, ids=lambda s: f"{s.section} {s.words}")
def test_a_statement_stands_in_the_sheet(statement: Statement) -> None:
    assert statement.words in sections()[statement.section]


@pytest.mark.skipif(not SHEET.exists(), reason="the sheet is not beside the project")
def test_no_line_of_the_sheet_is_left_out() -> None:
    """Each line of sections 1 to 10 and 13 with content has a statement."""
    silent = []
    for section, text in sections().items():
        if section in (11, 12):
            continue
        words = [s.words for s in STATEMENTS if s.section == section]
        lines = [line for line in text.splitlines()[1:] if _says_something(line)]
        silent += [line for line in lines if not any(word in line for word in words)]
    assert silent == []


def _says_something(line: str) -> bool:
    """Return whether a line has content: no table head, no heading, not empty."""
    return bool(line.strip()) and not re.match(
        r"\|(?:---|\s*id \||\s*HTTP \|)|\*\*[^*]+\*\*$", line
    )


def sections() -> dict[int, str]:
    parts = re.split(r"^## (\d+)\.? ", SHEET.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {int(number): text for number, text in zip(parts[1::2], parts[2::2], strict=True)}
