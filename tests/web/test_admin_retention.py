"""Retention rules are previewed before they are saved; holds are placed and released on record."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import connection
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from conversations.admin import retention
from conversations.library.retention import apply_retention
from conversations.log.legal_holds import place_hold, release_hold
from conversations.models import Conversation, HoldRelease, LegalHold, RetentionRule, User
from tests.support import people_and_turns, stored_turns
from tests.web.pages import client_of

pytestmark = pytest.mark.django_db


def staff(role: str) -> Client:
    name = f"{role.lower()}{User.objects.count()}"
    user = User.objects.create(username=name, is_staff=True)
    user.groups.add(Group.objects.get(name=role))
    return client_of(user)


def text(response: Any) -> str:
    return " ".join(response.content.decode().split())


def test_a_rule_is_saved_once_what_goes_was_seen() -> None:
    mine = stored_turns.played().conversation
    Conversation.objects.update(updated_at=timezone.now() - timedelta(days=40))
    client, url = staff("Administrator"), reverse("admin:conversations_retentionrule_add")
    given = {"group": "", "idle_days": "30", "file_days": "", "then": "trash"}
    page = client.post(url, given)
    assert page.status_code == 200
    assert "Nothing is saved yet" in text(page)
    assert "To the trash: 1 · Erased, and not to be brought back: 0" in text(page)
    assert str(mine.public_id)[:8] in text(page)
    assert not RetentionRule.objects.exists()
    seen = page.context["adminform"].form["seen"].value()
    # Another rule than the one that was looked at is previewed anew.
    assert client.post(url, given | {"seen": seen, "then": "erase"}).status_code == 200
    assert client.post(url, given | {"seen": seen}).status_code == 302
    rule = RetentionRule.objects.get()
    assert rule.idle_days == 30
    # What takes nothing needs no second look; a rule without days, and a second for all, is none.
    change = reverse("admin:conversations_retentionrule_change", args=[rule.pk])
    assert client.post(change, given | {"idle_days": "400"}).status_code == 302
    assert client.post(url, given | {"idle_days": ""}).status_code == 200
    assert client.post(url, given | {"idle_days": "500"}).status_code == 200
    assert RetentionRule.objects.get().idle_days == 400
    assert "everybody&#x27;s" in text(
        client.get(reverse("admin:conversations_retentionrule_changelist"))
    )
    assert Conversation.objects.get().deleted_at is None


@pytest.mark.parametrize("name", ["idle_days", "file_days"])
def test_a_rule_of_more_than_a_hundred_years_is_refused(name: str) -> None:
    client, url = staff("Administrator"), reverse("admin:conversations_retentionrule_add")
    given = {"group": "", "idle_days": "", "file_days": "", "then": "trash"}
    for days in ("36501", "740000", "999999999999999999999"):
        assert "less than or equal to 36500" in text(client.post(url, given | {name: days}))
    assert client.post(url, given | {name: "36500"}).status_code == 302
    assert apply_retention() == 0


def test_a_hold_is_placed_and_released_with_reasons_and_never_changed() -> None:
    mine = stored_turns.played().conversation
    client, add = staff("Auditor"), reverse("admin:conversations_legalhold_add")
    other = User.objects.create(username="bob")
    given = {"owner": other.pk, "chat": str(mine.public_id), "reason": "Case 4711"}
    assert "not of this person" in text(client.post(add, given))
    assert not LegalHold.objects.exists()
    assert client.post(add, given | {"owner": mine.owner_id}).status_code == 302
    hold = LegalHold.objects.get()
    assert (hold.conversation, hold.actor.username) == (mine.public_id, "auditor1")
    change = reverse("admin:conversations_legalhold_change", args=[hold.pk])
    assert client.post(change, given).status_code == 403
    assert "Case 4711" in text(client.get(change))
    end = reverse("admin:conversations_holdrelease_add")
    assert f"{end}?hold={hold.pk}" in text(
        client.get(reverse("admin:conversations_legalhold_changelist"))
    )
    assert client.post(end, {"hold": hold.pk, "reason": ""}).status_code == 200
    assert client.post(end, {"hold": hold.pk, "reason": "Closed"}).status_code == 302
    assert HoldRelease.objects.get().hold == hold
    assert client.post(end, {"hold": hold.pk, "reason": "Again"}).status_code == 200
    assert HoldRelease.objects.count() == 1
    for page in (change, reverse("admin:conversations_holdrelease_changelist")):
        assert client.get(page).status_code == 200


def test_an_administrator_sees_holds_and_places_none() -> None:
    client = staff("Administrator")
    assert client.get(reverse("admin:conversations_legalhold_changelist")).status_code == 200
    for name in ("legalhold", "holdrelease"):
        assert client.get(reverse(f"admin:conversations_{name}_add")).status_code == 403


@pytest.mark.skipif(connection.vendor == "sqlite", reason="one writer at a time")
@pytest.mark.django_db(transaction=True)
def test_of_two_releases_at_one_moment_one_is_told_that_it_was_too_late(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clients, ada = [staff("Auditor") for _ in range(2)], User.objects.create(username="ada")
    hold = place_hold(actor_id=ada.pk, reason="Case 4711", owner_id=ada.pk)
    url, both = reverse("admin:conversations_holdrelease_add"), threading.Barrier(2)

    def release_together(**given: Any) -> HoldRelease:
        # Both forms have been found valid.
        both.wait(timeout=60)
        return release_hold(**given)

    monkeypatch.setattr(retention, "release_hold", release_together)
    given = {"hold": hold.pk, "reason": "Closed"}
    found = people_and_turns.crowd(2, lambda at: clients[at].post(url, given, follow=True))
    assert people_and_turns.failures(found) == []
    pages = [text(response) for response in found]
    assert [response.status_code for response in found] == [200, 200]  # type: ignore[union-attr]
    assert sum("This hold has been released already." in page for page in pages) == 1
    assert HoldRelease.objects.get().hold == hold
