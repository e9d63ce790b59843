"""References to files: read only where they were written, and expanded to the same bytes."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conversations.context.tokens.media import PDF, TEXT
from conversations.context.view import attachment_refs, edits, wire
from conversations.context.view.attachment_refs import FileReference, ForgedName, MissingFile
from conversations.context.view.edits import SpliceBlocks, SpliceMessages
from conversations.context.view.view import Message, View
from tests.support import small_files

PNG = base64.b64encode(small_files.png(2, 2)).decode()
DIGEST = wire.digest(PNG)
NAME = f"blob:{DIGEST}"
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
WORDS = {"type": "text", "text": "Look."}
TITLES = [
    "a.pdf",
    NAME,
    f'"data":"{NAME}"',
    f'"source":{{"type":"base64","data":"{NAME}"}}',
    "\\",
    "é",
]


def stored(*blocks: Any) -> str:
    return wire.join(block if isinstance(block, str) else wire.encode(block) for block in blocks)


def test_a_name_stands_where_the_request_has_the_data() -> None:
    content = stored(attachment_refs.write_block("image/png", DIGEST, "cat.png"), WORDS)
    assert content == (
        f'[{{"type":"image","source":{{"type":"base64","media_type":"image/png","data":"{NAME}"}}}}'
        ',{"type":"text","text":"Look."}]'
    )
    assert attachment_refs.list_references(content) == (FileReference(DIGEST, "image/png"),)
    assert attachment_refs.find_reference(wire.decode(content)[0]) == FileReference(
        DIGEST, "image/png"
    )
    assert attachment_refs.find_reference(WORDS) is None
    assert attachment_refs.find_reference(IMAGE) is None
    assert attachment_refs.expand_references(content, {DIGEST: PNG}) == stored(IMAGE, WORDS)


@pytest.mark.parametrize("media_type", [PDF, TEXT])
@given(
    title=st.text() | st.sampled_from(TITLES), text=st.text(min_size=1) | st.sampled_from(TITLES)
)
def test_expand_and_collapse_are_inverse(media_type: str, title: str, text: str) -> None:
    title, text = wire.clean(title), wire.clean(text)
    digest = wire.digest(text)
    content = stored(WORDS, attachment_refs.write_block(media_type, digest, title), WORDS)
    whole = attachment_refs.expand_references(content, {digest: text})
    block = wire.decode(whole)[1]
    assert (block["source"]["data"], block["title"]) == (text, title)
    assert attachment_refs.list_references(content) == (FileReference(digest, media_type, title),)
    if not attachment_refs.list_references(
        whole
    ):  # a text that is a name itself is refused where files come in
        assert attachment_refs.collapse_files(whole, {digest}.__contains__) == content
        assert list(attachment_refs.list_sources(whole)) == [(media_type, title, text)]
    assert attachment_refs.collapse_files(whole, set().__contains__) == whole


_LOOKALIKES = [
    NAME, f'"{NAME}"', f'"data":"{NAME}"', f'{{"source":{{"data":"{NAME}"}}}}',
    f'{{"type":"image","source":{{"type":"base64","media_type":"image/png","data":"{NAME}"}}}}',
    f'"source":{{"type":"base64","media_type":"image/png","data":"{NAME}"}}',
]  # fmt: skip
lookalikes = st.text() | st.sampled_from(_LOOKALIKES)
NAMING = json.loads(_LOOKALIKES[4])


@given(st.lists(lookalikes, max_size=4))
def test_what_looks_like_a_name_in_a_text_stays_text(words: list[str]) -> None:
    content = stored(
        *({"type": "text", "text": wire.clean(text)} for text in words),
        {"type": "tool_result", "tool_use_id": "t", "content": wire.clean("".join(words))},
        {"type": "tool_result", "tool_use_id": "u", "content": [NAMING]},
        {"type": "tool_use", "id": "v", "name": "n", "input": NAMING},
    )
    assert attachment_refs.list_references(content) == ()
    assert attachment_refs.expand_references(content, {DIGEST: PNG}) == content
    assert attachment_refs.collapse_files(content, lambda _: True) == content
    attachment_refs.demand_no_references(content)


@pytest.mark.parametrize(
    "block",
    [
        {"type": "image", "source": {"media_type": "image/png", "type": "base64", "data": NAME}},
        {
            "type": "image",
            "source": {"type": "base64", "media_type": "image/png", "data": f"{NAME} "},
        },
        {"type": "image", "source": {"type": "base64", "media_type": "image/bmp", "data": NAME}},
        {"type": "image", "source": {"type": "text", "media_type": "text/plain", "data": NAME}},
        {"type": "image", "source": {"type": "url", "url": NAME}},
        {"type": "image", "source": {"type": 1, "media_type": "image/png", "data": NAME}},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": [NAME]}},
        {"type": "image", "source": NAME},
        {"type": "image", "x": {"source": NAMING["source"]}, "source": IMAGE["source"]},
        {"type": "image", "x": {"source": NAMING["source"]}, "source": NAMING["source"]},
    ],
)  # fmt: skip
def test_a_name_is_one_only_when_it_is_written_exactly_so(block: dict[str, Any]) -> None:
    content = stored(block)
    assert attachment_refs.list_references(content) == ()
    assert attachment_refs.expand_references(content, {DIGEST: PNG}) == content


@pytest.mark.parametrize(
    "block",
    [NAMING, {"type": "document", "x": {"source": NAMING["source"]}, "source": IMAGE["source"]}],
)
def test_a_name_from_outside_is_refused(block: dict[str, Any]) -> None:
    with pytest.raises(ForgedName) as caught:
        attachment_refs.demand_no_references(stored(WORDS, block))
    assert caught.value.code == "forged_name"


def test_a_file_that_is_gone_is_an_error_and_never_sent_as_its_name() -> None:
    content = stored(attachment_refs.write_block("image/png", DIGEST, "cat.png"))
    with pytest.raises(MissingFile) as caught:
        attachment_refs.expand_references(content, {})
    assert (caught.value.code, caught.value.digest) == ("missing_file", DIGEST)


@pytest.mark.parametrize("content", ["[]", "[1]", '["blob:sha256:"]', '[["blob:sha256:"]]'])
def test_content_that_is_odd_is_left_as_it_is(content: str) -> None:
    assert attachment_refs.expand_references(content, {}) == content
    assert attachment_refs.list_references(content) == ()
    attachment_refs.demand_no_references(content)
    assert list(attachment_refs.list_sources(content)) == []


def test_a_block_that_would_not_come_back_to_the_byte_keeps_its_data() -> None:
    spaced = '[{"type": "image", "source":{"type":"base64","media_type":"image/png","data":"AA"}}]'
    assert attachment_refs.collapse_files(spaced, lambda _: True) == spaced
    named = stored(attachment_refs.write_block("image/png", DIGEST, ""))
    assert attachment_refs.collapse_files(named, lambda _: True) == named


def test_edits_name_the_files_of_the_prompts_they_put_back() -> None:
    view = View().append(Message.parse(1, "prompt", stored(IMAGE, WORDS)))
    whole = (
        SpliceBlocks(1, 0, 1, (wire.encode(IMAGE), wire.encode(WORDS))),
        SpliceMessages(1, 3, ((1, "prompt", stored(IMAGE)), (2, "answer", stored(WORDS)))),
    )
    short = attachment_refs.collapse_edits(whole, {DIGEST}.__contains__)
    assert PNG not in edits.dump_edits(short)
    assert attachment_refs.may_hold_reference(edits.dump_edits(short))
    assert (
        attachment_refs.list_references_in_edits(short) == (FileReference(DIGEST, "image/png"),) * 2
    )
    assert attachment_refs.expand_edits(short, {DIGEST: PNG}) == whole
    assert attachment_refs.list_references_in_edits(whole) == ()
    assert edits.apply(view, "restore", whole[:1]) == edits.apply(
        view, "restore", attachment_refs.expand_edits(short[:1], {DIGEST: PNG})
    )
