"""Commands of a person's shell that cannot work: one sentence, which names what to change."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import ProgrammingError, connection, transaction

from agentweb import env
from agentweb.serving import startup


def run_alone(*words: str, **known: str) -> subprocess.CompletedProcess[str]:
    """Run a command as a person does, with these settings alone."""
    return subprocess.run(
        [sys.executable, "manage.py", *words], env={"PATH": os.environ["PATH"], **known},
        capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "value"),
    [("AGENTWEB_DATABASE_POOL", "0"), ("AGENTWEB_METRICS_PORT", "-1"),
     ("AGENTWEB_METRICS_PORT", "65536"), ("ANTHROPIC_BASE_URL", "https://:hunter2@host:99999")],
)  # fmt: skip
def test_a_start_names_a_value_that_nothing_could_work_with(
    name: str, value: str, tmp_path: Path
) -> None:
    done = run_alone("check", **{"AGENTWEB_DATA_DIR": str(tmp_path), name: value})
    assert done.returncode == 1
    assert done.stderr.startswith(f"{name}: ")
    assert done.stderr.count("\n") == 1
    assert "hunter2" not in done.stderr


@pytest.mark.parametrize(
    "value",
    ["api.example.org", "ftp://host", "https://", "https://a b", "https://host:0", "http://host?a",
     "https://host/#a"],
)  # fmt: skip
def test_what_no_api_is_reached_at_is_refused(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_BASE_URL", value)
    with pytest.raises(ImproperlyConfigured, match="ANTHROPIC_BASE_URL: use https://host or"):
        env.api_address("ANTHROPIC_BASE_URL")


def test_an_address_of_the_api_may_have_a_port_and_a_path(monkeypatch: pytest.MonkeyPatch) -> None:
    for value in ("", "http://127.0.0.1:8100", "https://gateway.example.org/anthropic/"):
        monkeypatch.setenv("ANTHROPIC_BASE_URL", f" {value} ")
        assert env.api_address("ANTHROPIC_BASE_URL") == value


def test_a_command_says_in_a_sentence_which_database_it_could_not_use(tmp_path: Path) -> None:
    """A stack would hide that the shell lacks the settings of the service."""
    empty = {"AGENTWEB_DATA_DIR": str(tmp_path)}
    for words in (["invite"], ["ledger"]):
        done = run_alone(*words, **empty)
        assert (done.returncode, done.stderr.count("\n")) == (1, 1)
        place = f"the database {tmp_path}/agentweb.sqlite3"
        assert done.stderr.startswith(f"CommandError: {place} is not of this version")
    assert "Traceback" in run_alone("ledger", "--traceback", **empty).stderr
    (tmp_path / "agentweb.sqlite3").unlink()
    (tmp_path / "agentweb.sqlite3").mkdir()
    done = run_alone("budgets", "show", "ada", **empty)
    assert done.stderr.startswith("CommandError: the database ")
    assert "cannot be used: unable to open database file; `manage.py doctor`" in done.stderr


@pytest.mark.only_database("postgres", "SQLite's are told by their words")
@pytest.mark.django_db
def test_what_postgresql_lacks_or_refuses_is_told_and_other_mistakes_are_not() -> None:
    statements = {
        "SELECT 1 FROM conversations_nothing": "is not of this version",
        "SELECT nothing FROM conversations_user": "is not of this version",
        # As a role finds it that was granted nothing yet.
        "DO 'BEGIN SET ROLE pg_monitor; PERFORM 1 FROM conversations_user; END'": "permission",
        "SELEC": "",
    }
    for statement, words in statements.items():
        with pytest.raises(ProgrammingError) as caught, transaction.atomic():
            connection.cursor().execute(statement)
        said = startup.describe_unusable(caught.value)
        assert words in said
        assert bool(said) is bool(words)
