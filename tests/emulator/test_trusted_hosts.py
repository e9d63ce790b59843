"""A server on loopback refuses requests under another host name."""

from __future__ import annotations

import http.client
import json

import pytest
from django.test import Client

from agentweb.emulator import server
from agentweb.emulator.server import EmulatorServer

BODY = json.dumps({"model": "claude-sonnet-5-5", "max_tokens": 9,
                   "messages": [{"role": "user", "content": "Hello"}]})  # fmt: skip
FOREIGN = ["evil.example", "evil.example:{port}", "127.0.0.1.evil.example", "localhost.evil:80",
           "", "127.0.0.1@evil.example", "[::1].evil"]  # fmt: skip


def status(running: EmulatorServer, method: str, path: str, host: str) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=60)
    headers = {"x-api-key": "sk-ant-x", "anthropic-version": "2023-06-01", "Host": host}
    connection.request(method, path, BODY if method == "POST" else None, headers)
    found = connection.getresponse().status
    connection.close()
    return found


def test_the_emulator_refuses_a_foreign_host_at_every_endpoint() -> None:
    with server.start(pace=0, record=True) as running:
        for host in FOREIGN:
            for method, path in (
                ("POST", "/v1/messages"), ("GET", "/v1/models"), ("GET", "/_emulator/bills"),
            ):  # fmt: skip
                assert status(running, method, path, host.format(port=running.port)) == 400
        assert running.emulator.log == []
        for host in (
            "127.0.0.1",
            f"127.0.0.1:{running.port}",
            "localhost:1",
            "LOCALHOST",
            "[::1]:9",
        ):
            assert status(running, "POST", "/v1/messages", host) == 200


@pytest.mark.django_db
@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "evil.example:8000"])
def test_the_app_refuses_a_foreign_host(host: str) -> None:
    for path in ("/", "/admin/", "/accounts/login/"):
        assert (
            Client(raise_request_exception=False).get(path, headers={"host": host}).status_code
            == 400
        )
