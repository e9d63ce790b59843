"""Scripted mail servers: IMAP that records every command, SMTP that accepts mail and drops it."""

from __future__ import annotations

import asyncio
import base64
import re
import ssl
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field

ANNOUNCED = re.compile(rb"\{(\d+)\}\r\n$")
GREETING = b"* OK ready\r\n"
#: Writes any bytes and returns whether it has answered the command.
Act = Callable[["FakeImap", str, bytes, asyncio.StreamWriter], Awaitable[bool]]


@dataclass
class FakeImap:
    """Answers each tagged command with OK, after the untagged reply that `replies` has for it."""

    tls: ssl.SSLContext
    is_starttls: bool = False
    greeting: bytes = GREETING
    capability: bytes = b"IMAP4rev1 AUTH=PLAIN AUTH=XOAUTH2"
    #: untagged answers by the first words of the command
    replies: dict[str, bytes] = field(default_factory=dict)
    act: Act | None = None
    #: sent in clear text after the OK to STARTTLS
    injected: bytes = b""
    #: the answer to STARTTLS after its tag
    starttls: bytes = b"OK go on\r\n"
    #: answers to credentials: "OK ..." or "NO ..."
    login: bytes = b"OK logged in\r\n"
    #: every command, without its tag, with literals in place
    commands: list[bytes] = field(default_factory=list)
    credentials: list[str] = field(default_factory=list)
    port: int = 0
    server: asyncio.Server | None = None

    async def start(self) -> FakeImap:
        tls = None if self.is_starttls else self.tls
        self.server = await asyncio.start_server(self.serve, "127.0.0.1", 0, ssl=tls)
        self.port = self.server.sockets[0].getsockname()[1]
        return self

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
            writer.write(self.greeting)
            while command := await self.read(reader, writer):
                tag, _, rest = command.partition(b" ")
                self.commands.append(rest.rstrip(b"\r\n"))
                await self.answer(tag, rest, reader, writer)
        writer.close()

    async def read(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        command = line = await reader.readline()
        while found := ANNOUNCED.search(line):
            writer.write(b"+ go on\r\n")
            command += await reader.readexactly(int(found[1]))
            line = await reader.readline()
            command += line
        return command

    async def answer(
        self, tag: bytes, rest: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        name = rest.decode("latin-1").strip()
        if self.act and await self.act(self, name, tag, writer):
            return
        if name == "STARTTLS":
            writer.write(tag + b" " + self.starttls + self.injected)
            await writer.drain()
            await writer.start_tls(self.tls)
        elif name == "CAPABILITY":
            writer.write(b"* CAPABILITY " + self.capability + b"\r\n" + tag + b" OK\r\n")
        elif name.startswith("AUTHENTICATE"):
            writer.write(b"+ \r\n")
            credentials = await reader.readline()
            self.credentials.append(base64.b64decode(credentials).decode())
            if self.login.startswith(b"NO") and "XOAUTH2" in name:
                writer.write(b"+ eyJzdGF0dXMiOiI0MDAifQ==\r\n")
                assert await reader.readline() == b"\r\n"
            writer.write(tag + b" " + self.login)
        elif name.startswith("LOGIN "):
            writer.write(tag + b" " + self.login)
        else:
            for start, reply in self.replies.items():
                if name.startswith(start):
                    writer.write(reply)
            writer.write(tag + b" OK done\r\n")
        await writer.drain()

    @property
    def asked(self) -> list[bytes]:
        """Return the commands after the log-in, without LOGOUT."""
        setting_up = (b"CAPABILITY", b"AUTHENTICATE", b"STARTTLS", b"LOGOUT", b"LOGIN")
        return [each for each in self.commands if not each.startswith(setting_up)]


@dataclass(frozen=True)
class Taken:
    sender: str
    recipients: list[str]
    data: bytes


@dataclass
class SmtpSink:
    """Accepts mail after a log-in under TLS, and stores it."""

    tls: ssl.SSLContext
    is_starttls: bool = False
    offers_starttls: bool = True
    password: str = "secret"
    #: recipients that are refused
    unknown: frozenset[str] = frozenset()
    #: disconnect instead of confirming the data
    breaks_off: bool = False
    #: stay connected but never confirm the data
    stalls: bool = False
    #: disconnect after confirming the data
    hangs_up: bool = False
    taken: list[Taken] = field(default_factory=list)
    credentials: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    port: int = 0

    async def start(self) -> SmtpSink:
        tls = None if self.is_starttls else self.tls
        self.server = await asyncio.start_server(self.serve, "127.0.0.1", 0, ssl=tls)
        self.port = self.server.sockets[0].getsockname()[1]
        return self

    def start_in_thread(self) -> SmtpSink:
        """Serve on a loop of its own, for a test whose app is another process."""
        loop = asyncio.new_event_loop()
        threading.Thread(target=loop.run_forever, daemon=True).start()
        return asyncio.run_coroutine_threadsafe(self.start(), loop).result(10)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
            await self.talk(reader, writer)
        writer.close()

    async def goes_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Confirm the data, unless it is to fail; return whether the dialogue continues."""
        if self.stalls:
            await reader.read()
        if self.breaks_off or self.stalls:
            return False
        writer.write(b"250 taken\r\n")
        await writer.drain()
        if self.hangs_up:
            writer.transport.abort()
        return not self.hangs_up

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        def say(text: str) -> None:
            writer.write(text.encode() + b"\r\n")

        is_safe, sender, recipients = not self.is_starttls, "", list[str]()
        say("220 sink")
        while line := (await reader.readline()).decode().rstrip("\r\n"):
            self.lines.append(line)
            verb = line.split(" ")[0].upper()
            if verb == "EHLO":
                offered = "AUTH PLAIN XOAUTH2" if is_safe else "STARTTLS" * self.offers_starttls
                say(f"250-sink\r\n250 {offered or 'HELP'}")
            elif verb == "STARTTLS" and not self.offers_starttls:
                say("502 no")
            elif verb == "STARTTLS":
                say("220 go on")
                await writer.drain()
                await writer.start_tls(self.tls)
                is_safe = True
            elif verb == "AUTH":
                told = base64.b64decode(line.split(" ")[2]).decode()
                self.credentials.append(told)
                is_known = self.password in told and is_safe
                if not is_known and "XOAUTH2" in line:
                    say("334 eyJzdGF0dXMiOiI0MDAifQ==")
                    await reader.readline()
                say("235 ok" if is_known else f"535 {told!r} is wrong")
            elif verb == "MAIL":
                sender = line
                say("250 ok")
            elif verb == "RCPT":
                recipients.append(line)
                is_unknown = any(name in line for name in self.unknown)
                say("550 nobody of that name" if is_unknown else "250 ok")
            elif verb == "DATA":
                say("354 go on")
                data = await reader.readuntil(b"\r\n.\r\n")
                self.taken.append(Taken(sender, recipients, data))
                if not await self.goes_on(reader, writer):
                    return
            else:
                say("221 bye" if verb == "QUIT" else "250 ok")
            await writer.drain()
