"""Files identified by their bytes: what is accepted, how large it may be, what is refused."""

from __future__ import annotations

import base64
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conversations.context.steps.summary_input import render_messages
from conversations.context.tokens import images, media, pdf
from conversations.context.tokens.estimate import IMAGE, PAGE, estimate_block
from conversations.context.tokens.media import Media, MediaError, identify_media
from conversations.context.tokens.media_words import describe_block, read_text
from conversations.context.view import wire
from conversations.context.view.view import Kind, Message
from tests.context.samples import result, text
from tests.support import small_files


def code(data: bytes) -> str:
    with pytest.raises(MediaError) as caught:
        identify_media(data)
    return caught.value.code


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (small_files.png(64, 48), Media("image/png", 64, 48)),
        (small_files.gif(3, 7), Media("image/gif", 3, 7)),
        (small_files.jpeg(320, 200), Media("image/jpeg", 320, 200)),
        (small_files.webp(b"VP8 ", 30, 20), Media("image/webp", 30, 20)),
        (small_files.webp(b"VP8L", 31, 21), Media("image/webp", 31, 21)),
        (small_files.webp(b"VP8X", 4_000, 3_000), Media("image/webp", 4_000, 3_000)),
        (small_files.pdf(3), Media("application/pdf", pages=3)),
        (small_files.pdf(7, packed=True), Media("application/pdf", pages=7)),
        (b"%PDF-1.7 no page is found", Media("application/pdf", pages=1)),
        ("Zeilen\nmit ÄÖ 漢字 🎉\t".encode(), Media("text/plain", text="Zeilen\nmit ÄÖ 漢字 🎉\t")),
        (b"\xef\xbb\xbfwith a mark", Media("text/plain", text="with a mark")),
    ],
)
def test_a_file_is_what_its_bytes_say(data: bytes, found: Media) -> None:
    assert identify_media(data) == found


def test_what_a_camera_writes_before_the_frame_is_passed_over() -> None:
    long = b"\xff\xe1\xff\xff" + b"x" * 65_533
    data = small_files.jpeg(4_032, 3_024, before=long * 3 + b"\xff")
    assert identify_media(data) == Media("image/jpeg", 4_032, 3_024)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "empty"),
        (b" \n\t ", "empty"),
        ("\ufeff\u2003".encode(), "empty"),
        (b"\x89PNG\r\n\x1a\n<html><script>alert(1)</script>", "broken"),
        (b"GIF89a", "broken"),
        (small_files.gif(0, 5), "broken"),
        (b"RIFF\0\0\0\0WEBPVP8 ", "broken"),
        (b"RIFF\0\0\0\0WEBPXXXX" + b"\0" * 30, "broken"),
        (small_files.webp(b"VP8 ").replace(b"\x9d\x01\x2a", b"xxx"), "broken"),
        (small_files.webp(b"VP8L").replace(b"\x2f", b"x"), "broken"),
        (b"\xff\xd8\xff\xda\x00\x02", "broken"),
        (small_files.jpeg(8_001, 10), "pixels"),
        (small_files.webp(b"VP8X", 60_000, 60_000), "pixels"),
        (small_files.png() + b"\0" * media.MOST_IMAGE, "large"),
        (small_files.pdf() + b"\0" * media.MOST_PDF, "large"),
        (b"a" * (media.MOST_TEXT + 1), "large"),
        (small_files.locked_pdf(), "locked"),
        (small_files.pdf(601), "pages"),
        (b"\xff\xfe\x00a", "type"),
        (b"MZ\x90\x00\x03", "type"),
        (b"PK\x03\x04 a zip", "type"),
        (b"a\x00b", "type"),
        (b"a\x1ab", "type"),
    ],
)
def test_anything_else_is_refused_by_a_code(data: bytes, reason: str) -> None:
    assert code(data) == reason


def test_a_text_may_be_markup() -> None:
    assert identify_media(b"<svg onload='alert(1)'/>") == Media(
        media.TEXT, text="<svg onload='alert(1)'/>"
    )


@given(st.binary(max_size=400))
def test_no_bytes_break_the_look(data: bytes) -> None:
    try:
        found = identify_media(data)
    except MediaError as error:
        assert error.code  # noqa: PT017 - either is an answer
    else:
        assert found.media_type in media.TYPES


@given(st.sampled_from(["png", "jpeg", "gif", "webp", "pdf"]), st.binary(max_size=60), st.data())
def test_no_head_breaks_the_look(kind: str, rest: bytes, data: st.DataObject) -> None:
    whole = getattr(small_files, kind)()
    cut = data.draw(st.integers(0, len(whole)))
    head = whole[:cut] + rest
    size = images.read_size(head)
    assert size is None or len(size) == 2
    assert pdf.count_pages(head) >= 1


def test_packed_objects_are_followed_up_to_a_bound_and_no_further(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one = small_files.pdf(2, packed=True)
    assert pdf.count_pages(one + one[8:]) == 4
    assert pdf.count_pages(one + one[:-40]) == 2 + pdf.count_pages(one[:-40])
    broken = one.replace(b"stream\n", b"stream\nxx", 1)
    assert pdf.count_pages(broken + one) == 2
    bomb = zlib.compress(b"/Type /Page " * 100_000)
    head = b"%PDF-1.5 << /Type /ObjStm >> stream\n"
    monkeypatch.setattr(pdf, "MOST_UNPACKED", 1_200)
    assert pdf.count_pages(head + bomb + b" " + head + bomb) == 100


def test_all_packed_objects_together_are_read_no_further_than_the_file_is_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Each is a stream that does not end, and reads the next ones as its own.
    endless = b"/ObjStm>>stream\n" + zlib.compress(b"", 0)[:2] + b"\x00\xff\xff\x00\x00"
    data, pieces, start = b"%PDF-" + endless * 2_000, list[int](), zlib.decompressobj

    class Counting:
        def __init__(self) -> None:
            self._unpack = start()
            self.eof, self.unused_data = False, b""

        def decompress(self, piece: bytes, most: int) -> bytes:
            pieces.append(len(piece))
            return self._unpack.decompress(piece, most)

    monkeypatch.setattr(zlib, "decompressobj", Counting)
    assert pdf.count_pages(data) == 1
    assert len(data) // 2 < sum(pieces) < 2 * len(data)


@pytest.mark.parametrize(
    "data",
    [
        b"%PDF-" + b"/Type" * 200_000,
        b"%PDF-" + b"/Type " + b" " * 1_000_000,
        b"%PDF-" + b"/ObjStm" * 100_000,
        b"%PDF-" + b"/ObjStm " + b">>" * 100_000,
        b"%PDF-" + b"/Encrypt 1 " * 100_000,
        # Where each of these is read to the end of the file, it takes half an hour.
        b"%PDF-" + b"/ObjStm>>stream\n" * 1_300_000,
        b" " * 900_000 + b"x",
    ],
)
def test_a_file_that_was_made_to_be_slow_is_not(data: bytes) -> None:
    try:
        identify_media(data)
    except MediaError:
        assert data.startswith(b"%PDF-")


def parsed(seq: int, kind: Kind, *blocks: object) -> Message:
    return Message.parse(seq, kind, wire.encode(blocks))


def source(data: bytes, media_type: str) -> dict[str, str]:
    return {
        "type": "base64", "media_type": media_type, "data": base64.b64encode(data).decode(),
    }  # fmt: skip


def test_a_file_weighs_by_its_pixels_and_its_pages() -> None:
    picture = {"type": "image", "source": source(small_files.webp(b"VP8X", 750, 100), "image/webp")}
    assert estimate_block(picture) == 4 + 100
    assert estimate_block({"type": "image", "source": source(b"?", "image/webp")}) == 4 + IMAGE
    paper = {
        "type": "document",
        "source": source(small_files.pdf(5, packed=True), "application/pdf"),
    }
    assert estimate_block(paper) == 4 + 5 * PAGE


def test_a_file_is_told_in_words() -> None:
    picture = {"type": "image", "source": source(small_files.png(64, 48), "image/png")}
    assert describe_block(picture) == "[image, PNG 64 × 48]"
    assert describe_block({"type": "image", "source": source(b"?", "image/png")}) == "[image]"
    paper = {
        "type": "document",
        "source": source(small_files.pdf(2), "application/pdf"),
        "title": "a",
    }
    assert describe_block(paper) == '[document, "a", 2 pages]'
    assert describe_block({**paper, "source": source(b"%PDF-", "application/pdf")}).endswith(
        ", 1 page]"
    )
    plain = {"type": "text", "media_type": "text/plain", "data": "words"}
    assert describe_block({"type": "document", "source": plain}) == "[document]"
    assert read_text({"type": "document", "source": plain}) == "words"
    assert read_text(paper) is None
    assert [read_text({"type": "document"}), describe_block({"type": "image"})] == [None, "[image]"]


def test_a_summary_is_told_of_files_what_it_can_be_told() -> None:
    picture = {"type": "image", "source": source(small_files.png(64, 48), "image/png")}
    plain = {"type": "text", "media_type": "text/plain", "data": "First line. " * 400}
    blocks = [picture, {"type": "document", "source": plain, "title": "notes.txt"}, text("Look.")]
    inside = result("t", [picture, text("seen")])
    [said, seen] = render_messages([parsed(1, "prompt", *blocks), parsed(2, "results", inside)])
    assert said.text.startswith(
        '[user]\n[image, PNG 64 × 48 left out]\n[document, "notes.txt"] First'
    )
    assert len(said.text) < 1_000
    assert said.text.endswith("Look.")
    assert "[image, PNG 64 × 48 left out]\nseen" in seen.text
