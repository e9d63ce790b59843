"""The package on its own: copied to another folder, it starts and answers."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from tests.emulator.conftest import HEADERS, request

PACKAGE = Path(__file__).resolve().parents[2] / "agentweb/emulator"
#: uvicorn and its dependencies.
FOREIGN = {"agentweb", "click", "h11", "uvicorn"}
#: What the interpreter begins with, such as Debian's own `sitecustomize`, is not of the package.
PROBE = """
import sys
begun = set(sys.modules)
import agentweb.emulator
names = {name.partition(".")[0] for name in set(sys.modules) - begun if getattr(
    getattr(sys.modules[name], "__spec__", None), "origin", None)}
print(agentweb.emulator.__file__)
print(*sorted(names - set(sys.stdlib_module_names)))
"""


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """Copy the package and nothing else; return the folder to run it from."""
    shutil.copytree(PACKAGE, tmp_path / "agentweb/emulator", ignore=shutil.ignore_patterns("*.pyc"))
    (tmp_path / "agentweb/__init__.py").touch()
    return tmp_path


def launch(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    command = (sys.executable, "-s", *arguments)
    return subprocess.Popen(command, cwd=folder, env=kept, stdout=subprocess.PIPE, text=True)


def test_it_starts_and_answers_alone(copied: Path) -> None:
    process = launch(copied, "-m", "agentweb.emulator", "--port", "0", "--pace", "0")
    try:
        assert process.stdout is not None
        url = process.stdout.readline().split()[-1]
        body = json.dumps(request("Hello")).encode()
        asked = urllib.request.Request(f"{url}/v1/messages", body, HEADERS)
        with urllib.request.urlopen(asked, timeout=60) as answer:
            assert answer.status == 200
            assert b'"type":"message"' in answer.read()
    finally:
        process.terminate()
        process.wait(10)


def test_it_loads_nothing_but_its_server(copied: Path) -> None:
    process = launch(copied, "-c", PROBE)
    place, found = process.communicate(timeout=60)[0].splitlines()
    assert Path(place).is_relative_to(copied)
    assert {name for name in found.split() if not name.startswith("_")} <= FOREIGN
