"""Real processes that start in a moment: forked from one that has imported everything.

A start of the product costs three seconds of processor time, nearly all of it imports. The *base*
(one for a test run) has the libraries; a *template* is a fork of it with the environment of one
installation and Django set up; every process of that installation is a fork of the template which
then runs what `manage.py` would run. Such a process has its own session, log and limits, is
identified by its pid, and dies with its template, which dies with the base, which dies with the
test.

Base and templates answer one JSON line for each connection to their Unix socket:
`{"become": path, "env": {...}}`, `{"call": "module:function", "arguments": {...}, ...}`,
`{"poll": pid}`.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib
import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.rig.processes import Process
from tests.support import servers

PROJECT = Path(__file__).resolve().parents[2]
#: Modules that take long to import and need neither settings nor the environment.
LIBRARIES = (
    "anthropic", "billiard.pool", "celery.app.amqp", "celery.app.control", "celery.app.events",
    "celery.app.log", "celery.app.task", "celery.apps.worker", "celery.bin.celery",
    "celery.contrib.django.task", "celery.worker.autoscale", "celery.worker.components",
    "celery.worker.consumer.delayed_delivery", "celery.worker.strategy", "kombu.pidbox",
    "celery.concurrency.thread",
    "celery.worker.consumer", "kombu.transport.redis", "channels.generic.websocket",
    "channels_redis.pubsub", "cryptography.fernet", "daphne.server", "docx", "fido2.server", "h11",
    "httpcore2", "httpx2", "jsonschema", "latex2mathml.converter", "markdown_it", "mcp", "nh3",
    "openpyxl", "psycopg", "psycopg_pool", "pygments.lexers", "pypdf", "redis.asyncio",
    "csp.middleware", "django.contrib.admin", "django.contrib.auth.hashers",
    "django.core.handlers.asgi", "django.core.management", "django.db.backends.sqlite3.base",
    "django.db.migrations.executor", "django.db.models", "django.forms",
    "django.middleware.locale", "django.template", "jwt", "requests", "servestatic.middleware",
    "agentweb.emulator.server", "conversations.agent.loop", "conversations.charts",
    "conversations.claude.client", "conversations.context.pipeline", "conversations.lab.report",
    "conversations.rendering", "conversations.transfer.formats", "tools.framework.registry",
    "tools.mcp.pool",
)  # fmt: skip
#: Modules that need the settings too, and keep no state of their process.
WARM = (
    "conversations.claude.client", "conversations.runtime.process", "agentweb.asgi",
    "agentweb.urls",
    "agentweb.celery", "agentweb.emulator.server", "agentweb.edge.http_server",
    "agentweb.serving.worker_loop", "agentweb.site.context_processors",
    "conversations.audit.verify", "conversations.live.layer", "conversations.tasks",
    "agentweb.management.commands.serve", "agentweb.management.commands.worker",
    "tests.rig.site_actions", "tests.rig.oracle", "tests.rig.roles", "tests.support.toy_tools",
)  # fmt: skip

#: Folders of templates of the page of a chat and of what it is told.
CHAT_TEMPLATES = ("conversations/_partials", "conversations/events")


@dataclass(slots=True)
class Template:
    """A process to fork others from; `call` and `start` are thread-safe."""

    path: Path
    pid: int = 0

    def ask(self, request: Mapping[str, Any]) -> Any:
        with socket.socket(socket.AF_UNIX) as link:
            link.settimeout(300)
            link.connect(str(self.path))
            with link.makefile("rw", encoding="utf-8") as file:
                file.write(json.dumps(request) + "\n")
                file.flush()
                line = file.readline()
        if not line:
            raise RuntimeError(f"the template at {self.path} has ended")
        return json.loads(line)

    def template(self, folder: Path, environment: Mapping[str, str]) -> Template:
        """Fork a template with another environment; it sets up Django."""
        path = folder / "template.sock"
        log = folder / "template.log"
        asked = {"become": str(path), "env": dict(environment), "log": str(log)}
        found = Template(path, self.ask(asked))
        servers.at_end(found.end)
        deadline = time.monotonic() + 300
        while not path.exists():
            if self.poll(found.pid) is not None or time.monotonic() > deadline:
                raise RuntimeError(f"no template:\n{log.read_text(errors='replace')[-3_000:]}")
            time.sleep(0.01)
        return found

    def start(
        self,
        name: str,
        function: str,
        log: Path,
        *,
        limits: Mapping[str, int] | None = None,
        environment: Mapping[str, str] | None = None,
        answer: Path | None = None,
        **arguments: Any,
    ) -> Process:
        """Fork a process that calls `module:function`; `limits` are names of RLIMIT_ with values.

        The function's return value is written to `answer` as JSON.
        """
        pid = self.ask(
            {
                "call": function,
                "arguments": arguments,
                "log": str(log),
                "limits": dict(limits or {}),
                "env": dict(environment or {}),
                "answer": str(answer) if answer else "",
            }
        )
        return Process(name, pid, log, functools.partial(self.poll, pid))

    def call(self, function: str, log: Path, seconds: float = 120, **arguments: Any) -> Any:
        """Call a function in a process of its own and return its result."""
        answer = log.with_name(f"answer-{time.monotonic_ns()}.json")
        process = self.start(function, function, log, answer=answer, **arguments)
        code = process.wait(seconds)
        if code:
            raise AssertionError(f"{function} ended with {code}:\n{process.tail()}")
        try:
            return json.loads(answer.read_text(encoding="utf-8"))
        finally:
            answer.unlink()

    def poll(self, pid: int) -> int | None:
        """Return the exit code of a child, as `Popen.poll` does; None while it runs."""
        found: int | None = self.ask({"poll": pid})
        return found

    def end(self) -> None:
        """Kill it and, by their death signal, all its forks."""
        if self.pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            self.pid = 0


@functools.cache
def base() -> Template:
    """Start the base of this test run on first use, from the main thread, with which it ends."""
    folder = servers.folder_of("rig")
    servers.at_end(lambda: shutil.rmtree(folder, ignore_errors=True))
    path = folder / "base.sock"
    with (folder / "base.log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-u", "-m", "tests.rig.forking", str(path)],
            cwd=PROJECT,
            env=clean(),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=servers.end_with_parent(signal.SIGKILL),  # noqa: PLW1509
        )
    servers.at_end(process.kill)
    deadline = time.monotonic() + 300
    while not path.exists():
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError((folder / "base.log").read_text(errors="replace")[-3_000:])
        time.sleep(0.02)
    return Template(path, process.pid)


def clean() -> dict[str, str]:
    """Return the environment without variables of an installation."""
    foreign = ("AGENTWEB_", "ANTHROPIC_", "DATABASE_URL", "REDIS_URL", "SECRET_KEY", "DJANGO_")
    return {name: value for name, value in os.environ.items() if not name.startswith(foreign)}


def main(path: str) -> None:
    for name in LIBRARIES:
        importlib.import_module(name)
    _serve(path)


def _serve(path: str) -> None:
    """Fork on request until killed."""
    gc.freeze()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{path}.new")
        listener.listen(64)
        Path(f"{path}.new").rename(path)
        while True:
            link, _ = listener.accept()
            with link, link.makefile("rw", encoding="utf-8") as file:
                request = json.loads(file.readline())
                if "poll" in request:
                    answer: int | None = _polled(request["poll"])
                else:
                    answer = os.fork()
                    if answer == 0:
                        listener.close()
                        link.close()
                        _become(request)
                file.write(json.dumps(answer) + "\n")


_ended: dict[int, int] = {}


def _polled(pid: int) -> int | None:
    if pid not in _ended:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            _ended[pid] = os.waitstatus_to_exitcode(status)
    return _ended.get(pid)


def _become(request: Mapping[str, Any]) -> None:
    """Run the requested function in this process; never returns."""
    code = 1
    try:
        end_with_parent = servers.end_with_parent(signal.SIGKILL)
        if end_with_parent is not None:
            end_with_parent()
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDONLY)
        log = os.open(request["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        for old, new in ((nothing, 0), (log, 1), (log, 2)):
            os.dup2(old, new)
        os.environ.update(request["env"])
        _ended.clear()
        if "become" in request:
            import django

            django.setup()
            _warm()
            _serve(request["become"])
        for name, limit in request["limits"].items():
            resource.setrlimit(getattr(resource, name), (limit, limit))
        code = _called(request)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
        if isinstance(end.code, str):
            sys.stderr.write(f"{end.code}\n")
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _warm() -> None:
    from django.conf import settings
    from django.db import connections
    from django.db.migrations.loader import MigrationLoader
    from django.template.loader import get_template
    from django.urls import get_resolver

    for name in WARM:
        importlib.import_module(name)
    MigrationLoader(None)
    # Each process would read all files of the code for it.
    importlib.import_module("agentweb.serving.heartbeat").code_version()
    # Nor compile the addresses and the templates of a chat.
    get_resolver().reverse_dict  # noqa: B018 - it is cached
    templates = settings.BASE_DIR / "templates"
    for folder in CHAT_TEMPLATES:
        for path in (templates / folder).rglob("*.html"):
            get_template(str(path.relative_to(templates)))
    connections.close_all()


def _called(request: Mapping[str, Any]) -> int:
    module, _, function = request["call"].partition(":")
    found = getattr(importlib.import_module(module), function)(**request["arguments"])
    if request["answer"]:
        path = Path(request["answer"])
        path.with_suffix(".part").write_text(json.dumps(found), encoding="utf-8")
        path.with_suffix(".part").rename(path)
    return 0


if __name__ == "__main__":
    # Imported by its own name, so that forks get the same module.
    importlib.import_module("tests.rig.forking").main(sys.argv[1])
