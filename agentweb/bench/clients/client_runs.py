"""Installs each client from its registry, runs its program against the emulator, makes a table.

The newest versions are installed on purpose, to test against clients as they are today. Each gets a
virtual environment of its own, because their dependencies conflict. None is installed here.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from agentweb.bench.environments import execute, install_packages
from agentweb.marked_text import replace_marked

PROGRAMS = Path(__file__).parent / "programs"
README = Path(__file__).parents[1] / "README.md"
MODEL = "claude-sonnet-4-6"
_RUN_SECONDS = 180


@dataclass(frozen=True, slots=True)
class Client:
    title: str
    #: Packages to install; the first gives the version in the table.
    packages: tuple[str, ...]
    #: A program of `programs`, or the words of a command; `{bin}` stands for its folder.
    program: str = ""
    command: tuple[str, ...] = ()
    is_npm: bool = False


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    #: Empty if the check passed.
    error: str = ""


@dataclass(frozen=True, slots=True)
class Run:
    title: str
    version: str
    checks: tuple[Check, ...]

    @property
    def has_passed(self) -> bool:
        return bool(self.checks) and not any(check.error for check in self.checks)


CLIENTS = (
    Client("Python SDK", ("anthropic",), "sdk_python.py"),
    Client("TypeScript SDK", ("@anthropic-ai/sdk",), "sdk_typescript.mjs", is_npm=True),
    Client("LangChain", ("langchain-anthropic",), "langchain_client.py"),
    Client("pydantic-ai", ("pydantic-ai-slim[anthropic]",), "pydantic_ai_client.py"),
    Client("instructor", ("instructor>=1.17", "anthropic"), "instructor_client.py"),
    Client("llm with llm-anthropic", ("llm-anthropic", "llm"), "llm_client.py"),
    Client(
        "Claude Code",
        ("@anthropic-ai/claude-code",),
        command=("{bin}/claude", "-p", "Hello", "--model", MODEL, "--output-format", "json"),
        is_npm=True,
    ),
)


def run_clients(folder: Path, say: Callable[[str], None]) -> list[Run]:
    """Run every client in environments below a folder; one that cannot be installed fails."""
    runs = []
    with _start_emulator() as url:
        for client in CLIENTS:
            runs.append(_run_client(client, folder / client.title.replace(" ", "-"), url))
            say(f"{client.title} {runs[-1].version}: {_summarize(runs[-1].checks)}")
    return runs


def _run_client(client: Client, place: Path, url: str) -> Run:
    place.mkdir(parents=True, exist_ok=True)
    try:
        version = (
            _install_npm(client, place)
            if client.is_npm
            else install_packages(client.packages, place)
        )
        # A client must not read the settings and keys of the person who runs this.
        env = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        env |= {"HOME": str(place), "ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "sk-emulator"}
        done = execute(_words(client, place), place, _RUN_SECONDS, env)
    except subprocess.CalledProcessError as error:
        return Run(client.title, "", (Check("install", (error.stderr or "")[-300:] or "failed"),))
    except subprocess.TimeoutExpired as error:
        return Run(client.title, "", (Check("time", str(error)[:300]),))
    return Run(client.title, version, read_checks(client, done.returncode, done.stdout))


def _words(client: Client, place: Path) -> list[str]:
    if client.command:
        return [word.replace("{bin}", str(place / "node_modules/.bin")) for word in client.command]
    if client.is_npm:
        # Node resolves packages relative to the program.
        copied = place / client.program
        copied.write_bytes((PROGRAMS / client.program).read_bytes())
        return ["node", str(copied)]
    return [str(place / "bin/python"), str(PROGRAMS / client.program)]


def read_checks(client: Client, status: int, output: str) -> tuple[Check, ...]:
    """Parse the last line of a program; one that crashed or printed nothing counts as failed."""
    last = output.strip().rpartition("\n")[2]
    try:
        found = json.loads(last)
    except ValueError:
        return (Check("program", f"ended with {status} and without a result: {last[:200]}"),)
    if client.command:
        is_good = status == 0 and isinstance(found, dict) and found.get("is_error") is False
        return (Check("answer", "" if is_good else last[:300]),)
    checks = tuple(Check(row["check"], row["error"]) for row in found)
    return checks if status == 0 and checks else (*checks, Check("program", f"ended with {status}"))


def _install_npm(client: Client, place: Path) -> str:
    packages = [f"{name}@latest" for name in client.packages]
    words = ["npm", "install", "--silent", "--prefix", str(place), *packages]
    execute(words, place).check_returncode()
    package = place / "node_modules" / client.packages[0]
    if (package / "install.cjs").exists():
        # Newer versions of npm do not run the package's install script.
        execute(["node", "install.cjs"], package).check_returncode()
    return str(json.loads((package / "package.json").read_text(encoding="utf-8"))["version"])


@contextmanager
def _start_emulator() -> Iterator[str]:
    words = [sys.executable, "-m", "agentweb.emulator", "--port", "0", "--pace", "0"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        try:
            line = process.stdout.readline() if process.stdout else ""
            if not line:
                raise OSError("the emulator did not start")
            yield line.split()[-1]
        finally:
            process.terminate()


def render_table(runs: Iterable[Run]) -> str:
    """Return the README's table: passed checks are counted, failed ones named with their errors."""
    lines = ["| client | version | passed | did not pass |", "|---|---|---:|---|"]
    for run in runs:
        passed = sum(not check.error for check in run.checks)
        failed = "; ".join(f"{one.name}: {_cell(one.error)}" for one in run.checks if one.error)
        version = run.version or "not installed"
        lines.append(f"| {run.title} | {version} | {passed} of {len(run.checks)} | {failed} |")
    return "\n".join(lines)


def write_table(runs: Iterable[Run]) -> None:
    """Write the table into the README of the bench."""
    if not replace_marked(README, "clients", render_table(runs)):
        raise LookupError(f"{README} has no marks for clients")


def _cell(text: str) -> str:
    short = " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
    return short if len(short) <= 100 else f"{short[:99]}…"


def _summarize(checks: tuple[Check, ...]) -> str:
    failed = [check.name for check in checks if check.error]
    return f"{len(checks) - len(failed)} of {len(checks)} passed" + (
        f", not {', '.join(failed)}" if failed else ""
    )
