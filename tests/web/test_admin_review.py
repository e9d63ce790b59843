"""Staff see the record unchanged: read-only, escaped, content only with its permission."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission
from django.db import connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from conversations.accounts.reading_log import READ
from conversations.admin.base import short_id
from conversations.log import leases
from conversations.log.chain import append_row, lock_site_chain
from conversations.log.triggers import list_guarded_tables
from conversations.models import (
    ApiCall,
    BudgetWindow,
    Conversation,
    DatabaseMove,
    LedgerEntry,
    Message,
    Reservation,
    ToolCall,
    Transformation,
    Turn,
    User,
)
from conversations.turns import turns
from tests.support import people_and_turns, stored_turns
from tests.support.stored_turns import Played, played

pytestmark = pytest.mark.django_db
READ_ONLY = (
    Conversation, Turn, ApiCall, Transformation, ToolCall, BudgetWindow, Reservation, LedgerEntry,
)  # fmt: skip
PAYLOAD = "<img src=x onerror=alert(1)>"


def staff(name: str, *permissions: str) -> Client:
    """Return a client of a staff member who may view every table and has these permissions."""
    user = User.objects.create(username=name, is_staff=True)
    allowed = Permission.objects.filter(codename__startswith="view_")
    user.user_permissions.add(*allowed, *Permission.objects.filter(codename__in=permissions))
    client = Client()
    client.force_login(user)
    return client


def superuser() -> Client:
    client = Client()
    client.force_login(User.objects.create(username="root", is_staff=True, is_superuser=True))
    return client


def page(client: Client, row: Any, view: str = "change", status: int = 200) -> str:
    names = {"body": "admin:apicall_body", "read": "admin:conversation_read"}
    default = f"admin:{row._meta.app_label}_{row._meta.model_name}_{view}"
    response = client.get(reverse(names.get(view, default), args=[row.pk]))
    assert response.status_code == status, (response.status_code, row)
    return response.content.decode()


def listed(client: Client, kind: Any, query: str = "") -> str:
    url = reverse(f"admin:{kind._meta.app_label}_{kind._meta.model_name}_changelist")
    response = client.get(url + query)
    assert response.status_code == 200, (kind, response.status_code)
    return response.content.decode()


def compaction() -> Transformation:
    return Transformation.objects.get(kind="compaction")


@pytest.mark.parametrize("kind", READ_ONLY)
def test_the_record_is_read_only(kind: Any) -> None:
    played()
    client, row = superuser(), kind.objects.latest("pk")
    base = f"admin:conversations_{kind._meta.model_name}"
    assert client.get(reverse(f"{base}_add")).status_code == 403
    assert client.get(reverse(f"{base}_delete", args=[row.pk])).status_code == 403
    assert client.post(reverse(f"{base}_change", args=[row.pk]), {"note": "x"}).status_code == 403
    posted = {"action": "delete_selected", "_selected_action": row.pk, "post": "yes"}
    client.post(reverse(f"{base}_changelist"), posted)
    assert kind.objects.filter(pk=row.pk).exists()
    text = page(client, row)
    assert "submit-row" not in text or 'name="_save"' not in text


def test_moves_of_the_database_are_shown_and_stay_as_they_are() -> None:
    move = DatabaseMove(
        source="sqlite", target="postgresql", rows=1_234_567, digest="sha256:abc",
        begun_at=timezone.now(),
    )  # fmt: skip
    with transaction.atomic():
        append_row(move, lock_site_chain())
    client = staff("auditor")
    for text in (listed(client, DatabaseMove), page(client, move)):
        assert "1,234,567" in text
        assert "sha256:abc" in text
    url = reverse("admin:conversations_databasemove_change", args=[move.pk])
    assert superuser().post(url, {"rows": 1}).status_code == 403


@pytest.mark.parametrize("kind", [*READ_ONLY, User, LogEntry])
def test_a_list_costs_the_same_however_long_it_is(kind: Any) -> None:
    client = superuser()
    counts = []
    for name in ("ada", "bea", "cleo"):
        played(name)
        page(client, Conversation.objects.latest("pk"), "read")
        with CaptureQueriesContext(
            connection,
        ) as queries:
            listed(client, kind)
        counts.append(len(queries))
    assert counts[1] == counts[2]
    assert counts[2] <= 16


WIRE = re.compile(r'"(content|edits|policy|input|instructions|text|usage|details)"')


@pytest.mark.parametrize("kind", READ_ONLY)
def test_a_list_does_not_load_wire_text(kind: Any) -> None:
    played()
    client = superuser()
    with CaptureQueriesContext(connection) as queries:
        listed(client, kind)
    table = f'FROM "{kind._meta.db_table}"'
    rows = [q["sql"] for q in queries if table in q["sql"] and "COUNT(" not in q["sql"]]
    assert rows
    for sql in rows:
        selected = sql.split(" FROM ")[0]
        columns = re.findall(r'"(conversations_\w+)"\."(\w+)"', selected)
        heavy = {"content", "edits", "input", "instructions", "text", "usage", "details"}
        assert not [pair for pair in columns if pair[1] in heavy]
        own = {name for table, name in columns if table != "conversations_user"}
        assert "policy" not in own


@pytest.mark.parametrize(
    ("kind", "query"),
    [
        (Transformation, "?kind__exact=compaction&outcome__exact=applied&user={user}"),
        (Transformation, "?q=ada"), (Transformation, "?created_at__year=2026"),
        (ApiCall, "?purpose__exact=summary&result__status__exact=complete&user={user}"),
        (ApiCall, "?model=claude-sonnet-5-5"), (ApiCall, "?conversation__id__exact={key}"),
        (Conversation, "?user={user}&model=claude-sonnet-5-5"), (Conversation, "?q={uuid}"),
        (Turn, "?state__exact=done&user={user}&conversation__id__exact={key}"),
        (ToolCall, "?tool=read_file&state__exact=ok&user={user}"),
        (ToolCall, "?turn__conversation__id__exact={key}"),
        (LedgerEntry, "?kind__exact=reserve&user={user}"), (BudgetWindow, "?user={user}"),
        (Reservation, "?user={user}&is_open__exact=0"),
    ],
)  # fmt: skip
def test_filters_and_search_find_the_rows(kind: Any, query: str) -> None:
    place = played()
    facts = {
        "user": place.user.pk,
        "key": place.conversation.pk,
        "uuid": place.conversation.public_id,
    }
    client = superuser()
    assert 'class="field-' in listed(client, kind, query.format(**facts))
    for odd in ("?user=999999", "?user=x' OR 1=1", "?user=" + "9" * 30):
        if "user={user}" in query:
            assert 'class="field-' not in listed(client, kind, odd)


def test_from_which_conversation_most_was_cut_and_what_are_three_links() -> None:
    place = played()
    people_and_turns.queued(people_and_turns.person("bea"))
    client = superuser()
    index = client.get(reverse("admin:index")).content.decode()
    first = reverse("admin:conversations_conversation_changelist") + "?o=-5"
    assert f'href="{first}"' in index
    text = listed(client, Conversation, "?o=-5")
    assert text.index(short_id(place.conversation)) < text.index(">0</a>")
    key = place.conversation.pk
    second = f"?conversation__id__exact={key}&amp;outcome__exact=applied&amp;o=-5"
    assert second in text
    rows = listed(client, Transformation, second.replace("&amp;", "&"))
    assert reverse("admin:conversations_transformation_change", args=[compaction().pk]) in rows


def test_the_transformation_page_shows_why_what_and_each_change() -> None:
    place = played()
    text = page(superuser(), compaction())
    for shown in (
        "41,000 (estimated)", "40,000", "input_token_budget", "1 old tool result compacted",
        "→", "results 3, block 1, toolu_1", "4711-ÄÖ", "short", "protected_tail_messages",
        reverse("admin:conversations_conversation_change", args=[place.conversation.pk]),
        reverse("admin:conversations_turn_change", args=[place.turn.pk]),
        reverse("admin:conversations_user_change", args=[place.user.pk]),
    ):  # fmt: skip
        assert shown in text, shown


def test_the_summary_page_shows_its_call_model_cost_and_reason() -> None:
    played()
    row = Transformation.objects.get(kind="summary")
    text = page(superuser(), row)
    call = ApiCall.objects.get(purpose="summary")
    assert reverse("admin:conversations_apicall_change", args=[call.pk]) in text
    for shown in ("claude-sonnet-5-5", "(exact)", "longer than what it replaces", "Rejected"):
        assert shown.lower() in text.lower()
    assert "Nothing was changed." in text


def test_the_call_page_shows_that_the_request_rebuilds() -> None:
    played()
    client = superuser()
    for call in ApiCall.objects.all():
        text = page(client, call)
        assert "proof matches" in text
        assert text.count(call.body_digest) == 2
        assert "Be brief." in text
        assert "1 mismatch" not in text


def flip(table: str, column: str, value: str, key: int) -> None:
    with connection.cursor() as cursor:
        for guarded in list_guarded_tables():
            where = f' ON "{guarded}"' if connection.vendor == "postgresql" else ""
            cursor.execute(f'DROP TRIGGER "{guarded}_keep_update"{where}')
        cursor.execute(f"UPDATE {table} SET {column} = %s WHERE id = %s", [value, key])


def test_the_call_page_shows_a_request_that_differs() -> None:
    played()
    row = Message.objects.get(kind="prompt")
    flip("conversations_message", "content", row.content.replace("Read", "Rend"), row.pk)
    text = page(superuser(), stored_turns.last_call(row.conversation))
    assert "proof differs" in text
    assert "differs from the one that was sent" in text


def test_damaged_rows_are_shown_as_damaged() -> None:
    played()
    client, row = superuser(), compaction()
    flip("conversations_transformation", "edits", "[[", row.pk)
    assert "a stored row is damaged" in page(client, row)
    assert "proof differs" in page(client, stored_turns.last_call(row.conversation))
    page(client, stored_turns.last_call(row.conversation), "body")


def test_the_rebuilt_request_is_plain_text() -> None:
    played()
    call = stored_turns.last_call(Conversation.objects.get())
    response = superuser().get(reverse("admin:apicall_body", args=[call.pk]))
    assert response["Content-Type"] == "text/plain; charset=utf-8"
    assert response["X-Content-Type-Options"] == "nosniff"
    assert "no-store" in response["Cache-Control"]
    assert len(response.content) == call.body_bytes
    assert response.content.startswith(b'{"model":"claude-sonnet-5-5"')


def test_without_the_permission_there_is_no_content_anywhere() -> None:
    place = played(title="Read the secret plan", result="the secret result 0815")
    client = staff("bob")
    call = stored_turns.last_call(place.conversation)
    tool = ToolCall.objects.get()
    for row in (compaction(), call, place.conversation, tool, place.turn):
        text = page(client, row)
        for secret in ("0815", "Be brief.", ">short<"):
            assert secret not in text
        if row is not place.turn:
            assert "is not shown" in text
    page(client, call, "body", 403)
    page(client, place.conversation, "read", 403)
    assert not LogEntry.objects.exists()


def test_reading_another_persons_content_leaves_an_audit_row_each_time() -> None:
    place = played()
    client = staff("bob", "read_content")
    call, tool = stored_turns.last_call(place.conversation), ToolCall.objects.get()
    reads: list[tuple[Any, str]] = [
        (compaction(), "change"), (call, "change"), (call, "body"), (tool, "change"),
        (place.conversation, "read"), (place.conversation, "read"),
    ]  # fmt: skip
    for count, (row, view) in enumerate(reads, 1):
        page(client, row, view)
        entries = LogEntry.objects.filter(action_flag=READ, user__username="bob")
        assert entries.count() == count
        assert {entry.object_id for entry in entries} == {str(place.conversation.pk)}
    history = page(superuser(), place.conversation, "history")
    assert "Read the request of call" in history
    assert "Read the request of call" in listed(superuser_again(), LogEntry)


def superuser_again() -> Client:
    client = Client()
    client.force_login(User.objects.get(username="root"))
    return client


def test_reading_ones_own_needs_no_permission_and_leaves_no_row() -> None:
    place = played("bob")
    User.objects.filter(username="bob").update(is_staff=True)
    view = Permission.objects.filter(codename__startswith="view_")
    place.user.user_permissions.add(*view)
    client = Client()
    client.force_login(User.objects.get(username="bob"))
    assert "4711-ÄÖ" in page(client, compaction())
    assert "4711-ÄÖ" in page(client, place.conversation, "read")
    assert not LogEntry.objects.exists()


def test_the_messages_are_read_in_pages() -> None:
    place = played()
    turn = turns.send_prompt(
        conversation=place.conversation, text="More?", client_id=place.turn.public_id
    )
    lease = leases.claim_turn(turn_id=turn.pk, owner="t")
    assert lease is not None
    for number in range(60):
        stored_turns.reply(lease, (f'{{"type":"text","text":"part {number}"}}',), "end_turn")
    client, url = superuser(), reverse("admin:conversation_read", args=[place.conversation.pk])
    first = client.get(url).content.decode()
    (after,) = re.findall(r'href="\?after=(\d+)"', first)
    second = client.get(f"{url}?after={after}").content.decode()
    assert "part 0" in first
    assert "part 59" not in first
    assert "part 59" in second
    assert client.get(f"{url}?after=x").status_code == 200


class Inert(HTMLParser):
    """A page in which nothing executes but the admin's own files."""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        assert not [name for name in values if name == "style" or name.startswith("on")]
        if tag in ("img", "script") and values.get("type") != "application/json":
            own = ("/static/admin/", "/static/admin.js", "/admin/jsi18n/")
            assert (values.get("src") or "").startswith(own)
        assert tag not in ("iframe", "object", "embed", "base", "style")


def hostile() -> Played:
    """Play a turn in which everything that others can write is markup."""
    place = played(PAYLOAD[:20], title=PAYLOAD, tool=PAYLOAD, value=PAYLOAD, result=PAYLOAD * 30)
    conversation = place.conversation
    Conversation.objects.filter(pk=conversation.pk).update(instructions=PAYLOAD)
    turn = turns.send_prompt(
        conversation=conversation, text="And?", client_id=conversation.public_id
    )
    lease = leases.claim_turn(turn_id=turn.pk, owner="t")
    assert lease is not None
    stored_turns.fail(lease, PAYLOAD)
    stored_turns.reply(lease, ('{"type":"text","text":"' + PAYLOAD + '"}',), "end_turn")
    Turn.objects.filter(pk=turn.pk).update(error_text=PAYLOAD, error_code=PAYLOAD)
    return place


def test_what_others_wrote_is_text_on_every_page() -> None:
    hostile()
    client, seen = superuser(), 0
    kinds: tuple[Any, ...] = (*READ_ONLY, User, LogEntry)
    for kind in kinds:
        texts = [listed(client, kind), listed(client, kind, "?q=%3Cimg")]
        for row in kind.objects.all():
            texts.append(page(client, row))
            texts.append(page(client, row, "history"))
            if kind is Conversation:
                texts.append(page(client, row, "read"))
        for text in texts:
            Inert().feed(text)
            seen += text.count("&lt;img src=x")
    assert seen > 50


def test_pages_carry_the_policy_of_the_site() -> None:
    played()
    url = reverse("admin:conversations_transformation_change", args=[compaction().pk])
    response = superuser().get(url)
    assert "script-src 'self'" in response["Content-Security-Policy"]
    assert "unsafe" not in response["Content-Security-Policy"]
    assert b"agentweb-admin.css" in response.content
