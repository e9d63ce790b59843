"""Verification finds what was changed, lost or moved, and names it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection, transaction

from conversations.audit.verify import Problem, Tally, verify_conversation, verify_everything
from conversations.context.steps import api_clearing
from conversations.log.triggers import list_guarded_tables
from conversations.models import (
    ApiCall,
    ApiResult,
    Blob,
    Budget,
    BudgetWindow,
    Conversation,
    Envelope,
    LedgerEntry,
    Reservation,
    ToolCall,
    Transformation,
    Turn,
    User,
)
from conversations.models import Message as MessageRow
from conversations.turns import takeovers
from tests.support import people_and_turns, stored_turns
from tests.support.stored_turns import played

pytestmark = pytest.mark.django_db


def found() -> tuple[Tally, list[Problem]]:
    tally = Tally()
    problems = list(verify_everything(tally))
    assert tally.problems == len(problems)
    return tally, problems


def named(problems: list[Problem]) -> set[tuple[str, str]]:
    return {(problem.table, problem.id) for problem in problems}


@pytest.fixture
def unguarded() -> Callable[..., None]:
    """Give a way to write what the triggers and checks of the database would refuse."""
    postgres = connection.vendor == "postgresql"
    with connection.cursor() as cursor:
        for table in list_guarded_tables():
            for verb in ("update", "delete", "place"):
                where = f' ON "{table}"' if postgres else ""
                cursor.execute(f'DROP TRIGGER IF EXISTS "{table}_keep_{verb}"{where}')
        if not postgres:
            cursor.execute("PRAGMA ignore_check_constraints = ON")

    def execute(sql: str, *values: Any) -> None:
        with connection.cursor() as cursor:
            cursor.execute(sql, values)
            assert cursor.rowcount > 0

    return execute


@pytest.fixture(autouse=True)
def checks_return() -> Any:
    yield
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA ignore_check_constraints = OFF")


def test_an_untouched_database_is_clean() -> None:
    played()
    played("bea")
    tally, problems = found()
    assert problems == []
    assert str(tally) == "2 conversations, 6 calls verified, 0 mismatches, chain intact"


def test_an_empty_database_is_clean() -> None:
    assert str(found()[0]) == "0 conversations, 0 calls verified, 0 mismatches, chain intact"


def test_a_turn_that_lost_its_worker_is_clean() -> None:
    user = User.objects.create(username="ada")
    Budget.objects.create(user=user, limit=10**9)
    takeovers.take_over_turn(turn_id=played().turn.pk, everything=True)
    assert found()[1] == []


#: A text column of each chained table, and one of each kind that is no text.
FLIPS = [
    (MessageRow, "content", "4711", "4712"),
    (MessageRow, "kind", "results", "resultz"),
    (Transformation, "edits", "short", "shorn"),
    (Transformation, "policy", "classic", "klassic"),
    (Transformation, "note", "tool", "fool"),
    (ApiCall, "body_digest", "sha256:", "sha257:"),
    (ApiCall, "binding", "sha256:", "sha257:"),
    (ApiResult, "usage", "{", "["),
    (ApiResult, "stop_reason", "end_turn", "end_tern"),
]


@pytest.mark.parametrize(("kind", "column", "old", "new"), FLIPS)
def test_one_changed_byte_of_a_chained_row_is_named(
    kind: Any, column: str, old: str, new: str, unguarded: Callable[..., None]
) -> None:
    played()
    row = kind.objects.filter(**{f"{column}__contains": old}).first()
    text = getattr(row, column).replace(old, new, 1)
    unguarded(f'UPDATE "{kind._meta.db_table}" SET "{column}" = %s WHERE id = %s', text, row.pk)
    tally, problems = found()
    assert (kind._meta.model_name, str(row.pk)) in named(problems)
    assert "chain broken in 1" in str(tally)
    assert any("changed" in problem.what for problem in problems)


@pytest.mark.parametrize(
    ("kind", "column"),
    [
        (MessageRow, "estimate"), (MessageRow, "parent"), (Transformation, "threshold"),
        (ApiCall, "max_tokens"), (ApiResult, "cost_micros"), (ApiResult, "duration_ms"),
    ],
)  # fmt: skip
def test_one_changed_number_of_a_chained_row_is_named(
    kind: Any, column: str, unguarded: Callable[..., None]
) -> None:
    played()
    row = kind.objects.latest("pk")
    table = kind._meta.db_table
    unguarded(f'UPDATE "{table}" SET "{column}" = "{column}" - 1 WHERE id = %s', row.pk)
    assert (kind._meta.model_name, str(row.pk)) in named(found()[1])


def test_a_changed_message_makes_its_requests_mismatch(unguarded: Callable[..., None]) -> None:
    place = played()
    row = MessageRow.objects.get(kind="prompt")
    changed = row.content.replace("Read", "Rend")
    unguarded("UPDATE conversations_message SET content = %s WHERE id = %s", changed, row.pk)
    tally, problems = found()
    replies = ApiCall.objects.filter(purpose="reply").values_list("pk", flat=True)
    assert {("apicall", str(key)) for key in replies} <= named(problems)
    assert (tally.verified, tally.mismatches) == (1, 2)
    assert all(problem.conversation == str(place.conversation.public_id) for problem in problems)


@pytest.mark.parametrize(
    ("kind", "column"), [(Envelope, "text"), (Envelope, "headers"), (Blob, "text")]
)
def test_one_changed_byte_of_a_named_text_is_named(
    kind: Any, column: str, unguarded: Callable[..., None]
) -> None:
    played()
    for row in kind.objects.all():
        sql = f'UPDATE "{kind._meta.db_table}" SET "{column}" = %s WHERE digest = %s'
        before = getattr(row, column)
        unguarded(sql, before[:-1] + "~", row.pk)
        assert (kind._meta.model_name, row.pk) in named(found()[1])
        unguarded(sql, before, row.pk)
    assert found()[1] == []


@pytest.mark.parametrize(
    ("sql", "kind"),
    [
        ("UPDATE conversations_ledgerentry SET amount = amount + 1 WHERE id = %s", LedgerEntry),
        ("UPDATE conversations_ledgerentry SET kind = 'adjust' WHERE id = %s", LedgerEntry),
        ("DELETE FROM conversations_ledgerentry WHERE id = %s", LedgerEntry),
        ("UPDATE conversations_reservation SET amount = amount + 1 WHERE id = %s", Reservation),
        ("UPDATE conversations_reservation SET is_open = NOT is_open WHERE id = %s", Reservation),
        ("UPDATE conversations_budgetwindow SET spent = 7 WHERE id = %s", BudgetWindow),
        ("UPDATE conversations_budgetwindow SET held = 7 WHERE id = %s", BudgetWindow),
        ("UPDATE conversations_budgetwindow SET overrun = 7 WHERE id = %s", BudgetWindow),
    ],
)
def test_money_that_does_not_add_up_is_named(
    sql: str, kind: Any, unguarded: Callable[..., None]
) -> None:
    played()
    row = kind.objects.earliest("pk")
    unguarded(sql, row.pk)
    tally, problems = found()
    tables = {table for table, _ in named(problems)}
    assert tables
    assert tables <= {"budgetwindow", "reservation", "ledgerentry", "link"}
    assert (tally.broken_chains, tally.mismatches) == (int(kind is LedgerEntry), 0)


@pytest.mark.parametrize("column", ["input", "tool_use_id"])
def test_a_changed_tool_call_is_named(column: str, unguarded: Callable[..., None]) -> None:
    played()
    row = ToolCall.objects.get()
    text = "_".join(getattr(row, column).rsplit("t", 1))
    unguarded(f"UPDATE conversations_toolcall SET {column} = %s", text)
    assert named(found()[1]) == {("toolcall", str(row.pk))}


def test_a_tool_call_of_another_name_or_answer_is_named(unguarded: Callable[..., None]) -> None:
    played()
    prompt = MessageRow.objects.get(kind="prompt")
    for column, value in (("name", "write_file"), ("answer_id", prompt.pk)):
        unguarded(f"UPDATE conversations_toolcall SET {column} = %s", value)
        assert {table for table, _ in named(found()[1])} == {"toolcall"}


def test_another_output_of_a_tool_call_is_named(unguarded: Callable[..., None]) -> None:
    played()
    other = Blob.objects.exclude(pk=ToolCall.objects.get().output_id).first()
    unguarded("UPDATE conversations_toolcall SET output_id = %s", other.pk)  # type: ignore[union-attr]
    assert ("toolcall", str(ToolCall.objects.get().pk)) in named(found()[1])


@pytest.mark.parametrize("which", ["first", "middle", "last"])
def test_a_deleted_row_is_missed(which: str, unguarded: Callable[..., None]) -> None:
    conversation = played().conversation
    link = {"first": 1, "middle": 5, "last": conversation.links}[which]
    kinds: tuple[Any, ...] = (MessageRow, Transformation, ApiCall, ApiResult, LedgerEntry)
    (row,) = (row for kind in kinds for row in kind.objects.filter(link=link))
    unguarded(f"DELETE FROM {row._meta.db_table} WHERE id = %s", row.pk)
    problems = found()[1]
    type(row).objects.bulk_create([row])  # the test ends with every foreign key at home
    assert ("link", str(link)) in named(problems)
    assert next(problem for problem in problems if problem.table == "link").what.startswith(
        "missing: no row stands here"
    )
    assert found()[1] == []


def test_two_swapped_rows_are_named_with_each_other(unguarded: Callable[..., None]) -> None:
    played()
    one, two = MessageRow.objects.filter(kind="answer").order_by("seq")
    table = "conversations_message"
    for links in (f"link = CASE id WHEN {one.pk} THEN {two.link} ELSE {one.link} END", None):
        columns = links or (
            f"link = CASE id WHEN {one.pk} THEN {one.link} ELSE {two.link} END,"
            f" content = CASE id WHEN {one.pk} THEN '{two.content}' ELSE '{one.content}' END,"
            f" estimate = CASE id WHEN {one.pk} THEN {two.estimate} ELSE {one.estimate} END"
        )
        unguarded(f"UPDATE {table} SET {columns} WHERE id IN ({one.pk}, {two.pk})")
        first = next(p for p in found()[1] if "link" in p.what)
        assert first.table == "message"
        assert first.id in (str(one.pk), str(two.pk))
        assert "swapped" in first.what or links is None


def test_swapped_links_and_chains_are_named(unguarded: Callable[..., None]) -> None:
    played()
    one, two = MessageRow.objects.filter(kind="answer").order_by("seq")
    for row, other in ((one, two), (two, one)):
        sql = "UPDATE conversations_message SET link = %s, chain = %s WHERE id = %s"
        unguarded(sql, other.link, other.chain, row.pk)
    first = found()[1][0]
    assert (first.table, first.id) == ("message", str(two.pk))
    assert first.what.startswith(f"swapped: message {one.pk} belongs at its link {one.link}")


def test_a_row_behind_the_end_and_one_written_twice_are_named(
    unguarded: Callable[..., None],
) -> None:
    conversation = played().conversation
    row = MessageRow.objects.latest("pk")
    for link in (conversation.links + 5, 2):
        unguarded("UPDATE conversations_message SET link = %s WHERE id = %s", link, row.pk)
        tally, problems = found()
        assert tally.broken_chains == 1
        assert "more that do not fit" in problems[0].what


@pytest.mark.parametrize("column", ["links", "chain", "head", "tip"])
def test_a_changed_end_of_the_conversation_is_named(
    column: str, unguarded: Callable[..., None]
) -> None:
    conversation = played().conversation
    value = "sha256:0" if column == "chain" else getattr(conversation, column) + 1
    unguarded(f"UPDATE conversations_conversation SET {column} = %s", value)
    assert found()[0].broken_chains == 1


@pytest.mark.parametrize(
    ("table", "column", "value"),
    [
        ("message", "content", "[{"), ("message", "content", "["), ("message", "content", "7"),
        ("message", "content", '[{"type":5}]'), ("message", "kind", "other"),
        ("transformation", "edits", "[[1]]"), ("transformation", "edits", "{"),
        ("transformation", "edits", '[["messages",1,9,[[1]]]]'), ("transformation", "kind", "x"),
        ("envelope", "text", ""), ("blob", "text", ""), ("toolcall", "input", "{"),
        ("apiresult", "usage", ""), ("apicall", "tip", 999),
    ],
)  # fmt: skip
def test_rows_that_cannot_be_parsed_are_problems(
    table: str, column: str, value: object, unguarded: Callable[..., None]
) -> None:
    played()
    key = "digest" if table in ("envelope", "blob") else "id"
    one = f"{key} = (SELECT MIN({key}) FROM conversations_{table})"
    unguarded(f"UPDATE conversations_{table} SET {column} = %s WHERE {one}", value)
    tally, _ = found()
    assert not tally.is_clean


#: Not part of the record: when and how a tool ran is for people.
UNCHAINED = {"id", "details", "started_at", "ended_at", "effect", "state", "position", "is_private"}


@pytest.mark.only_database("sqlite", "PostgreSQL takes no such bytes")
@pytest.mark.parametrize(
    "kind", [MessageRow, Transformation, ApiCall, ApiResult, Blob, Envelope, ToolCall, Conversation]
)
def test_bytes_that_are_no_text_are_problems_in_every_column(
    kind: Any, unguarded: Callable[..., None]
) -> None:
    played()
    table = kind._meta.db_table
    columns = {field.column for field in kind._meta.concrete_fields} - UNCHAINED
    if kind in (Blob, Envelope, ToolCall):
        columns -= {"created_at", "turn_id"}
    if kind is Conversation:
        columns = {"links", "chain", "head", "tip", "created_at"}
    one = f'WHERE rowid = (SELECT MIN(rowid) FROM "{table}")'
    for column in columns:
        with transaction.atomic():
            unguarded(f'UPDATE "{table}" SET "{column}" = CAST(X\'C3FF41\' AS TEXT) {one}')
            assert not found()[0].is_clean, column
            transaction.set_rollback(True)
    assert found()[0].is_clean


def test_one_conversation_is_verified_by_itself(unguarded: Callable[..., None]) -> None:
    mine, other = played(), played("bea")
    row = MessageRow.objects.filter(conversation=other.conversation).latest("pk")
    unguarded("UPDATE conversations_message SET content = '[]' WHERE id = %s", row.pk)
    tally = Tally()
    assert list(verify_conversation(mine.conversation.public_id, tally)) == []
    assert (tally.conversations, tally.verified) == (1, 3)
    assert list(verify_conversation(other.conversation.public_id, tally))


def test_a_message_that_is_no_json_leaves_a_body_that_cannot_be_rebuilt(
    unguarded: Callable[..., None],
) -> None:
    place = played()
    row = MessageRow.objects.filter(conversation=place.conversation, kind="answer").earliest("pk")
    unguarded("UPDATE conversations_message SET content = '[oops' WHERE id = %s", row.pk)
    bodies = [problem.what for problem in found()[1] if problem.table == "apicall"]
    assert bodies
    assert all("its body cannot be rebuilt: " in what for what in bodies)


def test_a_live_turn_is_clean() -> None:
    place = played()
    Turn.objects.filter(pk=place.turn.pk).update(state="running")
    assert found()[1] == []


def test_the_headers_of_a_request_are_part_of_what_is_verified(
    unguarded: Callable[..., None],
) -> None:
    lease = people_and_turns.started_turn()
    asked = api_clearing.build_compaction_envelope(stored_turns.ENVELOPE)
    sent = people_and_turns.opened(lease, asked)
    stored_turns.close(lease, sent.call, people_and_turns.complete())
    assert sent.headers == {"anthropic-beta": api_clearing.COMPACTION}
    row = Envelope.objects.get()
    assert (row.digest, row.text) == (asked.digest, asked.text)
    assert found()[1] == []
    for headers in ("{}", row.headers.replace("09", "10")):
        unguarded("UPDATE conversations_envelope SET headers = %s", headers)
        assert ("envelope", row.digest) in named(found()[1])
