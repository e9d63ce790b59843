"""The run command as its operator meets it: started, refused in words, ended cleanly."""

from __future__ import annotations

import base64
import http.client
import os
import re
import signal
import socket
import sqlite3
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from django.core.management import CommandError

from agentweb.edge.sockets import MOST_FRAME
from agentweb.management.commands.serve import port_number
from agentweb.serving.server_process import _demand_free, lock_data_folder
from tests.e2e import served
from tests.e2e.served import PROJECT, Served
from tests.support import prepared_databases, servers

embedded = pytest.mark.only_database("sqlite", "these processes bring their database")
PASSWORD = "quite a long password 7"


class Visitor:
    """A browser without a page: cookies, forms and raw sockets."""

    #: How long it waits for an answer.
    seconds = 60

    def __init__(self, port: int) -> None:
        self.port = port
        self.cookies: dict[str, str] = {}

    def ask(
        self, method: str, path: str, form: dict[str, str] | None = None, **headers: str
    ) -> tuple[int, dict[str, str], str]:
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=self.seconds)
        sent = {"Cookie": self.cookie, **{n.replace("_", "-"): v for n, v in headers.items()}}
        body = None
        if form is not None:
            form = form | {"csrfmiddlewaretoken": self.cookies.get("csrftoken", "")}
            body, sent["Content-Type"] = urlencode(form), "application/x-www-form-urlencoded"
        link.request(method, path, body, sent)
        answer = link.getresponse()
        for name, value in answer.getheaders():
            if name.lower() == "set-cookie":
                key, _, rest = value.partition("=")
                self.cookies[key] = rest.split(";")[0]
        found = {name.lower(): value for name, value in answer.getheaders()}
        text = answer.read().decode(errors="replace")
        link.close()
        return answer.status, found, text

    @property
    def cookie(self) -> str:
        return "; ".join(f"{name}={value}" for name, value in self.cookies.items())

    def open_socket(self, path: str) -> socket.socket:
        """Shake hands; gives the raw socket behind the answer."""
        raw = socket.create_connection(("127.0.0.1", self.port), timeout=60)
        key = base64.b64encode(os.urandom(16)).decode()
        host = f"127.0.0.1:{self.port}"
        raw.sendall(
            f"GET {path} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\nOrigin: http://{host}\r\n"
            f"Cookie: {self.cookie}\r\n\r\n".encode()
        )
        head = b""
        while b"\r\n\r\n" not in head:
            head += raw.recv(1)
        assert b" 101 " in head
        return raw


def frame(opcode: int, data: bytes, first: int = 0x80) -> bytes:
    """Make a client's frame; its mask of zeros leaves the data as it is."""
    size = len(data)
    if size < 126:
        head = bytes([0x80 | size])
    elif size < 65_536:
        head = bytes([0x80 | 126]) + struct.pack(">H", size)
    else:
        head = bytes([0x80 | 127]) + struct.pack(">Q", size)
    return bytes([first | opcode]) + head + b"\0\0\0\0" + data


def is_closed(raw: socket.socket) -> bool:
    """Read until the server has closed, or dropped, the connection."""
    try:
        while raw.recv(65_536):
            pass
    except ConnectionResetError:
        return True
    return True


def set_up(running: Served) -> Visitor:
    visitor = Visitor(running.port)
    path = re.sub(r"^http://[^/]+", "", running.setup_url)
    visitor.ask("GET", path)
    form = {"username": "root", "email": "", "password1": PASSWORD, "password2": PASSWORD}
    status, _, _ = visitor.ask("POST", path, form)
    assert status == 302
    return visitor


def begin(visitor: Visitor, text: str) -> str:
    visitor.ask("GET", "/c/new/")
    status, headers, _ = visitor.ask("POST", "/c/start/", {"text": text})
    assert status == 302
    return headers["location"]


def socket_path(visitor: Visitor, path: str) -> str:
    """Give the path of a conversation's socket, with the token of its page."""
    token = re.search(r'data-token="(\w+)"', visitor.ask("GET", path)[2])
    assert token is not None
    return f"/ws{path}?token={token[1]}"


def until(happened: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def rows(running: Served, sql: str) -> list[tuple[str, ...]]:
    with sqlite3.connect(running.database) as database:
        return database.execute(sql).fetchall()


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    found = served.start(tmp_path_factory.mktemp("serve") / "data", is_new=True)
    yield found
    found.stop()


@pytest.fixture(scope="module")
def visitor(running: Served) -> Visitor:
    return set_up(running)


def command(data: Path, **extra: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "manage.py", "serve"],
        check=False, cwd=PROJECT, env=served.environment(data, **extra), text=True, timeout=120,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip


@embedded
def test_it_serves_the_login_and_says_where(running: Served) -> None:
    status, headers, text = Visitor(running.port).ask("GET", "/accounts/login/")
    assert status == 200
    assert "Built-in emulator" in text
    assert headers["server"] == "agentweb"
    until(lambda: f"agentweb is running at {running.url}/" in running.log.read_text())


@embedded
def test_a_message_is_answered(running: Served, visitor: Visitor) -> None:
    path = begin(visitor, "Hello there")
    until(lambda: 'class="turn' in visitor.ask("GET", path)[2])
    until(lambda: rows(running, "SELECT state FROM conversations_turn")[-1] == ("done",))


@embedded
@pytest.mark.parametrize("root", ["@evil.example", "https://evil.example", "/anything"])
def test_a_client_does_not_bend_our_links(running: Served, root: str) -> None:
    asked = Visitor(running.port).ask
    status, headers, _ = asked("GET", "/c/new/", Daphne_Root_Path=root)
    assert (status, headers["location"]) == (302, "/accounts/login/?next=/c/new/")
    assert asked("GET", "/anything/c/new/", Daphne_Root_Path=root)[0] == 404
    assert asked("GET", "/", X_Forwarded_Host="evil.example")[1]["location"].startswith("/accounts")
    assert asked("GET", "/", Host="evil.example")[0] == 400


@embedded
def test_a_frame_that_breaks_the_rules_closes_its_socket_only(
    running: Served, visitor: Visitor
) -> None:
    path = socket_path(visitor, begin(visitor, "Hello there"))
    for sent in (
        frame(1, b"x" * (MOST_FRAME + 1)),
        frame(1, b"x" * 100_000, first=0) + frame(0, b"x" * 100_000),
        frame(1, b"\xff\xfe"),  # no text
        frame(0, b"x"),  # the rest of nothing
        frame(1, b"x", first=0xC0),  # a reserved bit
    ):
        with visitor.open_socket(path) as raw, visitor.open_socket(path) as other:
            raw.sendall(sent)
            assert is_closed(raw)
            other.sendall(frame(1, b"x" * 1_000))
            assert other.recv(1)
    assert visitor.ask("GET", "/healthz/ready")[0] == 200


@embedded
def test_a_second_server_on_the_same_data_is_refused_in_words(
    running: Served, settings: Any
) -> None:
    settings.DATA_DIR = running.data
    with pytest.raises(CommandError, match="another agentweb already serves"), lock_data_folder():
        pass


@embedded
def test_a_port_that_is_taken_is_refused_in_words(running: Served) -> None:
    with pytest.raises(CommandError, match=f"cannot listen on 127.0.0.1 port {running.port}"):
        _demand_free("127.0.0.1", running.port)
    with pytest.raises(CommandError, match=r"cannot listen on no\.such"):
        _demand_free("no.such.host.invalid", 8_000)


@embedded
@pytest.mark.parametrize("port", ["0", "65536", "-1", "http", "²"])
def test_a_port_that_is_none_is_refused_in_words(port: str) -> None:
    with pytest.raises(Exception, match="a port is a number from 1 to 65535"):
        port_number(port)


@embedded
def test_a_setting_that_means_nothing_is_named(tmp_path: Path) -> None:
    done = command(tmp_path, AGENTWEB_MAX_ROUNDS="many")
    assert done.returncode != 0
    assert done.stdout == "AGENTWEB_MAX_ROUNDS: 'many' is not a whole number\n"


@embedded
@pytest.mark.parametrize(
    ("name", "url", "said"),
    [("DATABASE_URL", "sqlite:///nowhere/of/all/site.sqlite3", "unable to open database file"),
     ("AGENTWEB_MIGRATE_DATABASE_URL", "postgresql://own:hunter2@127.0.0.1:1/site", ".*port 1 ")],
)  # fmt: skip
def test_a_database_that_cannot_be_reached_is_said_in_words(
    name: str, url: str, said: str, tmp_path: Path
) -> None:
    done = command(tmp_path, **{name: url})
    assert done.returncode != 0
    assert re.match(f"CommandError: the database cannot be reached: {said}", done.stdout)
    assert "Traceback" not in done.stdout
    assert "hunter2" not in done.stdout


@embedded
def test_a_killed_one_is_followed_by_one_that_tidies_up_and_ends_cleanly(tmp_path: Path) -> None:
    # A data folder that is not there yet is made, also where the secret comes from outside.
    data = tmp_path / "a" / "b"
    running = served.start(data, is_new=True)
    visitor = set_up(running)
    begin(visitor, "Answer in 5000 words emulator:pace=0.02")
    until(lambda: rows(running, "SELECT 1 FROM conversations_draft WHERE text <> ''") != [])
    running.process.kill()
    running.process.wait(timeout=60)

    again = served.start(data)
    states = "SELECT state, finish_reason FROM conversations_turn ORDER BY id"
    until(lambda: rows(again, states) == [("interrupted", "crash")])
    kinds = rows(again, "SELECT kind FROM conversations_message ORDER BY seq")
    assert kinds == [("prompt",), ("answer",)]

    visitor.port = again.port
    begin(visitor, "Answer in 150 words emulator:pace=0.02")
    until(lambda: rows(again, "SELECT 1 FROM conversations_draft") != [])
    again.process.send_signal(signal.SIGINT)
    assert again.process.wait(timeout=60) == 0
    assert rows(again, states)[-1] == ("done", "end_turn")
    log = again.log.read_text().split("Traceback")
    assert len(log) == 1
    assert "Stopped." in log[0]


@pytest.mark.only_database("postgres", "needs the server of the run")
def test_on_postgresql_two_servers_run_beside_each_other(
    postgres: servers.Server, tmp_path: Path
) -> None:
    url = prepared_databases.postgres(postgres)
    one = served.fork(tmp_path / "one", DATABASE_URL=url)
    two = served.fork(tmp_path / "two", DATABASE_URL=url)
    try:
        path = begin(set_up(one), "Hello there")
        assert Visitor(two.port).ask("GET", path)[0] == 302
        assert Visitor(two.port).ask("GET", "/healthz/ready")[0] == 200
    finally:
        codes = [one.stop(), two.stop()]
    assert codes == [0, 0]
    assert "Traceback" not in one.log.read_text() + two.log.read_text()
