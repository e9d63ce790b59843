"""Exports: what is taken along can be read, brought in again, and says what was said."""

from __future__ import annotations

import json
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.core.management import CommandError, call_command

from conversations.context.view import wire
from conversations.library import folders
from conversations.library.conversations import archive_conversation, delete_conversation
from conversations.library.search import search_messages
from conversations.models import Conversation, Message
from conversations.transfer.exports import EXPORT_FORMATS, list_exported, name_file
from conversations.transfer.importing import import_recording
from conversations.transfer.recordings import parse_recording, read_record
from tests.support import people_and_turns, stored_turns
from tests.support.stored_turns import Played
from tests.web.tags import acting, names

pytestmark = pytest.mark.django_db


def export_text(form: str, conversation: Conversation, **options: Any) -> str:
    conversation.refresh_from_db()
    pieces: Iterator[str] = EXPORT_FORMATS[form].write(conversation, **options)
    return "".join(pieces)


def contents(conversation: Conversation) -> list[tuple[str, Any]]:
    rows = Message.objects.filter(conversation=conversation).order_by("seq")
    return [(row.kind, wire.decode(row.content)) for row in rows]


def test_a_record_brings_its_folder_along_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    played, bob = stored_turns.played(), people_and_turns.person("bob")
    assert json.loads(export_text("json", played.conversation))["folder"] is None
    work = folders.add_folder(owner_id=played.user.pk, name="Work")
    folders.move_conversation(conversation=played.conversation, folder=work)
    line = export_text("json", played.conversation)

    def bring(**changes: Any) -> Conversation:
        record = json.loads(line) | {"id": str(uuid4())} | changes
        return import_recording(
            user=bob, recording=parse_recording(record), model=stored_turns.MODEL
        )

    first, second = bring(), bring(folder=" wORK ")
    assert first.folder is not None
    assert (first.folder.name, first.folder.owner) == ("Work", bob)
    assert second.folder == first.folder
    for none in (None, "", 5, ["Work"], " "):
        assert bring(folder=none).folder is None
    long = bring(folder="x" * 300).folder
    assert long is not None
    assert long.name == "x" * 60
    monkeypatch.setattr(folders, "MOST_FOLDERS", 2)
    assert bring(folder="One too many").folder is None
    assert set(work.conversations.all()) == {played.conversation}


def test_a_record_comes_back_as_it_went() -> None:
    played = stored_turns.played(title="Read the file — “now”")
    Conversation.objects.filter(pk=played.conversation.pk).update(effort="xhigh")
    line = export_text("json", played.conversation)
    assert line.count("\n") == 1
    copy = import_recording(
        user=people_and_turns.person("bob"),
        recording=read_record(line.encode()),
        model=stored_turns.MODEL,
    )
    original = Conversation.objects.get(pk=played.conversation.pk)
    assert contents(copy) == contents(original)
    assert (copy.title, copy.instructions) == (original.title, original.instructions)
    assert copy.effort == original.effort == "xhigh"
    assert (copy.created_at, copy.updated_at) == (original.created_at, original.updated_at)
    again = json.loads(export_text("json", copy))
    first = json.loads(line)
    assert [m["content"] for m in again["messages"]] == [m["content"] for m in first["messages"]]
    assert [row.kind for row in search_messages(copy.owner, "4711").rows] == ["answer"]


def test_a_record_holds_stored_text_and_not_its_like() -> None:
    played = stored_turns.played()
    line = export_text("json", played.conversation)
    for content in played.conversation.messages.values_list("content", flat=True):
        assert content in line


def test_events_come_along_when_they_are_wanted() -> None:
    played = stored_turns.played()
    assert "events" not in json.loads(export_text("json", played.conversation))
    record = json.loads(export_text("json", played.conversation, with_events=True))
    assert [(e["kind"], e["outcome"]) for e in record["events"]] == [
        ("compaction", "applied"), ("summary", "rejected"),
    ]  # fmt: skip
    assert record["events"][0]["edits"]
    read_record(json.dumps(record).encode())
    for form, sign in (("md", "> *Context: compaction"), ("html", "Context: compaction")):
        assert sign not in export_text(form, played.conversation)
        assert sign in export_text(form, played.conversation, with_events=True)


def test_another_branch_stands_apart() -> None:
    lease = people_and_turns.started_turn(text="the first question")
    people_and_turns.answered(lease)
    conversation = people_and_turns.conversation_of(lease)
    Conversation.objects.filter(pk=conversation.pk).update(tip=0)
    conversation.refresh_from_db()
    people_and_turns.answered(people_and_turns.next_turn(conversation, "the other question"))
    record = json.loads(export_text("json", conversation))
    assert [m["seq"] for m in record["messages"]] == [3, 4]
    assert [m["seq"] for m in record["branches"]] == [1, 2]
    assert "the first question" in export_text("md", conversation)


def test_a_conversation_without_messages_is_no_error() -> None:
    conversation = Conversation.objects.create(
        owner=people_and_turns.person(), model=stored_turns.MODEL
    )
    assert json.loads(export_text("json", conversation))["messages"] == []
    assert export_text("md", conversation).startswith("# New chat")
    assert "</html>" in export_text("html", conversation)


def test_markdown_says_what_was_said_and_what_tools_gave() -> None:
    played = stored_turns.played(title="Read the file", result="some ```` ticks\n```\nand <b>")
    text = export_text("md", played.conversation)
    assert text.startswith("# Read the file\n")
    assert text.count("\n## You\n") == text.count("\n## Answer\n") == 1
    assert "The order is 4711-ÄÖ." in text
    assert '**Tool** `read_file`\n\n```json\n{"path":"notes.txt"}\n```\n' in text
    assert "\n`````\nsome ```` ticks\n```\nand <b>\n`````\n" in text


def test_a_result_in_markdown_names_its_tool() -> None:
    uses = [
        {"type": "tool_use", "id": f"toolu_{name}", "name": name, "input": {}}
        for name in ("first", "second")
    ]
    results = [
        {"type": "tool_result", "tool_use_id": "toolu_first", "content": "no", "is_error": True},
        {"type": "tool_result", "tool_use_id": "toolu_second", "content": "yes"},
    ]
    messages = [
        {"role": "user", "content": "Do both"},
        {"role": "assistant", "content": uses},
        {"role": "user", "content": results},
        {"role": "assistant", "content": "Done"},
    ]
    made = import_recording(
        user=people_and_turns.person("bob"),
        recording=parse_recording({"id": "two", "messages": messages}),
        model=stored_turns.MODEL,
    )
    text = export_text("md", made)
    assert "\n**Error** `first`\n\n```\nno\n```\n" in text
    assert "\n**Result** `second`\n\n```\nyes\n```\n" in text


HOSTILE = "</pre></title><script>alert(1)</script><img src=x onerror=alert(1)><style>*{}</style>"


def hostile() -> Played:
    return stored_turns.played(title=HOSTILE, tool=HOSTILE, value=HOSTILE, result=HOSTILE * 3)


def test_the_page_runs_and_loads_nothing_whatever_was_said() -> None:
    html = export_text("html", hostile().conversation, with_events=True)
    assert [name for name in acting(html) if name != "style"] == []
    assert html.count("<style") == 1
    assert "script" not in names(html)
    assert "default-src 'none'" in html
    assert "&lt;script&gt;alert(1)" in html


def test_a_file_name_is_one_whatever_the_title_is() -> None:
    conversation = hostile().conversation
    for title in (HOSTILE, "../../etc/passwd", "a\r\nX: y", "", "日本 語", "x" * 200, "…", "."):
        conversation.title = title[:200]
        name = name_file(conversation, "md")
        assert name.endswith(f"-{str(conversation.public_id)[:8]}.md")
        assert not set(name) & set("/\\\r\n\"'<>: ")
        assert len(name) < 90


def test_all_is_what_is_ones_own_and_not_in_the_trash() -> None:
    mine, archived, thrown = (stored_turns.played(title=title) for title in ("a", "b", "c"))
    stored_turns.played("bob")
    archive_conversation(conversation=archived.conversation, is_archived=True)
    delete_conversation(conversation=thrown.conversation)
    assert list(list_exported(mine.user)) == [mine.conversation, archived.conversation]


def test_times_and_titles_of_a_record_are_taken_over_when_they_can_be_true() -> None:
    def put(name: str, **values: Any) -> Conversation:
        record = {"id": name, "messages": [{"role": "user", "content": "Hi"}]} | values
        owner = people_and_turns.User.objects.get_or_create(username="ada")[0]
        return import_recording(
            user=owner, recording=parse_recording(record), model=stored_turns.MODEL
        )

    dated = put("a", created_at="2024-05-01T10:00:00Z", updated_at="2024-05-02T10:00:00.5+02:00")
    assert dated.created_at.isoformat() == "2024-05-01T10:00:00+00:00"
    assert dated.updated_at.isoformat() == "2024-05-02T10:00:00.500000+02:00"
    for number, odd in enumerate(("2999-01-01T00:00:00Z", "0001-01-01", "soon", 7, None, [])):
        assert put(f"b{number}", created_at=odd, updated_at=odd).created_at.year >= 2025
    assert put("c", title="  My\ntitle\0 ").title == "My title"
    assert put("d", title=7).title == "d · Hi"
    assert put("e", title="x" * 900).title == "x" * 200


def test_the_command_writes_what_the_import_command_reads(tmp_path: Path) -> None:
    played = stored_turns.played()
    people_and_turns.person("bob")
    out = StringIO()
    call_command("export_conversation", str(played.conversation.public_id), stdout=out)
    whole_user = StringIO()
    call_command("export_conversation", "--user", "ada", stdout=whole_user)
    assert out.getvalue() == whole_user.getvalue()
    markdown = StringIO()
    call_command("export_conversation", "--user", "ada", "--format", "md", stdout=markdown)
    assert markdown.getvalue().startswith("# ")
    file = tmp_path / "a.jsonl"
    file.write_text(out.getvalue(), "utf-8")
    call_command("import_conversation", str(file), "--user", "bob", stdout=StringIO())
    copy = Conversation.objects.get(owner__username="bob")
    assert contents(copy) == contents(played.conversation)
    for wrong in ((), ("x",), (str(uuid4()),), ("--user", "eve"), ("x", "--user", "ada")):
        with pytest.raises(CommandError):
            call_command("export_conversation", *wrong)
