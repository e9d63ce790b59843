"""The product under test: real processes with their own data, embedded or scaled out.

Scaled out means a web process, a worker, PostgreSQL and Redis, each measured separately. The
servers are started from the development wheels. BENCH_DATABASE_URL and BENCH_REDIS_URL name others;
never name those of a site in use, because the run fills them with made-up people.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agentweb.bench.processes import (
    ROOT,
    NotStarted,
    Process,
    clean_environment,
    find_free_port,
    start_process,
    wait_for_output,
)

EMBEDDED, SCALED = "embedded", "scaled out"
MODEL = "claude-sonnet-5-5"


@dataclass(slots=True)
class Site:
    """A running site; `parts` are its processes, `root` is the tree whose code they run."""

    url: str
    environment: dict[str, str]
    folder: Path
    parts: dict[str, Process] = field(default_factory=dict)
    root: Path = ROOT
    #: What starts a web process.
    command: tuple[str, ...] = ("manage.py", "serve")

    @property
    def processor(self) -> dict[str, float]:
        return {name: part.processor for name, part in self.parts.items()}

    @property
    def memory(self) -> dict[str, int]:
        return {name: part.memory for name, part in self.parts.items()}

    def stop(self) -> None:
        """End the processes in reverse order of their start."""
        for part in reversed(list(self.parts.values())):
            part.stop()

    def people(self, count: int, chats: int = 1) -> list[dict[str, Any]]:
        """Create people with sessions in the site's database; return their conversations."""
        done = subprocess.run(
            [sys.executable, "-m", "agentweb.bench.made_people", str(count), str(chats)],
            check=True, cwd=self.root, env=self.environment, stdout=subprocess.PIPE, timeout=300,
        )  # fmt: skip
        found: list[dict[str, Any]] = json.loads(done.stdout)
        return found

    def stored(self, chats: list[str], seconds: float) -> dict[str, list[str]]:
        """Return the stored stamps by conversation, once its answers have ended."""
        done = subprocess.run(
            [sys.executable, "-m", "agentweb.bench.stored_answers", str(seconds)],
            check=True, cwd=self.root, env=self.environment, stdout=subprocess.PIPE,
            input=json.dumps(chats).encode(), timeout=seconds + 60,
        )  # fmt: skip
        found: dict[str, list[str]] = json.loads(done.stdout)
        return found

    def read_json(self, path: str) -> dict[str, Any]:
        """Return what a page of the site says as JSON."""
        with urllib.request.urlopen(self.url + path, timeout=30) as response:  # noqa: S310 - ours
            found: dict[str, Any] = json.loads(response.read())
        return found

    def start(self, name: str, command: Sequence[str]) -> Process:
        """Start a command of the site's tree as a part of the site."""
        self.parts[name] = start_process(
            name, command, self.folder, self.environment, root=self.root
        )
        return self.parts[name]

    def serve(self, name: str = "web", port: int = 0) -> Process:
        """Start a web process and wait until it answers."""
        port = port or find_free_port()
        command = [*self.command, "--port", str(port)]
        self.url = f"http://127.0.0.1:{port}"
        self.start(name, command)
        wait_for_output(self.parts[name], "is running at")
        # Requests the log-in page: the first request of a process pays for what is made once.
        with urllib.request.urlopen(self.url, timeout=120):  # noqa: S310 - of this machine
            pass
        return self.parts[name]


@contextmanager
def run_emulator(rate: float, script: Path | None = None, pace: float = 0.0) -> Iterator[str]:
    """Run the emulator in its own process, at a rate that no slow reader reduces, or at a pace.

    What comes at a rate has stamps in its text; a pace leaves texts as they are.
    """
    with tempfile.TemporaryDirectory(prefix="agentweb-bench-") as name:
        command = ["-m", "agentweb.emulator", "--port", "0", "--pace", str(pace)]
        command += ["--rate", str(rate)] if rate else []
        command += ["--script", str(script)] if script else []
        process = start_process("emulator", command, Path(name))
        try:
            yield wait_for_output(process, "http://").split()[-1]
        finally:
            process.stop()


@contextmanager
def run_relay(api: str) -> Iterator[Site]:
    """Run the plain relay."""
    with tempfile.TemporaryDirectory(prefix="agentweb-bench-") as name:
        port, folder = find_free_port(), Path(name)
        environment = clean_environment(
            ANTHROPIC_API_KEY="bench", ANTHROPIC_BASE_URL=api, RELAY_MODEL=MODEL, NO_PROXY="*"
        )
        command = ["-m", "agentweb.bench.baseline_relay", str(port)]
        process = start_process("relay", command, folder, environment)
        try:
            wait_for_output(process, "Uvicorn running")
            yield Site(f"http://127.0.0.1:{port}", environment, folder, {"relay": process})
        finally:
            process.stop()


@contextmanager
def run_site(
    mode: str,
    api: str,
    *,
    command: tuple[str, ...] = ("manage.py", "serve"),
    root: Path = ROOT,
    **more: str,
) -> Iterator[Site]:
    """Run the product of a tree; `command` starts its web process, `more` are variables."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="agentweb-bench-")))
        settings = {
            "AGENTWEB_DATA_DIR": str(folder / "data"),
            "ANTHROPIC_API_KEY": "bench",
            "ANTHROPIC_BASE_URL": api,
            "AGENTWEB_MODEL": MODEL,
            "AGENTWEB_TITLE_MODEL": "off",
            "AGENTWEB_PROCESS_TURNS": "250",
            "AGENTWEB_LOG_LEVEL": "WARNING",
            "DJANGO_SETTINGS_MODULE": "agentweb.settings",
        }
        environment = clean_environment(**settings | more)
        made = Site("", environment, folder, command=command, root=root)
        stack.callback(made.stop)
        if mode == SCALED:
            _add_stores(made)
        made.serve()
        if mode == SCALED:
            wait_for_output(made.start("worker", ["manage.py", "worker"]), "runs up to")
        yield made


def _add_stores(made: Site) -> None:
    """Add PostgreSQL and Redis: those of the environment, or servers of this run."""
    database, redis = (
        os.environ.get("BENCH_DATABASE_URL", ""),
        os.environ.get("BENCH_REDIS_URL", ""),
    )
    if not (database and redis):
        servers = _find_servers("scaled out needs PostgreSQL and Redis")
        postgres, cache = servers.start_postgres(), servers.start_redis()
        database, redis = servers.make_database(postgres, "bench"), cache.url
        for name, server in (("postgres", postgres), ("redis", cache)):
            made.parts[name] = _adopt(name, server)
    made.environment |= {
        "DATABASE_URL": database, "REDIS_URL": redis, "AGENTWEB_RUN_TURNS_IN": "worker"
    }  # fmt: skip


def make_postgres(stack: ExitStack, name: str) -> str:
    """Return the URL of an empty database of PostgreSQL, on a server that ends with the stack."""
    if url := os.environ.get("BENCH_DATABASE_URL", ""):
        return url
    servers = _find_servers("a move needs PostgreSQL")
    postgres = servers.start_postgres()
    stack.callback(postgres.discard)
    return str(servers.make_database(postgres, name))


def _find_servers(why: str) -> Any:
    """Return what starts servers from the development packages; raises NotStarted without them."""
    try:
        from tests.support import servers
    except ImportError as error:
        raise NotStarted(
            f"{why}: set BENCH_DATABASE_URL and BENCH_REDIS_URL, or run it where tests/ and the"
            " development packages (requirements-dev.lock) are"
        ) from error
    return servers


def _adopt(name: str, server: Any) -> Process:
    return Process(name, server.process, server.log)
