"""Sending by SMTP: one message over one connection, always under TLS.

The addresses were checked (compose.py), so no line of the dialogue can hold a second command. A
message counts as sent when the server accepts it and not before: when the connection breaks after
its last byte, the outcome is unknown, and the error says so.
"""

from __future__ import annotations

import base64
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress

from tools.framework.clean_text import quote
from tools.mail.accounts import Account, MailAccess
from tools.mail.connection import PlainConnection, TlsConnection, connect_to_server
from tools.mail.errors import LoginError, MailError, MailRefusedError

MOST_LINES = 100
DOT = re.compile(rb"^\.", re.MULTILINE)
NAME = "agentweb.invalid"


class Smtp:
    """A dialogue with one server."""

    def __init__(self, line: TlsConnection) -> None:
        self._line = line
        #: a message was sent in full and the server has not answered yet
        self.is_unknown = False

    async def send_line(self, line: str) -> None:
        await self._line.send(line.encode("ascii") + b"\r\n")

    async def read_reply(self) -> tuple[int, list[str]]:
        """Read one reply of one or more lines."""
        lines: list[str] = []
        for _ in range(MOST_LINES):
            code, is_last, text = _parse_reply(await self._line.line())
            lines.append(text)
            if is_last:
                return code, lines
        raise MailError("The mail server's answer does not end.")

    async def expect(self, *codes: int) -> list[str]:
        code, lines = await self.read_reply()
        _check_code(code, lines, *codes)
        return lines

    async def log_in(self, account: Account) -> None:
        await self.send_line(f"EHLO {NAME}")
        offered = {word.upper() for line in await self.expect(250) for word in line.split()}
        if account.auth == "token":
            how = "XOAUTH2"
            credentials = f"user={account.login}\1auth=Bearer {account.secret}\1\1"
        else:
            how, credentials = "PLAIN", f"\0{account.login}\0{account.secret}"
        if how not in offered:
            raise LoginError(f"The server for sending does not offer to log in with {how}.")
        await self.send_line(f"AUTH {how} {base64.b64encode(credentials.encode()).decode('ascii')}")
        code, _ = await self.read_reply()
        if code == 334:
            # Details of a refused token: the server waits for an empty line in reply.
            await self.send_line("")
            code, _ = await self.read_reply()
        if code != 235:
            raise LoginError("The server for sending refused the user name or the password.")

    async def send_message(self, sender: str, recipients: Sequence[str], message: bytes) -> None:
        await self.send_line(f"MAIL FROM:<{sender}>")
        await self.expect(250)
        for recipient in recipients:
            await self.send_line(f"RCPT TO:<{recipient}>")
            await self.expect(250, 251)
        await self.send_line("DATA")
        await self.expect(354)
        self.is_unknown = True
        await self._line.send(DOT.sub(b"..", message) + b".\r\n")
        code, lines = await self.read_reply()
        self.is_unknown = False
        _check_code(code, lines, 250)

    async def quit(self) -> None:
        """Send QUIT; ignore a connection that the server has already closed."""
        with suppress(OSError):
            await self.send_line("QUIT")


async def submit_message(
    account: Account, access: MailAccess, recipients: Sequence[str], message: bytes
) -> None:
    """Send a message to all of its recipients or to none; `message` must end with a line break."""
    smtp: Smtp | None = None
    try:
        async with _connect_smtp(account, access) as smtp:
            await smtp.send_message(account.address, recipients, message)
    except MailError as error:
        if smtp is None or not smtp.is_unknown:
            raise
        raise MailError(
            "The server broke off after it was given the mail: it may have been sent. Check before"
            " repeating."
        ) from error


async def check_log_in(account: Account, access: MailAccess) -> None:
    """Log in and quit; raises MailError if that fails."""
    async with _connect_smtp(account, access):
        pass


@asynccontextmanager
async def _connect_smtp(account: Account, access: MailAccess) -> AsyncIterator[Smtp]:
    if account.smtp is None:
        raise MailError(f"The account {account.name} has no server for sending mail.")
    async with connect_to_server(account.smtp, access, _request_tls) as line:
        smtp = Smtp(line)
        if account.smtp.security == "tls":
            await smtp.expect(220)
        await smtp.log_in(account)
        yield smtp
        await smtp.quit()


async def _request_tls(plain: PlainConnection) -> None:
    await _expect_plain(plain, 220)
    await plain.send(f"EHLO {NAME}".encode("ascii"))
    await _expect_plain(plain, 250)
    await plain.send(b"STARTTLS")
    await _expect_plain(plain, 220)


async def _expect_plain(plain: PlainConnection, wanted: int) -> None:
    is_last = False
    while not is_last:
        code, is_last, _ = _parse_reply(await plain.line())
        if code != wanted:
            raise MailError("The mail server offers no encryption on this port; nothing was sent.")


def _check_code(code: int, lines: Sequence[str], *codes: int) -> None:
    if code not in codes:
        raise MailRefusedError(f"The mail server refused: {code} {quote(' '.join(lines), 200)}")


def _parse_reply(line: bytes) -> tuple[int, bool, str]:
    text = line.decode("utf-8", errors="replace")
    if not re.match(r"[2-5]\d\d(?:[ -]|$)", text):
        raise MailError("The server did not answer as a mail server does.")
    return int(text[:3]), text[3:4] != "-", text[4:]
