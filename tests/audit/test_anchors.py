"""Anchors outside the database show what the database alone cannot: a lost end, another chain."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError, connection, transaction
from django.utils import timezone

from conversations.audit import anchors
from conversations.audit.anchor_file import AnchorError
from conversations.audit.anchors import anchor_heads, anchor_if_due
from conversations.audit.verify import Problem, Tally, verify_conversation, verify_everything
from conversations.budgets.grants import grant_more
from conversations.library.conversations import delete_everything
from conversations.library.erase import erase_due_conversations
from conversations.log.chain import OWNED, compute_link
from conversations.log.triggers import list_guard_verbs, list_guarded_models
from conversations.models import AnchorMark, Chained, Conversation, Grant, SiteChain
from conversations.transfer.importing import import_recording
from conversations.transfer.recordings import AlreadyImported, read_record
from tests.support import people_and_turns, stored_turns

pytestmark = pytest.mark.django_db


@pytest.fixture
def path(tmp_path: Path, settings: Any) -> Path:
    file = tmp_path / "elsewhere" / "anchors.jsonl"
    settings.AGENTWEB_ANCHOR_FILE = str(file)
    return file


@pytest.fixture
def unguarded() -> None:
    """Take away what keeps a superuser from changing the record."""
    with connection.cursor() as cursor:
        for kind in list_guarded_models():
            table = kind._meta.db_table
            where = f' ON "{table}"' if connection.vendor == "postgresql" else ""
            for verb in list_guard_verbs(kind):
                cursor.execute(f'DROP TRIGGER "{table}_keep_{verb}"{where}')


def found() -> list[Problem]:
    return list(verify_everything(Tally()))


def texts() -> list[str]:
    return [str(problem) for problem in found()]


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def rows_of(conversation: Conversation) -> list[Chained]:
    """Give the chain's rows, the last first."""
    rows = [
        row
        for kind, owner in OWNED.items()
        for row in kind._base_manager.filter(**{owner: conversation.pk})
    ]
    return sorted(rows, key=lambda row: -row.link)


def cut(conversation: Conversation, count: int) -> None:
    """Delete the last rows and turn the conversation's end back, as if they had never been."""
    gone, (last, *_) = rows_of(conversation)[:count], rows_of(conversation)[count:]
    for row in gone:
        row_of = type(row)._base_manager.filter(pk=row.pk)
        row_of._raw_delete(row_of.db)
    Conversation.objects.filter(pk=conversation.pk).update(links=last.link, chain=last.chain)


@contextmanager
def turned_back() -> Iterator[None]:
    """Let the database forget what happens meanwhile; the anchors do not."""
    place = transaction.savepoint()
    yield
    transaction.savepoint_rollback(place)


def rechain(conversation: Conversation, changed: Callable[[Chained], bool]) -> None:
    """Change a row and compute every link anew, so that the chain is whole again."""
    before = ""
    for row in reversed(rows_of(conversation)):
        values: dict[str, Any] = {}
        if changed(row):
            values = {"estimate": 7}
            row.estimate = 7  # type: ignore[attr-defined]
        row.chain = before = compute_link(before, row)
        type(row)._base_manager.filter(pk=row.pk).update(chain=row.chain, **values)
    Conversation.objects.filter(pk=conversation.pk).update(chain=before)


def is_answer(row: Chained) -> bool:
    return type(row).__name__ == "Message" and getattr(row, "kind", "") == "answer"


def test_what_was_anchored_is_clean_and_only_what_has_grown_is_anchored_again(path: Path) -> None:
    first, second = stored_turns.played(), stored_turns.played("bea")
    assert anchor_heads() == 3
    assert anchor_heads() == 0
    people_and_turns.answered(people_and_turns.next_turn(second.conversation))
    grant_more(budget=second.user.budgets.get(), amount=5, reason="a trial")
    assert anchor_heads() == 2
    one, two = lines(path)
    assert {head[0] for head in one["heads"]} == {
        "site",
        *(str(played.conversation.public_id) for played in (first, second)),
    }
    assert {head[0] for head in two["heads"]} == {str(second.conversation.public_id), "site"}
    assert (one["anchor"], two["anchor"], one["before"]) == (1, 2, "")
    assert two["before"].startswith("sha256:")
    assert found() == []


def test_an_anchor_is_due_once_an_hour_and_says_so_in_the_log(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    stored_turns.played()
    with caplog.at_level(logging.INFO, "agentweb.audit"):
        assert (anchor_if_due(), anchor_if_due()) == (2, 0)
    assert "anchor 1 of 2 chains: sha256:" in caplog.text
    stored_turns.played("bea")
    assert anchor_if_due() == 0
    AnchorMark.objects.update(written_at=timezone.now() - timedelta(minutes=61))
    assert anchor_if_due() == 2


def test_a_clock_that_ran_far_ahead_once_does_not_end_the_anchors(path: Path) -> None:
    stored_turns.played()
    anchor_heads(now=timezone.now() + timedelta(days=365))
    stored_turns.played("bea")
    assert (anchor_if_due(), len(lines(path))) == (2, 2)


@pytest.mark.usefixtures("unguarded")
def test_rows_deleted_from_the_end_with_the_end_turned_back_are_missed(path: Path) -> None:
    conversation = stored_turns.played().conversation
    conversation.refresh_from_db()
    with turned_back():
        cut(conversation, 3)
        assert not any("anchor" in problem.what for problem in found())
    call_command("anchor", verbosity=0)
    with turned_back():
        cut(conversation, 3)
        problem = next(p for p in found() if "anchor 1" in p.what)
        assert (problem.table, problem.id) == ("link", str(conversation.links - 2))
        assert problem.conversation == str(conversation.public_id)
        assert problem.what.startswith("missing: no row stands here nor up to link")
        assert list(verify_conversation(conversation.public_id, Tally()))
    assert found() == []


@pytest.mark.usefixtures("unguarded")
def test_a_chain_that_was_written_anew_as_a_whole_is_named_at_the_first_anchored_row(
    path: Path,
) -> None:
    conversation = stored_turns.played().conversation
    anchor_heads()
    conversation.refresh_from_db()
    anchored = rows_of(conversation)[0]
    rechain(conversation, is_answer)
    problem = found()[0]
    assert (problem.table, problem.id) == (anchored._meta.model_name, str(anchored.pk))
    assert problem.what.startswith("replaced: anchor 1 of 20")
    # Growing on does not hide it, nor does a later anchor.
    people_and_turns.answered(people_and_turns.next_turn(conversation))
    anchor_heads()
    assert found()[0].id == str(anchored.pk)


@pytest.mark.usefixtures("unguarded")
def test_a_conversation_that_is_gone_without_an_erasure_is_missed(path: Path) -> None:
    user, other = stored_turns.played().user, stored_turns.played("bea")
    anchor_heads()
    delete_everything(owner_id=user.pk)
    assert erase_due_conversations(owner_id=user.pk) == 1
    assert found() == []
    anchor_heads()
    assert found() == []
    delete_everything(owner_id=other.user.pk)
    assert erase_due_conversations(owner_id=other.user.pk) == 1
    name = str(other.conversation.public_id)
    with connection.cursor() as cursor:
        column = name.replace("-", "") if connection.vendor == "sqlite" else name
        cursor.execute("DELETE FROM conversations_eraseddigests")
        cursor.execute("DELETE FROM conversations_erasure WHERE conversation = %s", [column])
    problems = found()
    assert ("conversation", name) in {(problem.table, problem.id) for problem in problems}
    assert any(problem.table == "link" for problem in problems)


def test_a_record_that_comes_in_again_after_its_erasure_contradicts_no_anchor(path: Path) -> None:
    user = people_and_turns.person()
    record = read_record(b'{"id": "a", "messages": [{"role": "user", "content": "Hi"}]}')
    names = set()
    for _ in range(3):
        copy = import_recording(user=user, recording=record, model=stored_turns.MODEL)
        with pytest.raises(AlreadyImported):
            import_recording(user=user, recording=record, model=stored_turns.MODEL)
        anchor_heads()
        assert found() == []
        names.add(copy.public_id)
        delete_everything(owner_id=user.pk)
        assert erase_due_conversations(owner_id=user.pk) == 1
        assert found() == []
    assert len(names) == 3


def test_an_older_database_is_one_fact_until_somebody_says_a_backup_was_put_back(
    path: Path,
) -> None:
    places = [stored_turns.played(name).conversation for name in ("ada", "bea", "cid")]
    anchor_heads()
    with turned_back():
        for conversation in places:
            people_and_turns.answered(people_and_turns.next_turn(conversation))
        anchor_heads()
        stored_turns.played("dan")
        anchor_heads()
    (problem,) = found()
    assert problem.what.startswith("older than its anchors: it knows anchor 1 at ")
    assert "5 chains have lost rows since, the first is " in problem.what
    with pytest.raises(AnchorError, match="is older than its anchors"):
        anchor_heads()
    call_command("anchor", restored="the disk broke", verbosity=0)
    assert lines(path)[-1]["reason"] == "the disk broke"
    assert lines(path)[-1]["back_to"] == 1
    assert found() == []
    people_and_turns.answered(people_and_turns.next_turn(places[0]))
    assert anchor_heads() == 1
    assert found() == []


def test_a_restore_is_recorded_in_no_file_of_another_database(path: Path) -> None:
    stored_turns.played()
    anchor_heads()
    with turned_back():
        path.rename(path.with_name("own"))
        AnchorMark.objects.all().delete()
        for name in ("bea", "cid"):
            stored_turns.played(name)
            anchor_heads()
    whole = path.read_bytes()
    with pytest.raises(CommandError, match="is not the one in which"):
        call_command("anchor", restored="the disk broke", verbosity=0)
    assert path.read_bytes() == whole


def test_a_restore_is_recorded_in_a_file_begun_anew_after_the_backup(path: Path) -> None:
    stored_turns.played()
    anchor_heads()
    with turned_back():
        path.rename(path.with_name("lost"))
        call_command("anchor", new_file="the file is lost", verbosity=0)
        stored_turns.played("bea")
        anchor_heads()
    call_command("anchor", restored="the disk broke", verbosity=0)
    assert lines(path)[-1]["back_to"] == 1
    assert found() == []


def test_of_an_older_database_what_was_changed_in_it_is_named_as_well(
    path: Path, unguarded: None
) -> None:
    place = stored_turns.played().conversation
    anchor_heads()
    with turned_back():
        people_and_turns.answered(people_and_turns.next_turn(place))
        anchor_heads()
    rechain(place, is_answer)
    tables = [problem.table for problem in found()]
    assert tables[0] == "database"
    assert len(tables) > 1


def test_what_a_crash_left_ahead_of_the_database_is_taken_over(path: Path) -> None:
    stored_turns.played()
    anchor_heads()
    mark = AnchorMark.objects.values().get()
    stored_turns.played("bea")
    anchor_heads()
    AnchorMark.objects.update(**mark)
    Conversation.objects.update(anchored=0)
    with path.open("a") as file:
        file.write('{"anchor": 3, "at": "20')
    assert found() == []
    assert anchor_heads() == 2
    assert found() == []
    numbers = [line["anchor"] for line in map(json.loads, complete_lines(path))]
    assert numbers == [1, 2, 3]


def complete_lines(path: Path) -> list[str]:
    return [line for line in path.read_text().splitlines() if line.endswith("}")]


@pytest.mark.parametrize("where", ["first", "middle", "last"])
def test_a_changed_or_removed_line_of_the_file_is_named(path: Path, where: str) -> None:
    for name in ("ada", "bea", "cid"):
        stored_turns.played(name)
        anchor_heads()
    text = path.read_text().splitlines(keepends=True)
    at = {"first": 0, "middle": 1, "last": 2}[where]
    path.write_text("".join(text[:at] + text[at + 1 :]))
    assert [problem.table for problem in found()] == ["anchors"]
    changed = text[at].replace('"at":"20', '"at":"21')
    path.write_text("".join([*text[:at], changed, *text[at + 1 :]]))
    assert [problem.table for problem in found()] == ["anchors"]
    path.write_text("".join(text))
    assert found() == []


def test_a_lost_file_is_missed_and_begun_anew_with_a_reason(path: Path) -> None:
    stored_turns.played()
    anchor_heads()
    path.unlink()
    assert ["missing: the database was anchored 1 times" in text for text in texts()] == [True]
    one = Conversation.objects.get()
    assert list(verify_conversation(one.public_id, Tally())) == found()
    with pytest.raises(CommandError, match="begin anew with"):
        call_command("anchor", verbosity=0)
    path.unlink(missing_ok=True)
    call_command("anchor", new_file="the disk was lost", verbosity=0)
    assert (lines(path)[0]["anchor"], lines(path)[0]["before"]) == (2, "")
    assert found() == []


def test_a_file_that_cannot_be_written_is_said_once_and_nothing_else_fails(
    path: Path, settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    stored_turns.played()
    path.parent.parent.joinpath("file").write_text("")
    settings.AGENTWEB_ANCHOR_FILE = str(path.parent.parent / "file" / "anchors.jsonl")
    assert (anchor_if_due(), anchor_if_due()) == (0, 0)
    anchors._pause.until = 0
    assert caplog.text.count("could not be anchored") == 1


@pytest.mark.usefixtures("unguarded")
def test_a_changed_link_of_the_sites_chain_is_named(path: Path) -> None:
    user = stored_turns.played().user
    for amount in (1, 2, 3):
        grant_more(budget=user.budgets.get(), amount=amount, reason="a trial")
    anchor_heads()
    assert found() == []
    middle = Grant.objects.get(amount=2)
    Grant.objects.filter(pk=middle.pk).update(amount=2_000)
    assert [(p.table, p.id) for p in found()] == [("grant", str(middle.pk))]
    Grant.objects.filter(pk=middle.pk).update(amount=2)
    rows = Grant.objects.filter(amount=3)
    rows._raw_delete(rows.db)
    SiteChain.objects.update(links=middle.link, chain=middle.chain)
    assert [(p.table, p.id) for p in found()] == [("link", str(middle.link + 1))]


def test_no_anchors_are_asked_for_where_they_are_off(settings: Any) -> None:
    settings.AGENTWEB_ANCHOR_FILE = "off"
    stored_turns.played()
    assert anchor_if_due() == 0
    assert found() == []


@pytest.mark.django_db(transaction=True)
def test_what_writes_the_file_is_not_run_again_by_itself(path: Path, monkeypatch: Any) -> None:
    people_and_turns.started_turn()
    tries = []

    def end(_: dict[int, int]) -> None:
        tries.append(1)
        conflict = OperationalError("deadlock detected")
        conflict.__cause__ = _Deadlock()
        raise conflict

    with monkeypatch.context() as ended:
        ended.setattr(anchors, "_mark_anchored", end)
        with pytest.raises(OperationalError, match="deadlock"):
            anchor_heads()
    assert len(tries) == 1
    # The line is on the disk; the next run finds it, as after a crash.
    assert len(lines(path)) == 1
    anchor_heads()
    assert texts() == []


class _Deadlock(Exception):
    sqlstate = "40P01"
