"""Whatever a text holds, the server receives exactly the commands of the call."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.fake_mail import FakeImap
from tests.support.mail_servers import make_authority
from tests.tools.mailboxes import Mailboxes
from tools.framework.errors import InputError
from tools.framework.execute import execute_tool
from tools.framework.registry import TOOLS
from tools.framework.tool import ToolContext
from tools.mail.accounts import Account, MailAccess, Server
from tools.mail.imap_strings import (
    Literal,
    decode_utf7,
    encode_atom,
    encode_date,
    encode_folder,
    encode_string,
    encode_utf7,
)
from tools.mail.replies import Atom, literal_length, parse_values

#: Each alone would end a command, begin one or change its meaning, if it came through.
BREAKING = [
    "x\r\nA1 DELETE INBOX",
    "x\nA1 LOGOUT",
    "x\rA1 LOGOUT",
    "x\0y",
    "x\x85y",
    "x\u2028A1 DELETE INBOX",
    "x\x7f",
]
ODD = [
    'x" DELETE "INBOX',
    "{100}",
    "{100+}",
    'x" {5}',
    "*",
    "%",
    "\\",
    '\\"',
    "&AGE-",
    "&",
    "(ALL)",
    "NOT ALL",
    "1:* DELETED",
    "Grüße",
    "日本語 {3}",
    "\u200b",
]


@pytest_asyncio.fixture
async def fake(tmp_path: Path) -> AsyncIterator[FakeImap]:
    authority = make_authority(tmp_path, "127.0.0.1")
    made = FakeImap(authority.serving())
    made.replies = {"EXAMINE": b"* 3 EXISTS\r\n", "UID SEARCH": b"* SEARCH\r\n"}
    made.trusted = authority.trusted()  # type: ignore[attr-defined]
    await made.start()
    yield made
    assert made.server is not None
    made.server.close()


@pytest.fixture
def own(context: ToolContext, fake: FakeImap) -> ToolContext:
    server = Server("127.0.0.1", fake.port)
    access = MailAccess(frozenset({f"127.0.0.1:{fake.port}"}), tls=fake.trusted)  # type: ignore[attr-defined]
    account = Account("work", "ada@example.org", "ada", server, secret="x")
    return replace(context, mail=Mailboxes(access, [account]))


async def run_tool(own: ToolContext, fake: FakeImap, **arguments: Any) -> tuple[str, list[bytes]]:
    fake.commands.clear()
    result = await execute_tool(TOOLS["search_mail"], arguments, own)
    return str(result.details.get("code", "")), fake.asked


@pytest.mark.asyncio
@pytest.mark.parametrize("text", BREAKING)
@pytest.mark.parametrize("name", ["folder", "sender", "recipient", "subject", "text", "since"])
async def test_text_that_could_begin_a_command_is_refused_before_any_is_sent(
    own: ToolContext, fake: FakeImap, name: str, text: str
) -> None:
    code, commands = await run_tool(own, fake, **{name: text})
    if "\0" in text and name != "since":
        # The frame has replaced what no store takes, and what is left is a harmless text.
        assert len(commands) <= 2
        assert not any(b"\0" in each for each in commands)
    else:
        assert code == "bad_input"
        assert commands == []


@pytest.mark.asyncio
@pytest.mark.parametrize("text", ODD)
@pytest.mark.parametrize("name", ["folder", "sender", "recipient", "subject", "text"])
async def test_odd_text_is_one_argument_of_the_one_command(
    own: ToolContext, fake: FakeImap, name: str, text: str
) -> None:
    code, commands = await run_tool(own, fake, **{name: text})
    assert code == ""
    assert len(commands) == 2
    assert commands[0].startswith(b"EXAMINE ")
    assert commands[1].startswith(b"UID SEARCH ")
    word = encode_utf7(text) if name == "folder" else text
    quoted = '"' + word.replace("\\", "\\\\").replace('"', '\\"') + '"'
    counted = f"{{{len(word.encode())}}}\r\n{word}"
    expected = quoted if word.isascii() else counted
    assert commands[0 if name == "folder" else 1].endswith(b" " + expected.encode())


@pytest.mark.asyncio
async def test_several_foreign_words_are_counted_one_by_one(
    own: ToolContext, fake: FakeImap
) -> None:
    code, commands = await run_tool(own, fake, sender="Jürgen", subject="Größe", unread=True)
    assert code == ""
    assert commands[1] == (
        "UID SEARCH CHARSET UTF-8 1:* FROM {7}\r\nJürgen SUBJECT {7}\r\nGröße UNSEEN".encode()
    )


@pytest.mark.asyncio
async def test_a_uid_is_a_number_and_a_folder_is_opened_for_reading_only(
    own: ToolContext, fake: FakeImap
) -> None:
    await execute_tool(TOOLS["read_mail"], {"uid": 7}, own)
    assert fake.asked == [
        b'EXAMINE "INBOX"',
        b"UID FETCH 7 (UID RFC822.SIZE BODY.PEEK[]<0.25000000>)",
    ]
    fake.commands.clear()
    for uid in ("7:*", "1 DELETE", 2**40, -1, 1.5):
        result = await execute_tool(TOOLS["read_mail"], {"uid": uid}, own)
        assert result.details["code"] == "bad_input"
    assert not [each for each in fake.asked if b"FETCH" in each]


@pytest.mark.asyncio
async def test_answers_to_other_questions_are_not_taken_for_the_mail(
    own: ToolContext, fake: FakeImap
) -> None:
    other = (
        b"* 1 FETCH (UID 8 RFC822.SIZE 5 BODY[]<0> {5}\r\nwrong)\r\n* 9 EXISTS\r\n* FLAGS (X)\r\n"
    )
    fake.replies["UID FETCH"] = other
    result = await execute_tool(TOOLS["read_mail"], {"uid": 7}, own)
    assert result.details["code"] == "mail_missing"


@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.text(max_size=40))
def test_a_string_is_refused_or_holds_no_end_of_a_line(text: str) -> None:
    for made in (lambda: encode_string(text, "It"), lambda: encode_folder(text)):
        try:
            word = made()
        except InputError:
            continue
        if isinstance(word, Literal):
            assert not set(b"\r\n\0") & set(word.data)
        else:
            inner = word[1:-1].replace(b"\\\\", b"").replace(b'\\"', b"")
            assert word[:1] == word[-1:] == b'"'
            assert b'"' not in inner
            assert b"\\" not in inner
            assert all(32 <= each < 127 for each in word)


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=40))
def test_the_name_of_a_folder_comes_back(name: str) -> None:
    assert decode_utf7(encode_utf7(name)) == name
    assert encode_utf7(name).isascii()


@given(st.text(max_size=60))
def test_any_name_that_a_server_gives_is_read_without_an_error(name: str) -> None:
    assert isinstance(decode_utf7(name), str)


def test_an_atom_is_ours_alone_and_a_day_is_a_day() -> None:
    for wrong in ("a b", "a\r\n", "", 'a"', "a{3}"):
        with pytest.raises(ValueError, match="not an atom"):
            encode_atom(wrong)
    assert encode_date("2026-02-01", "since") == b"01-Feb-2026"
    for text in ("yesterday", "2026-02-30", "2026-02-01\r\nx", ""):
        with pytest.raises(InputError):
            encode_date(text, "since")


def test_an_answer_is_read_with_its_literals_in_place() -> None:
    line = b"1 FETCH (UID 5 FLAGS (\\Seen) BODY[HEADER.FIELDS (FROM TO)]<0> {3}"
    assert literal_length(line) == 3
    read = parse_values([line, b'a"(', b' X "q\\"\\\\" NIL)'])
    assert read == [
        Atom(b"1"),
        Atom(b"FETCH"),
        [
            Atom(b"UID"), Atom(b"5"), Atom(b"FLAGS"), [Atom(b"\\Seen")],
            Atom(b"BODY[HEADER.FIELDS (FROM TO)]<0>"), b'a"(', Atom(b"X"), b'q"\\', Atom(b"NIL"),
        ],
    ]  # fmt: skip
