"""What is shipped is listed: the bill of materials by CycloneDX's own validator, and advisories."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from cyclonedx.model.bom import Bom
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from django.core.management import call_command

from agentweb.lock_files import read_pins
from tests.test_project import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def written(*options: str) -> str:
    out = StringIO()
    call_command("sbom", *options, stdout=out)
    return out.getvalue()


@pytest.mark.parametrize("options", [(), ("--dev",)])
def test_the_bill_of_materials_keeps_the_published_schema(options: tuple[str, ...]) -> None:
    text = written(*options)
    validator = JsonStrictValidator(SchemaVersion.V1_6)
    assert validator.validate_str(text) is None
    assert written(*options) == text
    broken = json.loads(text)
    broken["components"][0]["type"] = "novel"
    assert validator.validate_str(json.dumps(broken)) is not None


def test_it_lists_the_lock_and_what_needs_what() -> None:
    bill = json.loads(written())
    read: Any = Bom.from_json(bill)  # type: ignore[attr-defined]
    listed = {(str(one.name), str(one.version)) for one in read.components}
    pins = read_pins(ROOT / "requirements.lock")
    assert listed == {(name, version) for name, versions in pins.items() for version in versions}
    assert all(one["hashes"] for one in bill["components"])
    needs = {row["ref"]: row["dependsOn"] for row in bill["dependencies"]}
    refs = {one["bom-ref"] for one in bill["components"]}
    assert {ref for each in needs.values() for ref in each} <= refs
    # Nothing is locked that no package needs, with its extras.
    own = needs["agentweb@0.1.0"]
    assert len(own) == len(PROJECT["project"]["dependencies"])
    licensed = [one for one in bill["components"] if "licenses" in one]
    assert len(licensed) > len(refs) * 3 // 4


def test_each_direct_package_says_why_it_stays() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    part = text.partition("\ndependencies = [\n")[2].partition("\n]")[0]
    rows = [line for line in part.splitlines() if line.lstrip().startswith('"')]
    assert len(rows) == len(PROJECT["project"]["dependencies"])
    assert [row for row in rows if not re.search(r'", # \w.{15,}$', row)] == []


FOUND = {"name": "nh3", "version": "1", "vulns": [{"id": "PYSEC-1", "fix_versions": ["2"]}]}
SOUND = {"name": "mcp", "version": "1", "vulns": []}
UNASKED = {"name": "six", "skip_reason": "Dependency not found"}


@pytest.mark.parametrize(
    ("rows", "code", "words"),
    [
        ([FOUND, SOUND, UNASKED], 1, "nh3 1: PYSEC-1, mended in 2"),
        ([SOUND, UNASKED], 0, "0 in 1 of 2 packages"),
        ([UNASKED], 0, "not checked"),
        (None, 0, "not checked"),
    ],
)
def test_an_advisory_fails_and_an_index_that_is_silent_is_said(
    rows: list[Any] | None, code: int, words: str, tmp_path: Path
) -> None:
    """By reports of the form that pip-audit writes."""
    script = (ROOT / ".ci/advisories").read_text(encoding="utf-8")
    program = script.partition("<<'PYTHON'\n")[2].partition("\nPYTHON")[0]
    path = tmp_path / "found.json"
    if rows is not None:
        path.write_text(json.dumps({"dependencies": rows, "fixes": []}))
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)], check=False, capture_output=True, text=True
    )
    assert done.returncode == code
    assert words in done.stdout


def test_images_can_be_given_by_digest() -> None:
    dockerfile = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    assert re.findall(r"^FROM (\S+)", dockerfile, re.MULTILINE) == ["${BASE}", "${BASE}"]
    compose = (ROOT / "agentweb/deploy/compose.yaml").read_text(encoding="utf-8")
    images = re.findall(r"image: (\S+)", compose)
    ours = {"agentweb", "agentweb-tools"}
    assert [one for one in images if one not in ours and not one.startswith("${")] == []
