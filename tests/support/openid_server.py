"""A real OpenID provider for tests, and a relay that can put another token in place of its own.

The provider is oidc-provider-mock (on Authlib), an implementation of the standard that shares no
code with this project; it runs as a process of its own, with keys made at its start. The relay
stands before it: it passes everything on, remembers token responses, and can answer a request for a
token with a remembered one, as an attacker between the two would.
"""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.support.servers import free_port

TOKEN = "/oauth2/token"


@dataclass(slots=True)
class OpenIdServer:
    """A provider behind a relay; `url` is the issuer that clients are told."""

    token_seconds: int = 3_600
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None
    relay: ThreadingHTTPServer | None = None
    #: Token responses as they passed by, oldest first.
    tokens: list[bytes] = field(default_factory=list)
    #: What the next request for a token is answered with instead.
    instead: bytes = b""

    @property
    def url(self) -> str:
        assert self.relay is not None
        return f"http://127.0.0.1:{self.relay.server_address[1]}"

    def start(self) -> None:
        command = [sys.executable, "-W", "ignore", "-m", "oidc_provider_mock"]
        options = ["--port", str(self.port), "--token-max-age", str(self.token_seconds)]
        self.process = subprocess.Popen(
            [*command, *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        if self.relay is None:
            server = self

            class Relay(_Relay):
                provider = server

            self.relay = ThreadingHTTPServer(("127.0.0.1", 0), Relay)
            threading.Thread(target=self.relay.serve_forever, daemon=True).start()
        self._wait()

    def _wait(self) -> None:
        for _ in range(600):
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/jwks"):
                    return
            except OSError:
                assert self.process is not None
                assert self.process.poll() is None, "the provider ended"
                time.sleep(0.1)
        raise TimeoutError

    def stop(self) -> None:
        assert self.process is not None
        self.process.terminate()
        self.process.wait(30)

    def close(self) -> None:
        self.stop()
        if self.relay is not None:
            self.relay.shutdown()
            self.relay.server_close()

    def put_person(self, sub: str, claims: Mapping[str, Any]) -> None:
        """Make a person, or change what the provider says of them."""
        asked = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/users/{sub}",
            data=json.dumps(claims).encode(),
            method="PUT",
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(asked) as answer:
            assert answer.status == 204

    def agree(self, address: str, sub: str, action: str = "") -> str:
        """Log the person in on the provider's own page; return where it sends the browser."""
        parts = urllib.parse.urlsplit(address)
        assert parts.hostname is not None
        connection = http.client.HTTPConnection(parts.hostname, parts.port)
        form = urllib.parse.urlencode({"sub": sub} | ({"action": action} if action else {}))
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        connection.request("POST", f"{parts.path}?{parts.query}", form, headers)
        answer = connection.getresponse()
        answer.read()
        connection.close()
        assert answer.status == 302, answer.status
        return str(answer.headers["Location"])


class _Relay(BaseHTTPRequestHandler):
    provider: OpenIdServer

    def do_GET(self) -> None:
        self._pass_on(b"")

    def do_POST(self) -> None:
        self._pass_on(self.rfile.read(int(self.headers.get("Content-Length", 0))))

    def _pass_on(self, body: bytes) -> None:
        provider = self.provider
        connection = http.client.HTTPConnection("127.0.0.1", provider.port)
        connection.request(self.command, self.path, body, dict(self.headers))
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        if self.path == TOKEN:
            provider.tokens.append(content)
            content, provider.instead = provider.instead or content, b""
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in {"content-length", "transfer-encoding", "connection"}:
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_args: Any) -> None:
        """Say nothing."""
