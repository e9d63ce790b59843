"""Without the permission no page or file of the admin contains anything that people wrote.

All pages are requested on SQLite only: what they show of a row does not depend on a query.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.db.models import Model
from django.urls import NoReverseMatch, URLPattern, reverse

from conversations.accounts.reading_log import READ, record_reading
from tests.support.one_database import ON_SQLITE
from tests.support.stored_turns import played
from tests.web.canary import CONTENT, FACTS, WORD, plant, texts
from tests.web.test_admin_review import staff

pytestmark = pytest.mark.django_db
#: Most rows of a table; tables with more have only rows of migrations: prices, permissions.
MOST = 12
SHEETS = ("users", "models", "purposes", "days", "transformations")


def views() -> Iterator[tuple[type[Model], URLPattern]]:
    """Yield every view of every table in the admin."""
    for kind, table in admin.site._registry.items():
        for pattern in table.get_urls():
            if isinstance(pattern, URLPattern) and pattern.name:
                yield kind, pattern


def addresses() -> Iterator[str]:
    """Yield the URL of every page of the admin, for every row; for a sample if there are many."""
    for name in ("index", "overview", "password_change", "logout"):
        yield reverse(f"admin:{name}")
    for app in ("conversations", "admin", "auth"):
        yield reverse("admin:app_list", args=[app])
    for sheet in SHEETS:
        yield reverse("admin:overview_csv", args=[sheet])
    for kind, pattern in views():
        name = f"admin:{pattern.name}"
        if "object_id" not in pattern.pattern.converters:
            try:
                yield reverse(name)
            except NoReverseMatch:
                continue
            yield f"{reverse(name)}?q={WORD}"
        else:
            for row in kind._default_manager.order_by("-pk")[:MOST]:
                yield reverse(name, args=[row.pk])


def bodies(client: Any) -> Iterator[tuple[str, bytes]]:
    for address in addresses():
        response = client.get(address)
        content = b"".join(response) if response.streaming else response.content
        yield address, content + str(dict(response.headers)).encode()


def test_every_text_is_known_to_be_content_or_a_fact() -> None:
    facts = {f"{kind}.{name}" for kind, names in FACTS.items() for name in names.split()}
    assert not facts & set(CONTENT)
    assert texts() == facts | set(CONTENT), "a new text: say in canary.py what it is"


@ON_SQLITE
def test_without_the_permission_no_page_and_no_file_has_content() -> None:
    plant(played().conversation)
    client = staff("bob")
    seen = 0
    for address, body in bodies(client):
        # A search page repeats only the searched text.
        repeated = body.count(WORD.encode()) if f"q={WORD}" in address else 0
        if repeated:
            assert b'class="field-' not in body, address
        else:
            assert WORD.encode() not in body, address
        seen += 1
    assert seen > 80
    assert not LogEntry.objects.filter(action_flag=READ).exists()


def test_what_the_admin_calls_a_row_says_nothing_of_its_content() -> None:
    place = played()
    plant(place.conversation)
    for kind in admin.site._registry:
        for row in kind._default_manager.all():
            assert WORD not in str(row), kind


@ON_SQLITE
def test_the_reading_of_every_page_of_content_is_recorded() -> None:
    plant(played().conversation)
    client, told = staff("zoe", "read_content"), 0
    for address, body in bodies(client):
        entries = LogEntry.objects.filter(action_flag=READ)
        if WORD.encode() in body and "q=" not in address:
            told += 1
            assert entries.exists(), address
        entries.delete()
    assert told > 8


def test_the_audit_log_says_who_read_what_of_whom_and_is_filtered() -> None:
    place, other = played("ada"), played("bea")
    client = staff("zoe", "read_content")
    reader = place.user.__class__.objects.get(username="zoe")
    record_reading(reader=reader, conversation=place.conversation, what="its messages")
    record_reading(reader=other.user, conversation=place.conversation, what="a tool call")
    record_reading(reader=reader, conversation=other.conversation, what="a summary")
    url = reverse("admin:admin_logentry_changelist")

    def shown(query: str = "") -> tuple[bool, ...]:
        page = client.get(url + query).content.decode()
        words = ("Read its messages.", "Read a tool call.", "Read a summary.")
        return tuple(word in page for word in words)

    assert shown() == (True, True, True)
    assert shown(f"?reader={reader.pk}") == (True, False, True)
    assert shown(f"?owner={place.user.pk}") == (True, True, False)
    assert shown(f"?owner={other.user.pk}&reader={reader.pk}") == (False, False, True)
    assert shown("?owner=x&reader=") == (False, False, False)
    page = client.get(url).content.decode()
    assert reverse("admin:conversations_user_change", args=[place.user.pk]) in page
    entry = LogEntry.objects.latest("pk")
    for view in ("change", "delete"):
        address = reverse(f"admin:admin_logentry_{view}", args=[entry.pk])
        assert client.post(address, {"post": "yes"}).status_code == 403
    assert client.get(reverse("admin:admin_logentry_add")).status_code == 403
