"""The table of other clients: a death, a failed check and silence are failures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agentweb.bench.clients import client_runs
from agentweb.bench.clients.client_runs import CLIENTS, PROGRAMS, Check, Client, Run, read_checks

PROGRAM = Client("One", ("one",), "one.py")
COMMAND = Client("Two", ("two",), command=("two",))
GOOD = json.dumps([{"check": "answer", "error": ""}])
BAD = json.dumps([{"check": "answer", "error": "ValueError: a | b"}])


@pytest.mark.parametrize(
    ("client", "status", "output", "has_passed"),
    [
        (PROGRAM, 0, f"noise\n{GOOD}\n", True),
        (PROGRAM, 1, GOOD, False),
        (PROGRAM, 0, BAD, False),
        (PROGRAM, 0, "[]", False),
        (PROGRAM, 0, "Traceback", False),
        (PROGRAM, 0, "", False),
        (COMMAND, 0, '{"is_error": false}', True),
        (COMMAND, 0, '{"is_error": true}', False),
        (COMMAND, 1, '{"is_error": false}', False),
        (COMMAND, 0, "[]", False),
    ],
)
def test_only_a_program_whose_every_check_held_has_passed(
    client: Client, status: int, output: str, has_passed: bool
) -> None:
    assert Run(client.title, "1", read_checks(client, status, output)).has_passed is has_passed


def test_the_table_counts_what_passed_and_names_what_did_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = Run("One", "1.2", (Check("answer"), Check("stream", "ValueError: a | b")))
    table = client_runs.render_table([good, Run("Two", "", (Check("install", "no such"),))])
    assert "| One | 1.2 | 1 of 2 | stream: ValueError: a \\| b |" in table
    assert "| Two | not installed | 0 of 1 | install: no such |" in table
    readme = tmp_path / "README.md"
    readme.write_text("a\n<!-- clients -->\n<!-- /clients -->\nb", encoding="utf-8")
    monkeypatch.setattr(client_runs, "README", readme)
    client_runs.write_table([good])
    assert "1 of 2" in readme.read_text(encoding="utf-8")


def test_every_client_has_its_program() -> None:
    for client in CLIENTS:
        assert client.command or (PROGRAMS / client.program).is_file()


def test_a_client_that_cannot_be_installed_has_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    absent = Client("Absent", (str(tmp_path / "no-such-package"),), "sdk_python.py")
    monkeypatch.setattr(client_runs, "CLIENTS", (absent,))
    said: list[str] = []
    (run,) = client_runs.run_clients(tmp_path / "made", said.append)
    assert not run.has_passed
    assert run.checks[0].name == "install"
    assert said[0].startswith("Absent")
