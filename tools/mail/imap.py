"""An IMAP client with the commands that reading mail needs.

Used instead of imaplib, which takes literals of any size, keeps every line a server sends and can
announce only one literal in a command. Here a command is a list of words encoded by
imap_strings.py, exactly one tagged line is sent for each, and the answer is counted while it is
read. Folders are opened with EXAMINE and bodies fetched with PEEK, so nothing is ever marked as
read.
"""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tools.framework.clean_text import quote
from tools.mail.accounts import Account, MailAccess
from tools.mail.connection import PlainConnection, TlsConnection, connect_to_server
from tools.mail.errors import LoginError, MailError, MailRefusedError
from tools.mail.imap_strings import Literal, Word, encode_atom, encode_string
from tools.mail.replies import Atom, Value, decode_value, literal_length, parse_values

#: Most untagged answers to one command.
MOST_ANSWERS = 20_000
#: Most literals in one answer.
MOST_LITERALS = 50
Answer = list[Value]


class Imap:
    """A session with one server."""

    def __init__(self, line: TlsConnection) -> None:
        self._line, self._count = line, 0
        self.capabilities: frozenset[str] = frozenset()

    async def command(self, *words: Word) -> list[Answer]:
        """Send one command and return its untagged answers; raises MailRefusedError."""
        self._count += 1
        tag = b"A%d" % self._count
        answers: list[Answer] = []
        piece = tag
        for word in words:
            if isinstance(word, Literal):
                await self._line.send(piece + b" {%d}\r\n" % len(word.data))
                await self._wait_for_continuation(tag, answers)
                piece = word.data
            else:
                piece += b" " + word
        await self._line.send(piece + b"\r\n")
        await self._read_until(tag, answers)
        return answers

    async def log_in(self, account: Account) -> None:
        """Log in by password or by token; the server's answer is never quoted."""
        await self._read_capabilities()
        try:
            if account.auth == "token":
                credentials = f"user={account.login}\1auth=Bearer {account.secret}\1\1"
                await self._authenticate("XOAUTH2", credentials)
            elif "AUTH=PLAIN" in self.capabilities:
                await self._authenticate("PLAIN", f"\0{account.login}\0{account.secret}")
            elif "LOGINDISABLED" not in self.capabilities:
                secret = Literal(account.secret.encode())
                await self.command(b"LOGIN", encode_string(account.login, "The user name"), secret)
            else:
                raise LoginError("The mail server offers no way to log in with a password.")
        except MailRefusedError:
            # Raised without the cause: the answer may repeat the command, password included.
            raise LoginError(
                "The mail server refused the user name or the password. Many servers want an app"
                " password, made for this purpose."
            ) from None

    async def _read_capabilities(self) -> None:
        for answer in await self.command(b"CAPABILITY"):
            if answer[:1] == [Atom(b"CAPABILITY")]:
                self.capabilities = frozenset(decode_value(each).upper() for each in answer[1:])

    async def _authenticate(self, how: str, credentials: str) -> None:
        self._count += 1
        tag = b"A%d" % self._count
        await self._line.send(tag + b" AUTHENTICATE " + encode_atom(how) + b"\r\n")
        await self._wait_for_continuation(tag, [])
        await self._line.send(base64.b64encode(credentials.encode()) + b"\r\n")
        await self._read_until(tag, [])

    async def _wait_for_continuation(self, tag: bytes, answers: list[Answer]) -> None:
        while (pieces := await self._read_line())[0][:1] != b"+":
            if pieces[0].startswith(tag + b" "):
                self._check_status(pieces[0][len(tag) + 1 :])
                raise MailError("The mail server answered before it was asked.")
            self._add_answer(pieces, answers)

    async def _read_until(self, tag: bytes, answers: list[Answer]) -> None:
        while not (pieces := await self._read_line())[0].startswith(tag + b" "):
            if pieces[0][:1] == b"+":
                # Details of a refused token: the server waits for an empty line in reply.
                await self._line.send(b"\r\n")
                self._add_answer([b"* OK"], answers)
            else:
                self._add_answer(pieces, answers)
        self._check_status(pieces[0][len(tag) + 1 :])

    def _add_answer(self, pieces: list[bytes], answers: list[Answer]) -> None:
        if not pieces[0].startswith(b"* "):
            raise MailError("The mail server's answer cannot be read.")
        if pieces[0][2:5].upper() == b"BYE":
            raise MailError("The mail server ended the connection.")
        if len(answers) >= MOST_ANSWERS:
            raise MailError("The mail server's answer does not end.")
        # The text of a status line is free-form, so it is not parsed.
        is_status = pieces[0][2:].split(b" ")[0].upper() in (b"OK", b"NO", b"BAD", b"PREAUTH")
        if is_status:
            answers.append([])
        else:
            answers.append(parse_values([pieces[0][2:], *pieces[1:]]))

    def _check_status(self, status: bytes) -> None:
        kind, _, text = status.partition(b" ")
        if kind.upper() == b"OK":
            return
        words = quote(text.decode("utf-8", errors="replace"), 200)
        raise MailRefusedError(f"The mail server refused: {words}")

    async def _read_line(self) -> list[bytes]:
        """Read one logical line: text, literal, text, ..."""
        pieces = [await self._line.line()]
        while pieces[0][:1] == b"*" and (size := literal_length(pieces[-1])) is not None:
            if len(pieces) > 2 * MOST_LITERALS:
                raise MailError("The mail server's answer does not end.")
            pieces += [await self._line.take(size), await self._line.line()]
        return pieces


@asynccontextmanager
async def connect_imap(account: Account, access: MailAccess) -> AsyncIterator[Imap]:
    """Connect and log in for one call."""
    async with connect_to_server(account.imap, access, _request_tls) as line:
        imap = Imap(line)
        if account.imap.security == "tls":
            _check_greeting(await line.line())
        await imap.log_in(account)
        yield imap
        # The answer is not waited for.
        await line.send(b"Z LOGOUT\r\n")


async def _request_tls(plain: PlainConnection) -> None:
    _check_greeting(await plain.line())
    await plain.send(b"S STARTTLS")
    while not (line := await plain.line()).startswith(b"S "):
        if not line.startswith(b"* "):
            raise MailError("The mail server's answer cannot be read.")
    if not line[2:].upper().startswith(b"OK"):
        raise MailError("The mail server offers no encryption on this port; nothing was sent.")


def _check_greeting(line: bytes) -> None:
    # A PREAUTH greeting is refused: that session would be logged in as somebody else.
    if not line.upper().startswith(b"* OK"):
        raise MailError("The server did not greet as a mail server does.")
