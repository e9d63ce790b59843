"""Shared links in the admin: who, which chat, until when; revoked by who may; never the link."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest
from django.apps import apps
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group, Permission
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from conversations.library.shared_links import revoke_link
from conversations.models import SharedLink, User
from tests.support import people_and_turns, stored_turns
from tests.support.shared_links import shared, token_of
from tests.web.pages import client_of, press

pytestmark = pytest.mark.django_db
LIST = "/admin/conversations/sharedlink/"
RIGHTS = import_module("conversations.migrations.0073_rights_on_shared_links")


def staff(role: str) -> Client:
    user = people_and_turns.person(role.lower(), is_staff=True)
    user.groups.add(Group.objects.get(name=role))
    return client_of(user)


def read(client: Client, path: str) -> str:
    page = client.get(path)
    assert page.status_code == 200
    return page.content.decode()


def revoke(client: Client, *links: SharedLink) -> Any:
    keys = [link.pk for link in links]
    return press(client, LIST, action="revoke", _selected_action=keys)


def test_staff_see_who_shares_which_chat_and_neither_the_link_nor_the_chat() -> None:
    played = stored_turns.played(title="A title that is content")
    link = shared(played.conversation)
    client = staff("Administrator")
    for path in (LIST, f"{LIST}{link.pk}/change/"):
        html = read(client, path)
        assert "ada" in html
        assert str(played.conversation.public_id)[:8] in html
        for word in (token_of(link), link.digest, "A title that is content", "4711"):
            assert word not in html
    assert "ada" in read(client, f"{LIST}?audience__exact=people&q=ada")


def test_the_list_costs_the_same_however_long_it_is() -> None:
    client, counts = staff("Administrator"), []
    for name in ("ada", "bea", "cleo"):
        shared(stored_turns.played(name).conversation)
        shared(stored_turns.played(name).conversation)
        with CaptureQueriesContext(connection) as found:
            read(client, LIST)
        counts.append(len(found))
    assert len(set(counts)) == 1


def test_who_may_revokes_and_it_is_on_record() -> None:
    played = stored_turns.played()
    links = [shared(played.conversation), shared(stored_turns.played("bob").conversation)]
    client = staff("Administrator")
    assert "Revoked: 2." in client.get(revoke(client, *links)["Location"]).content.decode()
    assert set(SharedLink.objects.values_list("revoked_by__username", flat=True)) == {
        "administrator"
    }
    assert LogEntry.objects.filter(content_type__model="sharedlink").count() == 2
    assert "Revoked: 0." in client.get(revoke(client, *links)["Location"]).content.decode()
    assert LogEntry.objects.filter(content_type__model="sharedlink").count() == 2


def test_a_link_that_was_revoked_before_does_not_stand_for_the_present_one() -> None:
    chat = stored_turns.played().conversation
    old = shared(chat)
    revoke_link(conversation=chat, actor=chat.owner, peer="")
    new = shared(chat)
    client = staff("Administrator")
    assert "Revoked: 0." in client.get(revoke(client, old)["Location"]).content.decode()
    new.refresh_from_db()
    assert new.revoked_at is None
    assert not LogEntry.objects.filter(content_type__model="sharedlink").exists()


def test_who_only_sees_revokes_nothing() -> None:
    link = shared(stored_turns.played().conversation)
    assert staff("Reviewer").get(LIST).status_code == 403
    user = people_and_turns.person("looker", is_staff=True)
    user.user_permissions.add(Permission.objects.get(codename="view_sharedlink"))
    client = client_of(user)
    assert "Revoke the chosen" not in read(client, LIST)
    revoke(client, link)
    assert SharedLink.objects.get().revoked_at is None
    for path in (f"{LIST}add/", f"{LIST}{link.pk}/delete/"):
        assert client_of(User.objects.get(pk=user.pk)).get(path).status_code == 403


def test_an_older_site_gets_the_right_unless_its_operator_gave_it_to_somebody() -> None:
    Permission.objects.filter(codename__endswith="_sharedlink").delete()
    give = lambda: RIGHTS.give_rights(apps, connection.schema_editor())  # noqa: E731
    having = lambda: set(  # noqa: E731
        Group.objects.filter(permissions__codename="change_sharedlink").values_list(
            "name", flat=True
        )
    )
    give()
    assert having() == {"Administrator"}
    group = Group.objects.get(name="Administrator")
    group.permissions.remove(*group.permissions.filter(codename__endswith="_sharedlink"))
    Group.objects.get(name="Auditor").permissions.add(
        Permission.objects.get(codename="view_sharedlink")
    )
    give()
    assert having() == set()
    Group.objects.all().delete()
    give()
    assert having() == set()
