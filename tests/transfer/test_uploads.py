"""Uploads: each conversation of a file whole or not at all, whoever wrote the file."""

from __future__ import annotations

import gzip
import io
import json
import sys
import zipfile
from typing import Any

import pytest
from django.contrib.auth.models import Group

from conversations.audit.verify import Tally, verify_everything
from conversations.context.view import wire
from conversations.library.conversations import delete_conversation
from conversations.models import ApiModel, Conversation, Message, User
from conversations.transcript.transcript import read_transcript
from conversations.transfer.exports import write_record
from conversations.transfer.unpacking import UploadError
from conversations.transfer.uploads import Report, import_upload
from tests.support import people_and_turns, stored_turns

pytestmark = pytest.mark.django_db


def put(raw: bytes, user: User | None = None) -> Report:
    owner = user or User.objects.get_or_create(username="ada")[0]
    return import_upload(user=owner, file=io.BytesIO(raw), size=len(raw), model=stored_turns.MODEL)


def zipped(**members: bytes) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name.replace("__", "/").replace("_json", ".json"), content)
    return sink.getvalue()


def ours(name: str = "a", text: str = "Hi") -> dict[str, Any]:
    return {"id": name, "messages": [{"role": "user", "content": text}]}


def claude(name: str = "u1", *sent: tuple[str, str], **values: Any) -> dict[str, Any]:
    return {
        "uuid": name, "name": "Nut trees", "created_at": "2024-03-01T10:00:00.123456Z",
        "updated_at": "2024-03-02T10:00:00Z", "account": {"uuid": "x"},
        "chat_messages": [
            {"uuid": str(at), "sender": sender, "text": text, "created_at": "2024-03-01T10:00:00Z",
             "content": [{"type": "text", "text": text, "citations": []}], "attachments": [],
             "files": []}
            for at, (sender, text) in enumerate(sent or (("human", "Hi"), ("assistant", "Hello")))
        ],
    } | values  # fmt: skip


def node(name: str, parent: str | None, role: str, text: str, **values: Any) -> dict[str, Any]:
    content = {"content_type": "text", "parts": [text]}
    message = {"id": name, "author": {"role": role}, "content": content, "recipient": "all"}
    return {"id": name, "parent": parent, "children": [], "message": message | values}


def chatgpt(*nodes: dict[str, Any], **values: Any) -> dict[str, Any]:
    root = {"id": "root", "parent": None, "children": ["1"], "message": None}
    shown = nodes or (node("1", "root", "user", "Hi"), node("2", "1", "assistant", "Hello"))
    return {
        "title": "Nut trees", "create_time": 1709287200.5, "update_time": 1709373600.0,
        "conversation_id": "c1", "current_node": shown[-1]["id"],
        "mapping": {"root": root} | {each["id"]: each for each in shown},
    } | values  # fmt: skip


def message_texts(conversation: Conversation) -> list[tuple[str, str]]:
    rows = Message.objects.filter(conversation=conversation).order_by("seq")
    return [(row.kind, wire.decode(row.content)[0]["text"]) for row in rows]


HELLO = [("prompt", "Hi"), ("answer", "Hello")]


@pytest.mark.parametrize("foreign", [claude(), chatgpt()], ids=["claude", "chatgpt"])
@pytest.mark.parametrize("packing", ["json", "pretty", "zip", "gzip", "lines"])
def test_foreign_exports_become_conversations(foreign: dict[str, Any], packing: str) -> None:
    raw = json.dumps([foreign], indent=2 if packing == "pretty" else None).encode()
    packed = {
        "json": raw, "pretty": raw, "zip": zipped(conversations_json=raw, users_json=b"[]"),
        "gzip": gzip.compress(raw), "lines": json.dumps(foreign).encode() + b"\n\n",
    }[packing]  # fmt: skip
    report = put(packed)
    assert (report.imported, report.again, report.refused, report.stopped) == (1, 0, 0, "")
    conversation = Conversation.objects.get()
    assert message_texts(conversation) == HELLO
    assert conversation.title == "Nut trees"
    assert conversation.created_at.date().isoformat() == "2024-03-01"
    assert conversation.updated_at.date().isoformat() == "2024-03-02"
    assert list(verify_everything(Tally())) == []


@pytest.mark.parametrize("name", ["", " ", None, 7])
@pytest.mark.parametrize("made", [claude, chatgpt])
def test_what_has_no_title_elsewhere_is_titled_with_its_first_words(made: Any, name: Any) -> None:
    put(json.dumps(made() | {"name": name, "title": name}).encode())
    assert Conversation.objects.get().title == "Hi"


def test_the_same_file_twice_changes_nothing() -> None:
    raw = json.dumps([claude(), chatgpt(), ours()]).encode()
    assert put(raw).imported == 3
    before = people_and_turns.everything()
    report = put(raw)
    assert (report.imported, report.again, report.refused) == (0, 3, 0)
    assert people_and_turns.everything() == before
    assert put(raw, people_and_turns.person("bob")).imported == 3


def test_what_is_in_the_trash_is_not_imported_beside_itself() -> None:
    put(json.dumps(claude()).encode())
    delete_conversation(conversation=Conversation.objects.get())
    assert put(json.dumps(claude()).encode()).again == 1


def test_an_export_of_ours_comes_back() -> None:
    played = stored_turns.played()
    line = "".join(write_record(played.conversation, with_events=True)).encode()
    archive = zipped(**{"conversations.jsonl": line * 2, "md__a.md": b"#", "html__a_json": b"{}"})
    report = put(archive, people_and_turns.person("bob"))
    assert (report.imported, report.again, report.refused) == (1, 1, 0)


def test_a_conversation_keeps_its_model_where_the_person_may_use_it() -> None:
    ada, other = people_and_turns.person("ada"), "claude-haiku-4-5"
    for number, name in enumerate((other, "gpt-x", 7, None)):
        put(json.dumps(ours(f"{number}") | {"model": name}).encode(), ada)
    ApiModel.objects.get(pk=other).groups.add(Group.objects.create(name="Staff"))
    put(json.dumps(ours("later") | {"model": other}).encode(), ada)
    models = Conversation.objects.order_by("pk").values_list("model", flat=True)
    assert list(models) == [other, *[stored_turns.MODEL] * 4]


def test_a_bad_conversation_spoils_no_other() -> None:
    good = [claude("a"), chatgpt(conversation_id="b"), ours("c")]
    bad = [{"x": 1}, claude("e", ("human", " ")), chatgpt(mapping=7, title="Broken"), {}]
    report = put(json.dumps([good[0], *bad, *good[1:]]).encode())
    assert (report.imported, report.refused) == (3, 4)
    assert report.problems == [
        ("chat 2", "is no chat of a known format"), ("Nut trees", "is empty"),
        ("Broken", '"mapping" must be an object'),
        ("chat 5", "is no chat of a known format"),
    ]  # fmt: skip
    lines = [json.dumps(ours("x")), "{ broken", json.dumps(ours("y")), "[]"]
    report = put("\n".join(lines).encode())
    assert (report.imported, report.refused) == (2, 2)
    assert [name for name, _ in report.problems] == ["chat 2", "chat 4"]


def test_the_branch_that_was_shown_last_is_taken_over() -> None:
    talk = chatgpt(
        node("1", "root", "user", "Hi"), node("2", "1", "assistant", "Rejected"),
        node("s", "1", "system", "secret"), node("t", "s", "assistant", "call", recipient="python"),
        node("u", "t", "tool", "output"),
        node("h", "u", "user", "hid", metadata={"is_visually_hidden_from_conversation": True}),
        node("3", "h", "assistant", "Hello"),
    )  # fmt: skip
    put(json.dumps([talk]).encode())
    assert message_texts(Conversation.objects.get()) == HELLO


def test_a_tree_that_goes_in_circles_ends() -> None:
    talk = chatgpt(node("1", "2", "user", "Hi"), node("2", "1", "assistant", "Hello"))
    put(json.dumps([talk]).encode())
    assert message_texts(Conversation.objects.get()) == HELLO


def test_images_and_attachments_are_named() -> None:
    parts = ["Look", {"content_type": "image_asset_pointer", "asset_pointer": "file://x"}]
    content = {"content_type": "multimodal_text", "parts": parts}
    put(json.dumps([chatgpt(node("1", "root", "user", "", content=content))]).encode())
    attached = claude()
    attached["chat_messages"][0] |= {
        "attachments": [{"file_name": "a.txt", "extracted_content": "inside"}],
        "files": [{"file_name": "b.png"}],
    }
    put(json.dumps([attached]).encode())
    first, second = Conversation.objects.order_by("pk")
    assert message_texts(first) == [("prompt", "Look\n\n[image]")]
    assert message_texts(second)[0] == ("prompt", "Hi\n\n[a.txt]\ninside\n\n[b.png]")


def test_a_conversation_that_begins_with_an_answer_gets_a_beginning() -> None:
    put(json.dumps([claude("a", ("assistant", "Hello"), ("human", "Hi"))]).encode())
    kinds = [kind for kind, _ in message_texts(Conversation.objects.get())]
    assert kinds == ["prompt", "answer", "prompt"]


ODD = [7, None, "x", [], [7], {}, {"a": 1}, True, 1e300, -1]


@pytest.mark.parametrize("value", ODD, ids=repr)
def test_odd_values_are_refused_or_left_out_but_never_an_error(value: Any) -> None:
    made = [claude() | {key: value} for key in claude()]
    for key in claude()["chat_messages"][0]:
        odd = claude()
        odd["chat_messages"][0][key] = value
        made.append(odd)
    hi = ("1", "root", "user", "Hi")
    made += [chatgpt() | {key: value} for key in chatgpt()]
    parts = ("author", "content", "recipient", "metadata")
    made += [chatgpt(node(*hi, **{key: value})) for key in parts]
    made += [chatgpt(node(*hi) | {key: value}) for key in ("parent", "message", "children")]
    for at, each in enumerate(made):
        for key in ("uuid", "conversation_id"):
            if each.get(key) in ("u1", "c1"):
                each[key] = f"{key}{at}"
    report = put(json.dumps(made).encode())
    assert report.imported + report.again + report.refused == len(made)
    assert list(verify_everything(Tally())) == []


BROKEN = [
    (b"", "no chats"), (b"   ", "no chats"), (b"[]", "no chats"),
    (b"hello", "no chats"), (b"[1,2]", "no chats"),
    (b"\x1f\x8bxx", "cannot be read"),
    (b"PK\x03\x04 broken", "cannot be read"), (zipped(users_json=b"[]"), "no conversations"),
    (zipped(conversations_json=b"{"), "in the middle"), (b'[{"id":"a', "in the middle"),
    (gzip.compress(b"[" + b" " * 1000, mtime=0)[:-9], "cannot be read"),
]  # fmt: skip


@pytest.mark.parametrize(("raw", "words"), BROKEN)
def test_a_file_without_conversations_says_so(raw: bytes, words: str) -> None:
    with pytest.raises(UploadError) as caught:
        put(raw)
    assert words in caught.value.text
    assert not Conversation.objects.exists()


def test_what_came_before_a_cut_is_kept_and_the_cut_is_said() -> None:
    report = put(json.dumps([ours("a"), ours("b")]).encode()[:-20])
    assert report.imported == 1
    assert "in the middle" in report.stopped


def test_sizes_are_limited_before_and_while_a_file_is_read(settings: Any) -> None:
    settings.AGENTWEB_MAX_IMPORT_BYTES = 2_000
    with pytest.raises(UploadError, match="at most 0 MB"):
        put(json.dumps(ours(text="x" * 3_000)).encode())
    settings.AGENTWEB_MAX_IMPORT_UNPACKED = 1_000_000
    for packed in (zipped(conversations_json=b" " * 5_000_000), gzip.compress(b" " * 1_500_000)):
        with pytest.raises(UploadError) as caught:
            put(packed)
        assert caught.value.code == "too_big"
    long = gzip.compress(json.dumps([ours("a"), ours("b", "x" * 200_000)]).encode())
    report = put(long)
    assert (report.imported, report.stopped) == (
        1, "One chat has more than 50,000 bytes.",
    )  # fmt: skip


BLOCKS = [
    {"type": "text", "text": "x"}, {"type": "tool_use", "id": "t1", "name": "look", "input": {}},
    {"type": "tool_result", "tool_use_id": "t1", "content": "x", "is_error": False},
    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}},
    {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}},
    {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []},
]  # fmt: skip


@pytest.mark.parametrize("value", ODD, ids=repr)
def test_an_odd_block_refuses_its_record_only_and_what_comes_in_can_be_read(value: Any) -> None:
    odd = [block | {key: value} for block in BLOCKS for key in block]
    made = []
    for at, block in enumerate(odd):
        asked = [{"type": "tool_use", "id": "t1", "name": "look", "input": {}}]
        talk = [ours()["messages"][0], {"role": "assistant", "content": asked}]
        made += [
            {"id": f"u{at}", "messages": [*talk, {"role": "user", "content": [block]}]},
            {"id": f"a{at}", "messages": [talk[0], {"role": "assistant", "content": [block]}]},
        ]
    report = put(json.dumps([*made, ours("good")]).encode())
    assert report.imported + report.refused == len(made) + 1
    for public_id, _ in report.new:
        assert read_transcript(Conversation.objects.get(public_id=public_id)).turns
    assert "good" in {title.partition(" ")[0] for _, title in report.new}
    assert list(verify_everything(Tally())) == []


def test_a_record_that_is_nested_very_deeply_is_refused_alone() -> None:
    content: list[Any] = []
    for _ in range(300):
        content = [{"type": "tool_result", "tool_use_id": "t1", "content": content}]
    deep = {"id": "deep", "messages": [{"role": "user", "content": content}]}
    report = put(json.dumps([deep, ours("good")]).encode())
    assert (report.imported, report.refused) == (1, 1)


def find_deepest() -> int:
    """Return how many lists within each other can be read here."""
    depth = sys.getrecursionlimit()
    while True:
        try:
            json.loads("[" * depth + "]" * depth)
        except RecursionError:
            depth -= 1
        else:
            return depth


@pytest.mark.parametrize(
    "made",
    [{"chat_messages": [{"sender": "human", "text": "@"}]},
     {"mapping": {"a": node("a", None, "user", "",
                            content={"content_type": "code", "text": "@"})}}],
    ids=["claude", "chatgpt"],
)  # fmt: skip
def test_a_foreign_record_that_can_barely_be_read_spoils_no_other(made: dict[str, Any]) -> None:
    deepest, found = find_deepest(), json.dumps(made)
    depths = range(deepest - 60, deepest + 1)
    deep = [found.replace('"@"', "[" * depth + "]" * depth) for depth in depths]
    report = put("\n".join([*deep, json.dumps(ours("good"))]).encode())
    assert report.imported + report.refused == len(depths) + 1
    assert report.new[-1][1].startswith("good")
    assert "is nested too deeply" in {reason for _, reason in report.problems}


@pytest.mark.parametrize("made", [claude, chatgpt])
def test_foreign_records_without_an_id_are_told_apart_by_what_is_in_them(made: Any) -> None:
    first, second = (made(title=name, name=name) for name in "ab")
    for each in (first, second):
        each.pop("uuid", None)
        each.pop("conversation_id", None)
    raw = json.dumps([first, second]).encode()
    assert put(raw).imported == 2
    assert put(raw).again == 2


def test_ones_own_export_adds_nothing_beside_what_is_there() -> None:
    played = stored_turns.played()
    line = "".join(write_record(played.conversation)).encode()
    assert (put(line).imported, put(line).again) == (0, 1)
    assert Conversation.objects.get() == played.conversation
    bob = people_and_turns.person("bob")
    assert put(line, bob).imported == 1
    (copy,) = Conversation.objects.filter(owner=bob)
    assert put("".join(write_record(copy)).encode(), bob).again == 1


def test_a_user_uploads_one_file_at_a_time() -> None:
    ada, bob = people_and_turns.person("ada"), people_and_turns.person("bob")
    seen: list[str] = []

    class Slow(io.BytesIO):
        """A file that uploads another one while it is read."""

        def read(self, size: int | None = -1) -> bytes:
            if not seen:
                seen.append("")
                with pytest.raises(UploadError) as caught:
                    put(json.dumps(ours("b")).encode(), ada)
                seen.append(caught.value.code)
                seen.append(str(put(json.dumps(ours("b")).encode(), bob).imported))
            return super().read(size)

    raw = json.dumps(ours("a")).encode()
    report = import_upload(user=ada, file=Slow(raw), size=len(raw), model=stored_turns.MODEL)
    assert (report.imported, seen) == (1, ["", "busy", "1"])
    assert put(json.dumps(ours("b")).encode(), ada).imported == 1
