"""A superuser looks at the site as another person: on record, bounded, and nothing is changed.

Every address there is by every method; the rows of all tables are compared, before and after.
"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission
from django.db import connection
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from agentweb.site.impersonation import OWN, SHOWN, WriteRefused, refuse_writes
from conversations.accounts.reading_log import READ
from conversations.audit.verify import Tally, verify_everything
from conversations.library.folders import add_folder, open_folder
from conversations.library.impersonations import end_expired_impersonations
from conversations.models import Conversation, Impersonation, ImpersonationEnd, User
from tests.attacks.sites import World, address, quiet_world, views, world
from tests.attacks.test_matrix import METHODS, answer
from tests.support import people_and_turns
from tests.support.one_database import ON_SQLITE
from tests.web.canary import WORD
from tests.web.pages import client_of, press

pytestmark = pytest.mark.django_db
REASON = "Ticket 4711: a chat does not open"
STOP = "/accounts/impersonation/stop/"


@pytest.fixture
def root(settings: Any) -> User:
    settings.AGENTWEB_IMPERSONATION_MINUTES = 30
    return people_and_turns.person("root", is_staff=True, is_superuser=True)


@pytest.fixture
def ada(root: User) -> World:
    return world()


def ask(client: Client, person: User, reason: str = REASON) -> Any:
    url = reverse("admin:user_impersonate", args=[person.pk])
    return client.post(url, {"reason": reason})


def looking(root: User, person: User) -> Client:
    client = client_of(root)
    assert ask(client, person)["Location"] == "/"
    return client


def text(client: Client, path: str) -> str:
    return " ".join(client.get(path).content.decode().split())


@ON_SQLITE
def test_of_all_addresses_some_are_shown_and_every_other_method_is_refused(root: User) -> None:
    ada = quiet_world()
    client = looking(root, ada.user)
    before, asked, shown = people_and_turns.everything(), 0, set()
    for view in views():
        # No session counts at the API, so there nobody is impersonated.
        if view.name in OWN or view.is_api:
            continue
        for method in ("get", "post") if view.is_admin else METHODS:
            response, _ = answer(client, method, address(view, ada))
            asked += 1
            if response.status_code != 403:
                assert method in ("get", "head"), (view, method)
                assert view.name in SHOWN, (view, method)
                assert not view.is_admin
                assert response.status_code in (200, 302, 404), (view, response.status_code)
                shown.add(view.name)
    assert asked > 1_000
    assert shown == SHOWN, "a page that is shown would have written something"
    assert people_and_turns.everything() == before
    assert Impersonation.objects.get().actor == root


def test_each_page_is_on_record_with_the_reason_before_it_is_shown(ada: World, root: User) -> None:
    client, chat = looking(root, ada.user), f"/c/{ada.conversation.public_id}/"
    entries = LogEntry.objects.filter(user=root, action_flag=READ)
    page = text(client, chat)
    assert "Looking as <bdi>ada</bdi>, read-only" in page
    assert WORD in page
    assert "ws-connect" not in page
    entry = entries.get()
    assert entry.change_message == f"Read {chat} as ada. Reason: {REASON}"
    assert entry.object_id == str(ada.conversation.pk)
    assert "Looking as" in text(client, "/files/")
    assert entries.first().object_repr == "ada"  # type: ignore[union-attr]
    # What is not the person's is as little there as for the person.
    other = people_and_turns.queued(people_and_turns.person("eve")).conversation
    assert client.get(f"/c/{other.public_id}/").status_code == 404


def test_what_is_in_a_closed_folder_is_seen_too(root: User) -> None:
    ada = people_and_turns.person("ada")
    folder = add_folder(owner_id=ada.pk, name="Work")
    chat = people_and_turns.queued(ada).conversation
    Conversation.objects.filter(pk=chat.pk).update(folder=folder)
    open_folder(folder=folder, is_open=False)
    client = looking(root, ada)
    assert f"/c/{chat.public_id}/" not in text(client, "/")
    assert f"/c/{chat.public_id}/" in text(client, f"/folders/{folder.public_id}/")


def test_the_log_of_who_read_what_of_a_person_has_every_page_that_was_looked_at(
    root: User,
) -> None:
    person, other = people_and_turns.person("ada"), people_and_turns.person("eve")
    for seen in (person, other):
        client = looking(root, seen)
        client.get("/files/")
        client.post(STOP)
    log = reverse("admin:admin_logentry_changelist")
    page = text(client, f"{log}?owner={person.pk}")
    assert "/files/ as ada" in page
    assert "/files/ as eve" not in page
    address = reverse("admin:conversations_user_change", args=[person.pk])
    assert re.search(rf'class="field-whose"[^>]*><a href="{address}">', page)
    assert f'owner={person.pk}">ada</a>' in text(client, log)


def test_it_is_stopped_by_hand_and_the_person_sees_who_looked(ada: World, root: User) -> None:
    client = looking(root, ada.user)
    assert client.get("/admin/").status_code == 403
    assert client.post(STOP)["Location"] == "/"
    assert client.get("/admin/").status_code == 200
    assert "Looking as" not in text(client, "/usage/")
    client.post(STOP)
    assert ImpersonationEnd.objects.count() == 1
    page = text(client_of(ada.user), "/settings/security/")
    assert "Who looked at the site as you" in page
    assert "<bdi>root</bdi>" in page
    assert REASON in page
    assert "Who looked" not in text(client_of(root), "/settings/security/")
    client = looking(root, ada.user)
    client.post("/accounts/logout/")
    assert ImpersonationEnd.objects.count() == 2


def test_it_ends_by_its_time_and_what_is_sent_then_reaches_no_account(
    ada: World, root: User
) -> None:
    client = looking(root, ada.user)
    row = Impersonation.objects.get()
    assert timedelta(minutes=29) < row.until - timezone.now() <= timedelta(minutes=30)
    assert end_expired_impersonations() == 0
    assert end_expired_impersonations(now=row.until) == 1
    sent = client.post("/settings/appearance/", {"theme": "dark"})
    assert (sent.status_code, sent["Location"]) == (302, "/")
    assert not User.objects.exclude(preferences={}).exists()
    assert "as yourself again" in text(client, "/usage/")
    assert ImpersonationEnd.objects.count() == 1


def test_what_a_script_sends_after_its_time_is_not_answered_by_a_page(
    ada: World, root: User
) -> None:
    client = looking(root, ada.user)
    end_expired_impersonations(now=Impersonation.objects.get().until)
    sent = press(client, "/c/start/", htmx=True, text="Mine")
    assert (sent.status_code, sent["HX-Redirect"], sent.content) == (409, "/", b"")
    assert not Conversation.objects.filter(owner=root).exists()


@pytest.mark.parametrize("change", ["setting", "demoted", "closed", "promoted"])
def test_it_ends_with_what_allowed_it(change: str, ada: World, root: User, settings: Any) -> None:
    client = looking(root, ada.user)
    match change:
        case "setting":
            settings.AGENTWEB_IMPERSONATION_MINUTES = 0
        case "demoted":
            User.objects.filter(pk=root.pk).update(is_superuser=False)
        case "closed":
            User.objects.filter(pk=ada.user.pk).update(is_active=False)
        case _:
            User.objects.filter(pk=ada.user.pk).update(is_superuser=True)
    assert client.get(f"/c/{ada.conversation.public_id}/")["Location"] == "/"
    assert ImpersonationEnd.objects.count() == 1


def test_it_is_for_superusers_with_a_reason_where_the_site_allows_it(
    ada: World, root: User, settings: Any
) -> None:
    boss = people_and_turns.person("boss", is_staff=True)
    boss.user_permissions.set(Permission.objects.all())
    assert ask(client_of(boss), ada.user).status_code == 403
    client = client_of(root)
    assert ask(client, ada.user, "why").status_code == 400
    other = people_and_turns.person("other", is_superuser=True)
    assert "cannot be looked at" in ask(client, other).content.decode()
    page = reverse("admin:conversations_user_change", args=[ada.user.pk])
    assert "/look/" in text(client, page)
    settings.AGENTWEB_IMPERSONATION_MINUTES = 0
    assert ask(client, ada.user).status_code == 403
    assert "/look/" not in text(client, page)
    assert not Impersonation.objects.exists()


def test_begin_and_end_are_links_of_the_site_s_chain(root: User) -> None:
    person = people_and_turns.person("ada")
    client = looking(root, person)
    client.post(STOP)
    begin, end = Impersonation.objects.get(), ImpersonationEnd.objects.get()
    assert (begin.reason, end.link) == (REASON, begin.link + 1)
    assert list(verify_everything(Tally())) == []


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO conversations_user (id) VALUES (1)",
        "UPDATE conversations_user SET id = 1",
        "DELETE FROM conversations_user",
        "WITH a AS (DELETE FROM conversations_user RETURNING id) SELECT * FROM a",
        "(DELETE FROM conversations_user RETURNING id)",
        "DROP TABLE conversations_user",
        "-- SELECT\nDELETE FROM conversations_user",
    ],
)
def test_no_statement_writes_while_somebody_looks(sql: str) -> None:
    with connection.execute_wrapper(refuse_writes), connection.cursor() as cursor:
        cursor.execute("SELECT 1")
        with pytest.raises(WriteRefused):
            cursor.execute(sql)


def test_a_union_in_brackets_reads() -> None:
    asked = "(SELECT 1) UNION (SELECT 2)"
    assert refuse_writes(lambda sql, *_: sql, asked, (), many=False, context={}) == asked
