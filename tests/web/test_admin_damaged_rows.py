"""Staff see lists and pages of the record whatever of it is damaged."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.urls import reverse

from conversations.accounts.reading_log import READ
from conversations.admin.csv_export import SentAsFiles
from conversations.models import (
    ApiCall,
    ApiResult,
    Approval,
    Blob,
    Budget,
    Conversation,
    Envelope,
    LedgerEntry,
    Message,
    MoneyRecord,
    ToolCall,
    Transformation,
    Turn,
    User,
)
from tests.support import people_and_turns, toy_tools
from tests.support.approval_turns import POST, waiting_turn
from tests.support.damaged_rows import put_bytes, unguarded
from tests.support.stored_turns import played
from tests.web.pages import client_of
from tests.web.test_admin_review import superuser

pytestmark = pytest.mark.django_db
SHOWN = (Conversation, Turn, ApiCall, Transformation, ToolCall, Approval)
COLUMNS = [
    (Message, "content"), (ToolCall, "input"), (ToolCall, "name"), (Blob, "text"),
    (Approval, "words"), (Approval, "reason"), (Transformation, "note"), (Turn, "error_text"),
    (ApiCall, "model"), (Envelope, "text"), (Conversation, "instructions"),
]  # fmt: skip


def list_pages() -> Iterator[str]:
    """Yield the addresses of the lists, of each row's page, and of what the pages link to."""
    for kind in SHOWN:
        name = f"admin:conversations_{kind._meta.model_name}"
        yield reverse(f"{name}_changelist")
        for key in kind._default_manager.values_list("pk", flat=True):
            yield reverse(f"{name}_change", args=[key])
            if kind is Conversation:
                yield reverse("admin:conversation_read", args=[key])
            if kind is ApiCall:
                yield reverse("admin:apicall_body", args=[key])


@pytest.mark.parametrize(
    "how",
    [
        pytest.param(
            "bytes", marks=pytest.mark.only_database("sqlite", "PostgreSQL stores no other bytes")
        ),
        "garbled",
    ],
)
@pytest.mark.parametrize(("kind", "column"), COLUMNS)
def test_pages_of_the_record_open_with_a_text_that_cannot_be_read(
    kind: Any, column: str, how: str, monkeypatch: Any, tmp_path: Path
) -> None:
    toy_tools.install(monkeypatch, tmp_path / "ran")
    played("bea")
    waiting_turn(POST)
    pages = list(list_pages())
    if how == "bytes":
        for key in list(kind._default_manager.values_list("pk", flat=True)):
            put_bytes(kind(pk=key), column)
    else:
        with unguarded():
            kind._default_manager.update(**{column: '[{"a"'})
    client = superuser()
    for page in pages:
        # A request that cannot be rebuilt is refused in words.
        expected = (200, 409) if page.endswith("/body/") else (200,)
        assert client.get(page).status_code in expected, page


@pytest.mark.only_database("sqlite", "PostgreSQL stores no other bytes")
@pytest.mark.parametrize(
    ("kind", "column", "shown", "page"),
    [
        (Conversation, "instructions", Conversation, "conversation_read"),
        (ToolCall, "input", ToolCall, "conversations_toolcall_change"),
        (Turn, "error_text", ApiCall, "conversations_apicall_change"),
    ],
)
def test_a_page_that_is_made_again_is_one_reading(
    kind: Any, column: str, shown: Any, page: str
) -> None:
    played("bea")
    keys = list(shown._default_manager.values_list("pk", flat=True))
    for key in list(kind._default_manager.values_list("pk", flat=True)):
        put_bytes(kind(pk=key), column)
    assert superuser().get(reverse(f"admin:{page}", args=keys[:1])).status_code == 200
    assert LogEntry.objects.filter(action_flag=READ).count() == 1


#: Columns that the files of the admin write.
WRITTEN = [
    (Conversation, "model"), (Transformation, "note"), (Transformation, "policy"),
    (ApiCall, "model"), (ApiResult, "request_id"), (Budget, "note"), (LedgerEntry, "reason"),
    (MoneyRecord, "reason"), (MoneyRecord, "content"), (User, "username"),
]  # fmt: skip


def read_files(client: Client) -> dict[str, list[str]]:
    """Return the lines of every file of lists that the admin sends."""
    words = {one.word for one in admin.site._registry.values() if isinstance(one, SentAsFiles)}
    paths = [reverse(f"admin:{word}_{ending}") for word in words for ending in ("csv", "jsonl")]
    paths.append(reverse("admin:spending_csv"))
    return {path: b"".join(client.get(path)).decode().splitlines() for path in paths}


@pytest.mark.only_database("sqlite", "PostgreSQL stores no other bytes")
@pytest.mark.parametrize(("kind", "column"), WRITTEN)
def test_a_file_goes_on_after_a_text_that_cannot_be_decoded_and_marks_it(
    kind: Any, column: str
) -> None:
    client = superuser()
    played("bea")
    people_and_turns.limited(User.objects.get(username="bea"), 2_500_001, "day", note="daily")
    whole = read_files(client)
    for key in list(kind._default_manager.order_by("pk").values_list("pk", flat=True))[-1:]:
        put_bytes(kind(pk=key), column)
    found = read_files(client)
    # A record of money with lost values is one line; before, it was one for each value.
    for path, lines in found.items():
        assert len({line.split(",")[0] for line in lines}) == len(
            {line.split(",")[0] for line in whole[path]}
        ), path
    assert any("\ufffd" in line for lines in found.values() for line in lines)


@pytest.mark.only_database("sqlite", "PostgreSQL stores no other bytes")
def test_a_statement_goes_on_after_a_title_that_cannot_be_decoded() -> None:
    place = played("bea")
    client = client_of(place.user)
    whole = b"".join(client.get(reverse("usage_csv"))).decode().splitlines()
    put_bytes(place.conversation, "title")
    found = b"".join(client.get(reverse("usage_csv"))).decode().splitlines()
    assert len(found) == len(whole) > 2
    assert all("\ufffd" in line for line in found[1:])
