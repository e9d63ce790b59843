"""What is left of damaged rows can be read, and what cannot is passed over."""

from __future__ import annotations

import pytest

from conversations.context.policy.policy import build_policy
from conversations.context.steps.api_compaction import find_trigger
from conversations.context.steps.repair_blocks import strip_marks
from conversations.context.steps.repair_pairs import is_served
from conversations.context.view import attachment_refs, wire
from conversations.context.view.blocks import find_flaw, list_result_images, read_result_text
from conversations.context.view.stored_blocks import read_blocks, read_content
from conversations.context.view.view import Block, Message
from tests.context.samples import IMAGE, PNG, THOUGHT, prompt, result, situation, text, use, view_of
from tests.context.test_summary import gauge_of


@pytest.mark.parametrize(
    ("content", "kept"),
    [
        ("[[", 0),
        ('{"type":"text"}', 0),
        (wire.encode([text("a"), {"type": "text"}, "b", {"kind": 1}, IMAGE]), 2),
        (wire.encode([use("t"), {"type": "tool_use", "id": "t"}]), 1),
        (wire.encode([result("t", [text("a"), IMAGE]), result("u", [3]), result("v", 7)]), 1),
        (wire.encode([{"type": "new", "anything": 1}]), 1),
        (wire.encode([{"type": "web_search_tool_result", "content": []}]), 0),
        (wire.encode([{"type": "web_search_tool_result", "tool_use_id": "t", "content": []}]), 1),
    ],
)
def test_of_a_stored_message_all_that_is_sound_is_read(content: str, kept: int) -> None:
    assert len(read_blocks(content)) == kept


def test_a_message_that_cannot_be_read_has_no_thinking() -> None:
    assert not Message(1, "answer", '[{"type":"thinking"', 1).has_thinking
    assert Message.parse(1, "answer", wire.encode([THOUGHT])).has_thinking


def test_images_of_a_result_are_shown_and_other_parts_are_not() -> None:
    [address] = list_result_images([IMAGE, text("a")])
    assert address.startswith("data:image/png;base64,")
    assert list_result_images("words") == []


def test_breakpoints_are_stripped_from_a_block_and_from_what_is_in_it() -> None:
    mark = {"cache_control": {"type": "ephemeral"}}
    block = Block(wire.encode(result("t", [text("a") | mark, "odd"]) | mark))
    assert "cache_control" not in strip_marks(block).text
    said = Block(wire.encode(text("says cache_control")))
    assert strip_marks(said) is said
    plain = Block(wire.encode(text("a")))
    assert strip_marks(plain) is plain


def test_only_blocks_of_the_apis_own_tools_are_served() -> None:
    served = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
    assert is_served(Block(wire.encode(served)))
    assert not is_served(Block(wire.encode(use("t"))))


def test_without_summaries_the_api_is_not_asked_to_compact() -> None:
    view = view_of(prompt("a"))
    policy = build_policy("native", {"compaction_enabled": False})
    assert find_trigger(gauge_of(view, 900_000), policy) is None
    assert situation(view, 9).window


def test_references_whose_files_are_lost_stay() -> None:
    content = wire.encode([text("a")])
    assert attachment_refs.expand_known(content, {}) == content


def test_a_reference_to_a_file_that_is_not_stored_breaks_a_rule_and_others_are_expanded() -> None:
    kept, gone = wire.digest(PNG), wire.digest("gone")
    blocks = [attachment_refs.write_block("image/png", one, "") for one in (kept, gone)]
    found = attachment_refs.expand_known(wire.join([*blocks, '{"type":"hologram"}']), {kept: PNG})
    first, second, _ = wire.decode(found)
    assert first["source"]["data"] == PNG
    assert find_flaw("user", [first]) is None
    assert find_flaw("user", [first, second]) == (
        "source", "content.1", "the file of this image is not stored any more"
    )  # fmt: skip
    assert attachment_refs.expand_known("[]", {}) == "[]"


def test_a_result_is_read_as_text_with_the_names_of_what_is_none() -> None:
    assert read_result_text("words") == "words"
    assert read_result_text([text("a"), IMAGE, text("b")]) == "a\n[image]\nb"


@pytest.mark.parametrize("text", ["", '["', "5", '["a"]', '[{"type":"text"}]', "{}"])
def test_the_content_of_a_result_that_cannot_be_read_is_none(text: str) -> None:
    assert read_content(text) is None
    assert read_content('"said"') == "said"
    assert read_content('[{"type":"text","text":"said"}]') == [{"type": "text", "text": "said"}]
