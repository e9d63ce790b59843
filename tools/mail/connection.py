"""A connection to a mail server: a checked address, verified TLS, and limits on what is received.

The name is resolved once and checked like a web address, and the connection goes to an address of
that lookup. TLS is mandatory and its certificate is always verified. With STARTTLS, the lines
before it are read from the plain socket by separate code: bytes that a server (or an attacker)
sends after agreeing to TLS are refused and never taken for bytes sent under TLS. Lines, literals
and the bytes of a connection have caps, and one deadline covers everything.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import cache

import httpx2

from tools.framework.errors import AddressRefusedError
from tools.http.targets import Target, resolve_target
from tools.mail.accounts import MailAccess, Server
from tools.mail.errors import MailError

LONGEST_LINE = 1_000_000
LONGEST_PLAIN_LINE = 4_000
MOST_PLAIN_LINES = 50
#: Bytes of one connection besides the message that is fetched.
SLACK = 8_000_000


class PlainConnection:
    """The connection before TLS, read line by line."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket, self._buffer, self._lines = sock, bytearray(), 0

    async def line(self) -> bytes:
        """Read one line without its end."""
        while (end := self._buffer.find(b"\n")) < 0:
            piece = await asyncio.get_running_loop().sock_recv(self._socket, 1_024)
            if not piece or len(self._buffer) > LONGEST_PLAIN_LINE:
                raise MailError("The server broke off, or did not greet as a mail server does.")
            self._buffer += piece
        self._lines += 1
        if self._lines > MOST_PLAIN_LINES:
            raise MailError("The server's greeting does not end.")
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        return line.rstrip(b"\r")

    async def send(self, line: bytes) -> None:
        await asyncio.get_running_loop().sock_sendall(self._socket, line + b"\r\n")

    def check_silence(self) -> None:
        """Raise MailError for bytes that came unrequested before encryption."""
        if self._buffer:
            raise MailError("The server spoke on before encryption began; the connection is ended.")


#: Requests TLS in the protocol of a server; raises MailError if it is not offered.
RequestTls = Callable[[PlainConnection], Awaitable[None]]


class TlsConnection:
    """A connection under TLS."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, room: int
    ) -> None:
        self._reader, self._writer, self._room = reader, writer, room

    async def line(self) -> bytes:
        """Read one line without its end."""
        try:
            found = await self._reader.readuntil(b"\n")
        except asyncio.LimitOverrunError as error:
            raise MailError(f"The server sent a line over {LONGEST_LINE:,} bytes.") from error
        self._count(len(found))
        return found[:-1].rstrip(b"\r")

    async def take(self, size: int) -> bytes:
        """Read exactly `size` bytes, within the cap of the connection."""
        self._count(size)
        return await self._reader.readexactly(size)

    async def send(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    def close(self) -> None:
        self._writer.transport.abort()

    def _count(self, size: int) -> None:
        self._room -= size
        if self._room < 0:
            raise MailError("The server sent more than was asked for; the connection is ended.")


@asynccontextmanager
async def connect_to_server(
    server: Server, access: MailAccess, request_tls: RequestTls
) -> AsyncIterator[TlsConnection]:
    """Connect to a server until the block ends or the deadline passes; raises MailError."""
    deadline = asyncio.timeout(access.deadline)
    try:
        async with deadline:
            line = await _connect_tls(server, access, request_tls)
            try:
                yield line
            finally:
                line.close()
    except TimeoutError as error:
        if not deadline.expired():
            raise
        raise MailError(f"The mail server took over {access.deadline:g} seconds.") from error
    except ssl.SSLCertVerificationError as error:
        raise MailError(
            f"The mail server's certificate is not valid: {error.verify_message}."
        ) from error
    except ssl.SSLError as error:
        raise MailError("The mail server does not speak TLS properly on this port.") from error
    except (OSError, EOFError) as error:
        raise MailError("The mail server broke off.") from error


async def _connect_tls(
    server: Server, access: MailAccess, request_tls: RequestTls
) -> TlsConnection:
    target = await _resolve_server(server, access)
    sock = await _open_socket(target, server, access)
    try:
        if server.security == "starttls":
            plain = PlainConnection(sock)
            await request_tls(plain)
            plain.check_silence()
        reader, writer = await asyncio.open_connection(
            sock=sock,
            ssl=access.tls or _trust_store(),
            server_hostname=target.name or target.addresses[0],
            limit=LONGEST_LINE,
        )
    except BaseException:
        sock.close()
        raise
    return TlsConnection(reader, writer, access.max_bytes + SLACK)


async def _resolve_server(server: Server, access: MailAccess) -> Target:
    host = f"[{server.host}]" if ":" in server.host else server.host
    try:
        url = httpx2.URL(f"https://{host}:{server.port}/")
        return await resolve_target(url, access.reach)
    except AddressRefusedError as error:
        reason = str(error).rpartition(" is refused: ")[2]
        raise MailError(
            f"The mail server {server.host}:{server.port} is refused: {reason}"
        ) from error
    except (httpx2.InvalidURL, ValueError) as error:
        raise MailError("The mail server has no valid name.") from error


async def _open_socket(target: Target, server: Server, access: MailAccess) -> socket.socket:
    for address in target.addresses:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        sock = socket.socket(family, socket.SOCK_STREAM)
        sock.setblocking(False)
        try:
            with suppress(OSError, TimeoutError):
                async with asyncio.timeout(access.connect_timeout):
                    loop = asyncio.get_running_loop()
                    await loop.sock_connect(sock, (address, server.port))
                    return sock
        except BaseException:
            sock.close()
            raise
        sock.close()
    raise MailError(f"The mail server {server.host}:{server.port} could not be reached.")


@cache
def _trust_store() -> ssl.SSLContext:
    return ssl.create_default_context()
