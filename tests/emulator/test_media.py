"""Section 5: images and PDFs are checked by their bytes; the scripted model says what it sees."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from agentweb.emulator import media
from tests.emulator.samples import RESULT, TEXT, USE, assistant, user
from tests.support import small_files

PNG, PDF = "image/png", "application/pdf"


def block(data: bytes | str, media_type: str = PNG, **more: Any) -> dict[str, Any]:
    text = data if isinstance(data, str) else base64.b64encode(data).decode()
    kind = "document" if media_type == PDF else "image"
    return {
        "type": kind,
        "source": {"type": "base64", "media_type": media_type, "data": text},
    } | more


def said(answer: Any) -> str:
    return "".join(part["text"] for part in answer.json["content"] if part["type"] == "text")


@pytest.mark.parametrize(
    ("data", "media_type", "told"),
    [
        (small_files.png(640, 480), PNG, "a PNG image, 640 × 480 pixels"),
        (small_files.jpeg(320, 200), "image/jpeg", "a JPEG image, 320 × 200 pixels"),
        (small_files.gif(3, 7), "image/gif", "a GIF image, 3 × 7 pixels"),
        (small_files.webp(b"VP8 ", 30, 20), "image/webp", "a WebP image, 30 × 20 pixels"),
        (small_files.webp(b"VP8L", 31, 21), "image/webp", "31 × 21 pixels"),
        (small_files.webp(b"VP8X", 32, 22), "image/webp", "32 × 22 pixels"),
        (small_files.pdf(3), PDF, "a PDF with 3 pages"),
        (small_files.pdf(1, packed=True), PDF, "a PDF with 1 page,"),
    ],
)
def test_what_is_shown_is_seen(
    ask: Any, body: Any, data: bytes, media_type: str, told: str
) -> None:
    answer = ask(body(messages=[user(block(data, media_type))], stream=False))
    assert answer.status == 200, answer.body
    assert told in said(answer)
    assert answer.json["usage"]["input_tokens"] > 0


def test_words_and_names_of_files_are_seen_too(ask: Any, body: Any) -> None:
    text = {"type": "text", "media_type": "text/plain", "data": "Tea is old. " * 50}
    blocks = [
        block(small_files.pdf(), PDF, title="a.pdf"),
        {"type": "document", "source": text},
        TEXT,
    ]
    answer = said(ask(body(messages=[user(*blocks)], stream=False)))
    assert "I see 2 files" in answer
    assert "named “a.pdf”" in answer
    assert "150 words, beginning “Tea is old." in answer
    assert TEXT["text"] in answer


WHERE = "messages.0.content.0"
DATA = f"{WHERE}.image.source.base64.data"
BIG = "A" * (5 * 1024 * 1024 + 4)


@pytest.mark.parametrize(
    ("sent", "text"),
    [
        (block("no base64!"), f"{DATA}: invalid base64 data"),
        (block("AAA"), f"{DATA}: invalid base64 data"),
        (
            block(BIG),
            (
                f"{WHERE}.image.source.base64: image exceeds 5 MB maximum:"
                " 5242884 bytes > 5242880 bytes"
            ),
        ),
        (
            block(small_files.jpeg()),
            (
                f"{DATA}: The image was specified using the image/png media type, but the image"
                " appears to be a image/jpeg image"
            ),
        ),
        (block(b"<svg onload=alert(1)>"), "Could not process image"),
        (block(small_files.png()[:12]), "Could not process image"),
        (block(small_files.gif(0, 5), "image/gif"), "Could not process image"),
        (block(b"RIFF0000WEBPxxxx" + b"0" * 30, "image/webp"), "Could not process image"),
        (
            block(small_files.webp(b"VP8X", 8_001, 1), "image/webp"),
            f"{DATA}: At least one of the image dimensions exceed max allowed size: 8000 pixels",
        ),
        (block("?", PDF), f"{WHERE}.document.source.base64.data: invalid base64 data"),
        (
            block(b"<html>", PDF),
            f"{WHERE}.document.source.base64.data: The PDF specified was not valid.",
        ),
        (
            block(small_files.locked_pdf(), PDF),
            f"{WHERE}.document.source.base64.data: The PDF specified is password protected.",
        ),
        (block(small_files.pdf(601), PDF), "A maximum of 600 PDF pages may be provided."),
    ],
)
def test_what_is_no_image_and_no_pdf_is_refused(
    ask: Any, body: Any, sent: dict[str, Any], text: str
) -> None:
    answer = ask(body(messages=[user(sent)]))
    assert (answer.status, answer.message) == (400, text)


def test_an_image_in_a_result_is_judged_where_it_stands(ask: Any, body: Any) -> None:
    result = RESULT | {"content": [TEXT, block(b"BM")]}
    answer = ask(body(messages=[user(TEXT), assistant(USE), user(result)]))
    assert answer.message == "Could not process image"
    result["content"][1] = block(small_files.png())
    assert ask(body(messages=[user(TEXT), assistant(USE), user(result)])).status == 200


def test_many_images_must_be_smaller(ask: Any, body: Any) -> None:
    large, small = block(small_files.png(2_001, 1)), block(small_files.png(2, 2))
    assert ask(body(messages=[user(large, *[small] * 19)])).status == 200
    answer = ask(body(messages=[user(*[small] * 20, large)]))
    assert answer.message == (
        "messages.0.content.20.image.source.base64.data: At least one of the image dimensions"
        " exceed max allowed size for many-image requests: 2000 pixels"
    )


@pytest.mark.parametrize(("model", "most"), [("claude-haiku-4-5", 100), ("claude-opus-5-5", 600)])
def test_a_smaller_window_takes_fewer(ask: Any, body: Any, model: str, most: int) -> None:
    dot = block(small_files.png(1, 1))
    answer = ask(body(model=model, messages=[user(*[dot] * (most + 1))]))
    assert answer.message == f"messages: too many images: {most + 1} > {most} maximum"
    answer = ask(body(model=model, messages=[user(block(small_files.pdf(most + 1), PDF))]))
    assert answer.message == f"A maximum of {most} PDF pages may be provided."


def test_a_broken_packed_object_hides_no_other() -> None:
    whole = small_files.pdf(2, packed=True)
    broken = whole.replace(b"stream\n", b"stream\nxx", 1)
    assert media.pdf_pages(broken + whole) == 2
