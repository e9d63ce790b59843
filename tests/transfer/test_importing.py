"""Recorded conversations become conversations that go on: legal, in the chain, or not at all."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from conversations.audit.verify import Tally, verify_everything
from conversations.context.policy.policy import Policy
from conversations.context.steps.repair import repair_view
from conversations.context.view import rules, wire
from conversations.context.view.view import Message as ViewMessage
from conversations.log.turn_state import load_state
from conversations.models import Conversation, Message, Turn, User
from conversations.transcript.originals import read_original
from conversations.transcript.transcript import read_transcript
from conversations.transfer.importing import import_recording
from conversations.transfer.record_blocks import NO_FILE, NO_IMAGE
from conversations.transfer.recordings import ENDS_HERE, RecordError, read_record
from tests.context.samples import IMAGE, PNG
from tests.support import small_files

pytestmark = pytest.mark.django_db
MODEL = "claude-sonnet-5-5"


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": words} | more


def source(kind: str, data: bytes) -> dict[str, str]:
    return {"type": "base64", "media_type": kind, "data": base64.b64encode(data).decode()}


def use(id: str, **values: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": "look", "input": values}


def result(id: str, content: Any = "found") -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": id, "content": content}


def user(*blocks: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


def answer(*blocks: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


def line(*messages: Any, **values: Any) -> bytes:
    record = {"id": "rec-1", "system": None, "tools": [], "messages": list(messages), "facts": []}
    return json.dumps(record | values).encode()


PLAIN = (
    user(text("Find the order")),
    answer(text("Looking."), use("t1", number=7)),
    user(result("t1", "order 7 is blue")),
    answer(text("It is blue.")),
    user(text("Thanks")),
    answer(text("Gladly.")),
)


def put(raw: bytes, name: str = "ada") -> Conversation:
    owner, _ = User.objects.get_or_create(username=name)
    return import_recording(user=owner, recording=read_record(raw), model=MODEL)


def kinds(conversation: Conversation) -> list[str]:
    return list(conversation.messages.order_by("seq").values_list("kind", flat=True))


def may_go_on(conversation: Conversation) -> str:
    """Give the messages array of the next request, which breaks no rule."""
    view = load_state(conversation, MODEL).view
    view = view.append(ViewMessage.parse(10**6, "prompt", '[{"type":"text","text":"Go on"}]'))
    rules.check_rules(view)
    assert view.tokens == sum(message.tokens for message in view.messages)
    return view.body


def test_a_recording_becomes_turns_from_prompt_to_prompt() -> None:
    conversation = put(line(*PLAIN, system="Be kind."))
    assert kinds(conversation) == ["prompt", "answer", "results", "answer", "prompt", "answer"]
    turns = list(conversation.turns.order_by("number"))
    assert [(turn.state, turn.finish_reason) for turn in turns] == [("done", "end_turn")] * 2
    assert [turn.messages.count() for turn in turns] == [4, 2]
    assert conversation.title == "rec-1 · Find the order"
    assert conversation.instructions == "Be kind."
    assert conversation.model == MODEL
    assert (conversation.head, conversation.tip, conversation.links) == (6, 6, 6)


def test_what_is_sent_next_is_what_was_recorded() -> None:
    conversation = put(line(*PLAIN))
    assert wire.decode(may_go_on(conversation))[:-1] == list(PLAIN)


def test_the_import_is_in_the_chain() -> None:
    put(line(*PLAIN))
    put(line(*PLAIN, id="rec-2"), "bea")
    tally = Tally()
    assert list(verify_everything(tally)) == []
    assert tally.conversations == 2


def test_people_and_the_recall_tool_find_the_originals() -> None:
    conversation = put(line(*PLAIN))
    assert read_original(conversation.pk, "t1") == "order 7 is blue"
    shown = read_transcript(conversation)
    assert [turn.number for turn in shown.turns] == [1, 2]
    assert shown.turns[0].rounds[0].tools[0].output == "order 7 is blue"


def test_the_same_record_twice_is_refused_and_leaves_one() -> None:
    first = put(line(*PLAIN))
    with pytest.raises(RecordError, match=f"rec-1 was imported before, as {first.public_id}"):
        put(line(*PLAIN))
    put(line(*PLAIN, id="rec-2"))
    put(line(*PLAIN), "bea")
    assert Conversation.objects.count() == 3
    assert Message.objects.count() == 18


def test_a_text_becomes_one_block() -> None:
    conversation = put(line({"role": "user", "content": "Hi"}))
    assert conversation.messages.get().content == '[{"type":"text","text":"Hi"}]'
    assert conversation.turns.get().finish_reason == "truncated"


def test_nul_and_lone_surrogates_do_no_harm() -> None:
    raw = rb'{"id":"a\u0000b","system":"x\u0000y","messages":[{"role":"user",'
    raw += rb'"content":"one\u0000two \ud800 three"}]}'
    conversation = put(raw)
    assert conversation.messages.get().content == (
        '[{"type":"text","text":"one\\u0000two \N{REPLACEMENT CHARACTER} three"}]'
    )
    assert conversation.instructions == "xy"
    assert conversation.title == "ab · onetwo \N{REPLACEMENT CHARACTER} three"
    may_go_on(conversation)


def test_numbers_and_key_order_of_inputs_are_kept() -> None:
    raw = line(user(text("?")), answer(use("t1", b=1.50, a=10**20, c=[True, None])))
    content = put(raw).messages.get(kind="answer").content
    assert '"input":{"b":1.5,"a":100000000000000000000,"c":[true,null]}' in content


def test_an_unanswered_call_at_the_end_gets_an_error_result() -> None:
    conversation = put(line(user(text("?")), answer(use("t1"), use("t2"))))
    last = conversation.messages.get(kind="results")
    blocks = wire.decode(last.content)
    assert [(b["tool_use_id"], b["content"], b["is_error"]) for b in blocks] == [
        ("t1", ENDS_HERE, True), ("t2", ENDS_HERE, True)
    ]  # fmt: skip
    assert conversation.turns.get().finish_reason == "truncated"
    may_go_on(conversation)


def test_an_unanswered_call_in_the_middle_gets_one_too() -> None:
    conversation = put(
        line(
            user(text("?")), answer(use("t1"), use("t2")), user(result("t2")),
            answer(use("t3")), user(text("never mind")), answer(text("fine")),
        )
    )  # fmt: skip
    assert kinds(conversation) == [
        "prompt", "answer", "results", "answer", "results", "prompt", "answer"
    ]  # fmt: skip
    assert list(conversation.turns.values_list("finish_reason", flat=True).order_by("number")) == [
        "truncated", "end_turn"
    ]  # fmt: skip
    may_go_on(conversation)


def test_messages_of_one_role_in_a_row_stay_legal() -> None:
    conversation = put(
        line(
            user(text("a")), user(text("b")), answer(text("look"), use("t1")), answer(use("t2")),
            user(text("late words"), result("t2")), user(result("t1")), user(text("and more")),
            answer(text("x")), answer(text("y")),
        )
    )  # fmt: skip
    assert kinds(conversation) == [
        "prompt", "prompt", "answer", "answer", "results", "prompt", "answer", "answer"
    ]  # fmt: skip
    results = wire.decode(conversation.messages.get(kind="results").content)
    assert [block["type"] for block in results] == ["tool_result", "tool_result", "text"]
    assert conversation.turns.count() == 3
    may_go_on(conversation)


def test_results_with_more_texts_stay_one_message() -> None:
    conversation = put(
        line(user(text("?")), answer(use("t1")), user(result("t1"), text("note"), text("note 2")))
    )
    assert kinds(conversation) == ["prompt", "answer", "results"]
    may_go_on(conversation)


def test_images_and_listed_results_are_kept() -> None:
    raw = line(user(text("?"), IMAGE), answer(use("t1")), user(result("t1", [text("x"), IMAGE])))
    assert may_go_on(put(raw)).count(PNG) == 2


#: A citation, its fields that only the API writes, and blocks as programs store them.
QUOTE = {
    "type": "char_location", "cited_text": "b", "document_index": 0, "document_title": None,
    "start_char_index": 0, "end_char_index": 1,
}  # fmt: skip
CALLER = {"caller": {"type": "direct"}}
STORED = [
    (user(text("a", id="x1")), text("a")),
    (user(text("a", citations=[QUOTE])), text("a")),
    (user(IMAGE | {"alt": "a dot", "source": IMAGE["source"] | {"name": "a.png"}}), IMAGE),
    (answer(text("b", parsed_output=None)), text("b")),
    (
        answer(text("b", citations=[QUOTE | {"file_id": None}])),
        text("b", citations=[QUOTE]),
    ),
    (answer(use("t1") | {"caller": None, "index": 0}), use("t1")),
    (answer(use("t1") | CALLER), use("t1") | CALLER),
    (user(result("t0", [text("a", id="x1")]) | {"is_error": None}), result("t0", [text("a")])),
]  # fmt: skip


@pytest.mark.parametrize(("message", "kept"), STORED)
def test_fields_of_other_programs_are_left_out(message: Any, kept: dict[str, Any]) -> None:
    before = [user(text("?")), answer(use("t0"))] if kept["type"] == "tool_result" else []
    before = before or ([user(text("?"))] if message["role"] == "assistant" else [])
    body = wire.decode(may_go_on(put(line(*before, message))))
    assert body[len(before)]["content"] == [kept]


def test_citations_that_are_none_are_kept_for_people_and_are_no_error() -> None:
    put(line(user(text("?")), answer(text("b", citations=[7]))))


@pytest.mark.parametrize(
    "block",
    [
        {"type": "document", "source": {"type": "file", "file_id": "file_011C"}},
        {"type": "image", "source": {"type": "file", "file_id": "file_011C"}},
        {"type": "container_upload", "file_id": "file_011C"},
        {"type": "document", "source": source("application/pdf", b"no pdf")},
        {"type": "document", "source": source("text/plain", b"words")},
        {"type": "document", "source": source("application/pdf", b"") | {"data": "JVBER!i0="}},
        {"type": "document", "source": source("application/pdf", b"%PDF-1.7 /Encrypt 5 0 R")},
        {"type": "image", "source": source("image/png", small_files.png(100, 9_000))},
    ],
)
def test_a_file_that_can_never_be_sent_is_a_note(block: dict[str, Any]) -> None:
    nested = [] if block["type"] == "container_upload" else [block]
    listed = {"type": "tool_result", "tool_use_id": "t1", "content": [text("x"), *nested]}
    body = may_go_on(put(line(user(text("?"), block), answer(use("t1")), user(listed))))
    note = NO_IMAGE if block["type"] == "image" else NO_FILE
    assert body.count(note) == 1 + len(nested)
    assert '"source"' not in body


def test_what_no_other_request_may_carry_is_left_out() -> None:
    mark = {"cache_control": {"type": "ephemeral"}}
    thinking = {"type": "thinking", "thinking": "hm", "signature": "of another request"}
    raw = line(
        user(text("?") | mark, text(" ")), answer(thinking, use("t1") | mark),
        user(result("t1", [text("x") | mark, text("")]) | mark), answer(thinking), answer(text("")),
        user(text("go")), answer(text("done")),
    )  # fmt: skip
    body = may_go_on(put(raw))
    assert "thinking" not in body
    assert "cache_control" not in body


def test_a_compaction_block_comes_in_as_its_words() -> None:
    block = {"type": "compaction", "content": "What was so far.", "signature": "of another account"}
    body = may_go_on(put(line(user(text("?")), answer(block, text("on")), user(text("go")))))
    assert '{"type":"text","text":"What was so far."}' in body
    assert "compaction" not in body
    empty = {"type": "compaction", "content": None}
    assert "compaction" not in goes_on_repaired(
        put(line(answer(empty, text("on")), user(text("go")), id="other"))
    )


def test_a_null_result_is_an_empty_one() -> None:
    assert '"content":""' in may_go_on(
        put(line(user(text("?")), answer(use("t1")), user(result("t1", None))))
    )


def test_system_blocks_are_joined() -> None:
    raw = line(user(text("?")), system=[text("One."), {"type": "other"}, text("Two.")])
    assert put(raw).instructions == "One.\n\nTwo."


BAD = [
    (b"{", "not JSON"), (b"[]", "is not a JSON object"), (b"\xff", "is not UTF-8"),
    (b'{"id":"x","messages":[],"a":NaN}', "NaN is not JSON"), (b"[" * 100_000, "not JSON"),
    (b'{"id":"x","messages":[],"a":' + b"1" * 5_000 + b"}", "not JSON"),
    (line(*PLAIN, id=7), '"id" must be'), (line(*PLAIN, id=" "), '"id" must be'),
    (line(*PLAIN, id="x" * 121), '"id" must be'), (line(*PLAIN, system=7), '"system" must be'),
    (line(), "at least one message"), (line(user(text(" "))), "no message with content"),
    (line(7), "messages.0"), (line({"role": "system", "content": "x"}), "messages.0"),
    (line({"role": "user"}), '"content" must be'), (line(user(7)), "object with a type"),
    (line(user({"type": 7})), "object with a type"),
    (line(user({"type": "text", "text": 7})), "no message with content"),
    (line(user({"type": "image", "source": 7})), "no message with content"),
]  # fmt: skip


#: Records that break a rule of the API.
BROKEN = [
    line(user(text("?"), {"type": "text", "text": 7}), answer(text("!"))),
    line(user(text("?"), {"type": "image", "source": 7})),
    line(answer(text("hello"))),
    line(user(result("t1"))),
    line(user(text("?")), answer(use("t1")), user(result("t1"), result("t1"))),
    line(user(text("?")), answer(use("t1")), user(result("t1")), answer(use("t1"))),
    line(user(text("?")), answer(use("no/id"))),
    line(user(text("?")), answer(use("t1") | {"input": "x"})),
    line(user(text("?")), answer(use("t1")), user(result("t1", [7]))),
    line(user(text("?")), answer(use("t1")), user(result("t1", 7))),
]  # fmt: skip


def goes_on_repaired(conversation: Conversation) -> str:
    """Give the messages array of the next request, which one repair makes legal."""
    view = load_state(conversation, MODEL).view
    view = view.append(ViewMessage.parse(10**6, "prompt", '[{"type":"text","text":"Go on"}]'))
    change = repair_view(view, Policy())
    assert change is not None
    rules.check_rules(change.view_after)
    return change.view_after.body


@pytest.mark.parametrize("raw", BROKEN)
def test_a_broken_record_opens_and_goes_on_after_one_repair(raw: bytes) -> None:
    conversation = put(raw)
    assert read_transcript(conversation).turns
    assert "Go on" in goes_on_repaired(conversation)
    assert list(verify_everything(Tally())) == []


@pytest.mark.parametrize(("raw", "words"), BAD)
def test_a_line_that_is_no_conversation_is_refused_with_its_reason(raw: bytes, words: str) -> None:
    with pytest.raises(RecordError) as caught:
        put(raw)
    assert words in str(caught.value)
    assert not Conversation.objects.exists()
    assert not Turn.objects.exists()


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("image/svg+xml", "PHN2ZyBvbmxvYWQ9ImFsZXJ0KDEpIi8+"),
        ("image/jpeg", "iVBORw0KGgo="),
        ("image/png", "no base64!"),
        ("image/png", ""),
        ("image/png", None),
    ],
)
def test_an_image_that_the_api_would_refuse_is_a_text(kind: str, data: str | None) -> None:
    source = {"type": "base64", "media_type": kind, "data": data}
    image = {"type": "image", "source": source}
    listed = {"type": "tool_result", "tool_use_id": "t1", "content": [image]}
    raw = line(user(text("?"), image), answer(use("t1")), user(listed))
    for entry in read_record(raw).exchanges[0].entries[::2]:
        assert '"image"' not in entry.content
        assert NO_IMAGE in entry.content


@pytest.mark.parametrize(
    "source",
    [
        {"type": "kept", "media_type": "image/png"},
        {"type": "kept", "media_type": "image/png", "data": None},
        {"type": "kept", "data": 7},
        {"type": "url", "url": "https://example.org/a.png"},
        {"type": "url"},
        {},
    ],
)
def test_a_chat_with_an_image_from_an_unknown_source_opens_and_goes_on(
    source: dict[str, Any],
) -> None:
    image = {"type": "image", "source": source}
    conversation = put(line(user(text("?"), image), answer(use("t1")), user(result("t1", [image]))))
    assert read_transcript(conversation).turns
    assert may_go_on(conversation)
