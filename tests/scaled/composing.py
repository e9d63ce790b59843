"""The compose file, run: its commands as processes of this machine on real servers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support import servers
from tests.support.compose_file import filled, read
from tests.test_project import ROOT

DEPLOY = ROOT / "agentweb" / "deploy"
SERVICES: dict[str, Any] = read((DEPLOY / "compose.yaml").read_text())["services"]
SECRET = "0123456789abcdef" * 4


@dataclass
class Composed:
    """The services' processes; names are those of the file, with a number where there are two."""

    folder: Path
    database: servers.Server
    redis: servers.Server
    password: str
    emulator: int = field(default_factory=servers.free_port)
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def make_role(self, url: str) -> None:
        """Run what PostgreSQL's image runs when the database is made."""
        where = servers._postgres_binaries()
        subprocess.run(
            ["sh", str(DEPLOY / "app-role.sh")], check=True, stdout=subprocess.DEVNULL,
            env={**os.environ, "PATH": f"{where}:{os.environ['PATH']}", "PGHOST": "127.0.0.1",
                 "PGPORT": str(self.database.port), "POSTGRES_USER": "agentweb",
                 "POSTGRES_DB": url.rpartition("/")[2], "DATABASE_APP_PASSWORD": "x'y"},
        )  # fmt: skip

    def environment(self, name: str) -> dict[str, str]:
        """Give a service's environment with this machine's addresses for those of the network."""
        here = f"127.0.0.1:{self.database.port}"
        variables = {
            "POSTGRES_PASSWORD": "x", "DATABASE_APP_PASSWORD": "x", "SECRET_KEY": SECRET,
            "REDIS_PASSWORD": self.password,
            "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{self.emulator}",
        }  # fmt: skip
        given = filled(SERVICES[name]["environment"], variables)
        addresses = {
            "@database/agentweb": f"@{here}/composed",
            "@redis:6379": f"@127.0.0.1:{self.redis.port}",
        }
        folders = {"/data": str(self.folder / "data"), "/tmp": str(self.folder)}
        for key, value in given.items():
            text = str(value).lower() if isinstance(value, bool) else str(value)
            for inside, outside in addresses.items():
                text = text.replace(inside, outside)
            given[key] = folders.get(text, text)
        own = {one: value for one, value in os.environ.items() if one != "DATABASE_URL"}
        return own | {"AGENTWEB_LEASE_SECONDS": "5"} | given

    def start(self, name: str, *, port: int = 0, twin: str = "") -> None:
        command = list(SERVICES[name]["command"])
        if port:
            command = [word if word != "8100" else str(port) for word in command]
            command += ["--port", str(port)] if name == "web" else []
        with self.log(name + twin).open("ab") as log:
            self.running[name + twin] = subprocess.Popen(
                [sys.executable, "-u", "manage.py", *command],
                cwd=ROOT, env=self.environment(name), stdin=subprocess.DEVNULL, stdout=log,
                stderr=subprocess.STDOUT, start_new_session=True,
                preexec_fn=servers.end_with_parent(signal.SIGKILL),  # noqa: PLW1509
            )  # fmt: skip

    def log(self, name: str) -> Path:
        return self.folder / f"{name}.log"

    def says(self, name: str, words: str) -> None:
        """Wait until a process has said something."""
        process = self.running[name]
        until(lambda: words in self.log(name).read_text() or process.poll() is not None)
        assert words in self.log(name).read_text(), self.log(name).read_text()[-3_000:]

    def manage(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "manage.py", *words], check=False, cwd=ROOT, timeout=120, text=True,
            env=self.environment("web"), capture_output=True,
        )  # fmt: skip

    def stop(self) -> dict[str, int]:
        """End all as compose does, and give their exit codes."""
        for process in self.running.values():
            process.terminate()
        return {name: process.wait(timeout=60) for name, process in self.running.items()}


def until(happened: Callable[[], bool], seconds: float = 200) -> None:
    deadline = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.05)
