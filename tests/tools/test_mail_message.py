"""Broken, huge, nested and hidden mail is read within bounds, with notes on what is wrong."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.mail.message import MOST_CHARACTERS, Mail, extract_attachment, parse_message
from tools.mail.mime import MOST_PARTS
from tools.mail.naming import attachment_path
from tools.workspace.paths import split_path

HEAD = b"From: Bea <bea@example.com>\r\nSubject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\r\n"


def reading(data: bytes, size: int | None = None) -> Mail:
    return parse_message(HEAD + data, len(HEAD + data) if size is None else size)


def mixed(*parts: bytes, kind: bytes = b"mixed") -> bytes:
    inner = b"".join(b"--b\r\n" + part + b"\r\n" for part in parts)
    return b'Content-Type: multipart/%s; boundary="b"\r\n\r\npreamble\r\n%s--b--\r\nend' % (
        kind,
        inner,
    )


PLAIN = b"Content-Type: text/plain\r\n\r\nplain text"
HTML = b"Content-Type: text/html\r\n\r\n<p>text of <b>HTML</b></p>"


def test_a_plain_mail_keeps_its_quoted_replies() -> None:
    mail = reading(b"\r\nYes.\r\n\r\n\r\n\r\n> Shall we?\r\n>> Again?\r\n")
    assert mail.text == "Yes.\n\n> Shall we?\n>> Again?"
    assert mail.fields["Subject"] == "Grüße"
    assert mail.fields["From"] == "Bea <bea@example.com>"
    assert mail.notes == ()


def test_of_alternatives_the_plain_text_is_read() -> None:
    assert reading(mixed(PLAIN, HTML, kind=b"alternative")).text == "plain text"
    assert reading(mixed(HTML, PLAIN, kind=b"alternative")).text == "plain text"
    assert reading(mixed(PLAIN, HTML)).text == "plain text\n\ntext of HTML"


def test_a_plain_text_that_only_stands_in_for_the_html_is_not_read() -> None:
    long = b"Content-Type: text/html\r\n\r\n" + b"<p>All the words that there are.</p>" * 50
    mail = reading(
        mixed(b"Content-Type: text/plain\r\n\r\nView in browser", long, kind=b"alternative")
    )
    assert mail.text.startswith("All the words")
    assert "View in browser" not in mail.text


def test_html_alone_is_read_as_text_and_nothing_of_it_is_loaded() -> None:
    mail = reading(
        b"Content-Type: text/html\r\n\r\n<h1>Hi</h1><script>alert(1)</script>"
        b'<img src="http://evil.example/x.png" alt="logo"><a href="https://example.org/a">here</a>'
    )
    assert "# Hi" in mail.text
    assert "(image: logo)" in mail.text
    assert "[here](https://example.org/a)" in mail.text
    assert "evil.example" not in mail.text
    assert "alert" not in mail.text


@pytest.mark.parametrize(
    ("markup", "is_kept", "words"),
    [
        (b'<p style="color:#fff">secret</p>', True, "styled so that a person does not see"),
        (b'<p style="color: white">secret</p>', True, "styled so that a person does not see"),
        (b'<span style="font-size:0px">secret</span>', True, "styled so that"),
        (b'<div style="opacity:0">secret</div>', True, "styled so that"),
        (b'<div style="display:none">secret</div>', False, "styled so that"),
        (b"<!-- secret -->", False, "Comments"),
        ("s\u200be\u2060c\u202er\u00adet".encode(), True, "4 invisible characters were taken out"),
        ("".join(chr(0xE0000 + ord(c)) for c in "secret").encode(), False, "6 invisible"),
    ],
)
def test_what_a_person_would_not_see_is_said(markup: bytes, is_kept: bool, words: str) -> None:
    mail = reading(b"Content-Type: text/html; charset=utf-8\r\n\r\n<p>Hello</p>" + markup)
    assert ("secret" in mail.text) == is_kept
    assert any(words in note for note in mail.notes)


@pytest.mark.parametrize(
    "markup",
    [
        b'<p style="color:#333">x</p>',
        b'<p style="font-size:10px">x</p>',
        b'<p style="background-color:white;font-size:0.9em;opacity:0.8">x</p>',
    ],
)
def test_ordinary_styles_are_not_suspected(markup: bytes) -> None:
    assert reading(b"Content-Type: text/html\r\n\r\n" + markup).notes == ()


def test_a_mail_larger_than_what_was_read_says_so() -> None:
    mail = reading(b"\r\n" + b"x" * 5_000_000, size=50_000_000)
    assert len(mail.text) <= MOST_CHARACTERS
    assert any("of its 50,000,000 bytes were read" in note for note in mail.notes)
    assert any("was cut at" in note for note in mail.notes)


def test_ten_thousand_parts_are_counted_and_the_rest_is_left_out() -> None:
    mail = reading(mixed(*(b"\r\npart %d" % n for n in range(10_000))))
    assert mail.text.startswith("part 0\n\npart 1\n")
    assert f"part {MOST_PARTS - 1}" in mail.text
    assert any("too many parts" in note for note in mail.notes)


def test_a_thousand_levels_are_left_closed() -> None:
    deep = b"".join(
        b'Content-Type: multipart/mixed; boundary="b%d"\r\n\r\n--b%d\r\n' % (n, n)
        for n in range(1_000)
    )
    mail = reading(deep + b"\r\ntext")
    assert any("nested deeper" in note for note in mail.notes)


def test_a_thousand_messages_within_messages_are_counted() -> None:
    mail = reading(b"Content-Type: message/rfc822\r\n\r\n" * 10_000)
    assert any("too many parts" in note for note in mail.notes)


def test_an_enclosed_message_is_shown_with_its_sender() -> None:
    head = b"From: cy@example.net\r\nSubject: Inner\r\n\r\n"
    inner = b"Content-Type: message/rfc822\r\n\r\n" + head + b"deep words"
    text = reading(mixed(PLAIN, inner)).text
    assert "enclosed message ----------\nFrom: cy@example.net\nSubject: Inner\n\ndeep words" in text


def test_many_containers_and_dashes_cost_no_more_than_their_bytes() -> None:
    container = b'--b\r\nContent-Type: multipart/alternative; boundary="y"\r\n\r\n' * 50_000
    mail = reading(b'Content-Type: multipart/mixed; boundary="b"\r\n\r\n' + container)
    assert any("too many parts" in note for note in mail.notes)
    reading(b'Content-Type: multipart/mixed; boundary="b"\r\n\r\n' + b"--y\r\n" * 200_000)


def test_parts_without_a_boundary_are_one_text() -> None:
    mail = reading(b"Content-Type: multipart/mixed\r\n\r\n--x\r\n\r\nhello")
    assert "hello" in mail.text
    assert any("not where they end" in note for note in mail.notes)


def test_a_missing_last_boundary_loses_nothing() -> None:
    whole = mixed(PLAIN, b"Content-Type: text/plain\r\n\r\nlast words")
    assert reading(whole.partition(b"--b--")[0]).text.endswith("last words")


@pytest.mark.parametrize(
    ("charset", "data", "text"),
    [
        (b"iso-8859-1", b"Gr\xfc\xdfe", "Grüße"),
        (b"utf-8", "Grüße".encode(), "Grüße"),
        (b"no-such-charset", "Grüße".encode(), "Grüße"),
        (b"unicode_escape", b"\\u0041", "\\u0041"),
        (b"utf-8", b"Gr\xfc\xdfe", "Gr\ufffd\ufffde"),
    ],
)
def test_a_wrong_charset_is_read_as_far_as_it_can_be(
    charset: bytes, data: bytes, text: str
) -> None:
    mail = reading(b"Content-Type: text/plain; charset=" + charset + b"\r\n\r\n" + data)
    assert mail.text == text
    assert bool(mail.notes) == ("\ufffd" in text)


@pytest.mark.parametrize("charset", [b"idna", b"punycode", b"undefined", b"utf-8%00"])
def test_a_name_or_boundary_in_no_charset_is_no_obstacle(charset: bytes) -> None:
    kind = b"Content-Type: application/pdf; name*=" + charset + b"'en'%FFx\r\n\r\n%PDF"
    message = HEAD + mixed(PLAIN, kind)
    (attachment,) = reading(mixed(PLAIN, kind)).attachments
    # Newer Pythons can read some, and find nothing in them.
    assert attachment.name in ("unreadable name", "(no name)")
    assert (attachment.size, extract_attachment(message, 1)) == (4, b"%PDF")
    whole = b"Content-Type: multipart/mixed; boundary*=" + charset + b"'en'%FFx\r\n\r\nwords"
    assert reading(whole).text == "words"


@pytest.mark.parametrize(
    "header",
    [
        b"Subject: " + b"x" * 1_000_000,
        b"X: y\r\n" * 200_000,
        b"Subject: " + b"=?utf-8?q?x?=\r\n " * 60_000 + b"x",
        b"Content-Type: text/plain" + b";" * 900_000,
        b'Content-Type: text/plain; x="' + b"\\" * 900_000 + b'"',
    ],
)
def test_a_header_of_a_megabyte_is_cut(header: bytes) -> None:
    mail = parse_message(header + b"\r\n\r\nbody", len(header) + 8)
    assert mail.text == "body"
    assert all(len(value) <= 2_000 for value in mail.fields.values())
    assert "Its header is too long and was cut." in mail.notes


@pytest.mark.parametrize(
    ("encoding", "data", "content"),
    [
        (b"base64", base64.encodebytes(b"PK\3\4" * 50), b"PK\3\4" * 50),
        (b"base64", b"UEsDB\r\nA=\r\n=garbage", b"PK\3\4"),
        (b"BASE64", b"UEsDBA", b"PK\3\4"),
        (b"quoted-printable", b"PK=03=0", b"PK\3=0"),
        (b"x-unknown", b"PK", b"PK"),
    ],
)
def test_an_attachment_is_decoded_as_far_as_it_can_be(
    encoding: bytes, data: bytes, content: bytes
) -> None:
    part = (
        b'Content-Type: application/zip; name="a.zip"\r\nContent-Transfer-Encoding: '
        + encoding + b"\r\n\r\n" + data
    )  # fmt: skip
    (attachment,) = reading(mixed(part)).attachments
    assert (attachment.number, attachment.name) == (1, "a.zip")
    assert attachment.size == len(content)
    assert extract_attachment(HEAD + mixed(part), 1) == content


def test_attachments_are_not_the_text_and_are_numbered() -> None:
    text = b"Content-Disposition: attachment; filename*=utf-8''Gr%C3%BC%C3%9Fe.txt\r\n\r\ninside"
    image = b"Content-Type: image/png\r\n\r\nx"
    mail = reading(mixed(PLAIN, text, image))
    assert mail.text == "plain text"
    assert [(each.number, each.name) for each in mail.attachments] == [
        (1, "Grüße.txt"), (2, "(no name)"),
    ]  # fmt: skip


@given(st.binary(max_size=600))
def test_any_bytes_are_read(data: bytes) -> None:
    parse_message(data, len(data))
    parse_message(HEAD + mixed(data, data), len(data))


@given(st.text(max_size=300))
def test_any_name_of_an_attachment_is_a_place_in_the_workspace(name: str) -> None:
    part = b"Content-Type: application/x; name*=utf-8''" + base64.b16encode(
        name.encode("utf-8", "replace")
    )
    (attachment,) = reading(mixed(part + b"\r\n\r\nx")).attachments
    for each in (attachment, type(attachment)(3, name, "a/b", b"")):
        path = attachment_path(9, each)
        assert path.startswith("mail/9/")
        assert len(split_path(path)) == 3
