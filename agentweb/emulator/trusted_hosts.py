"""Checks the Host header: a server on loopback answers to loopback names only.

A page of another site may have its own name resolve to 127.0.0.1 (DNS rebinding). The browser then
treats the emulator as the same origin, but sends that name in the Host header.
"""

from __future__ import annotations

from agentweb.emulator.asgi import App, Receive, Scope, Send, respond

LOOPBACK = frozenset({"127.0.0.1", "localhost", "[::1]", "::1"})


def only_local(app: App, bound_to: str) -> App:
    """Refuse foreign Host headers with 400 where the server is bound to loopback."""

    async def checked(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not _is_local(scope):
            await respond(send, 400, b"unknown host", [("content-type", "text/plain")])
        else:
            await app(scope, receive, send)

    return checked if bound_to in LOOPBACK else app


def _is_local(scope: Scope) -> bool:
    # A browser always sends a Host header; a request without one comes from no page.
    hosts = [value.decode("latin-1") for name, value in scope["headers"] if name == b"host"]
    return all(_name(host) in LOOPBACK for host in hosts)


def _name(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return (name if colon and (port.isdecimal() or not port) else host).lower()
