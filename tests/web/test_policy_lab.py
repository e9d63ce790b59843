"""The policy lab's page: for the owner, and for reviewers, whose visits are recorded."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse

from conversations.accounts.reading_log import READ
from conversations.reductions import trials as module
from conversations.reductions.trials import Trials
from conversations.web import policy_lab
from tests.support import people_and_turns, stored_turns
from tests.support.stored_turns import Played
from tests.web.pages import HTMX, client_of
from tests.web.tags import acting

pytestmark = pytest.mark.django_db


@pytest.fixture
def played() -> Played:
    return stored_turns.played(title="<img src=x onerror=alert(1)>")


@pytest.fixture
def trials(monkeypatch: pytest.MonkeyPatch) -> Trials:
    """Replace the trials by some of this test alone, which finish at once."""

    class Prompt(Trials):
        def start(self, *args: Any) -> Any:
            future = super().start(*args)
            future.result(60)
            return future

    found = Prompt()
    monkeypatch.setattr(policy_lab, "trials", found)
    return found


def path(played: Played) -> str:
    return f"/c/{played.conversation.public_id}/lab/"


def test_nothing_is_computed_before_it_is_asked_for(played: Played, trials: Trials) -> None:
    html = client_of(played.user).get(path(played)).content.decode()
    assert "<table" not in html
    assert "Compute" in html
    assert f"simulate --conversation {played.conversation.public_id}" in html
    assert not acting(html)


def test_the_policies_stand_side_by_side_with_what_happened(played: Played, trials: Trials) -> None:
    client = client_of(played.user)
    before = people_and_turns.everything()
    assert client.post(path(played))["Location"] == path(played)
    html = client.get(path(played)).content.decode()
    for words in (
        "what happened",
        "Balanced",
        "(in force)",
        "All steps in order",
        "Summary",
        "Input tokens",
        "$",
    ):
        assert words in html, words
    assert 'hx-trigger="every' not in html
    assert "went on since" not in html
    assert "is-best" in html
    assert not acting(html)
    assert people_and_turns.everything() == before
    people_and_turns.answered(people_and_turns.next_turn(played.conversation))
    assert "went on since" in client.get(path(played)).content.decode()


def test_a_running_trial_is_asked_after_until_it_is_done(
    played: Played, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = Trials()
    monkeypatch.setattr(waiting, "_run", lambda *args: None)
    monkeypatch.setattr(policy_lab, "trials", waiting)
    client = client_of(played.user)
    client.post(path(played))
    html = client.get(path(played)).content.decode()
    assert 'hx-trigger="every 1s"' in html
    assert 'http-equiv="refresh"' in html
    part = client.get(path(played), headers=HTMX).content.decode()
    assert part.lstrip().startswith('<div id="trial" hx-get=')
    response = client.post(path(played))
    assert response.status_code == 409
    assert b"still running" in response.content


def test_what_will_not_begin_is_refused_before_it_is_read(
    played: Played, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[object] = []
    monkeypatch.setattr(policy_lab, "build_subject", read.append)
    waiting = Trials()
    monkeypatch.setattr(policy_lab, "trials", waiting)
    monkeypatch.setattr(module, "MOST_BYTES", 10)
    response = client_of(played.user).post(path(played))
    assert response.status_code == 409
    assert b"at most 10 are" in response.content
    monkeypatch.undo()
    monkeypatch.setattr(waiting, "_run", lambda *args: None)
    monkeypatch.setattr(policy_lab, "trials", waiting)
    client_of(played.user).post(path(played))
    monkeypatch.setattr(policy_lab, "build_subject", read.append)
    assert b"still running" in client_of(played.user).post(path(played)).content
    assert read == []


def test_what_cannot_be_replayed_is_said_on_the_page(trials: Trials) -> None:
    turn = people_and_turns.queued(people_and_turns.person("bob"))
    response = client_of(turn.conversation.owner).post(f"/c/{turn.conversation.public_id}/lab/")
    assert response.status_code == 409
    assert b"no answer yet" in response.content


def test_another_persons_trial_is_not_shown(played: Played, trials: Trials) -> None:
    client_of(played.user).post(path(played))
    eve = client_of(people_and_turns.person("eve"))
    assert eve.get(path(played)).status_code == 404
    assert eve.post(path(played)).status_code == 404


def reviewer(name: str, *permissions: str) -> Client:
    user = people_and_turns.person(name, is_staff=True)
    wanted = ("view_conversation", *permissions)
    user.user_permissions.add(*Permission.objects.filter(codename__in=wanted))
    return client_of(user)


def test_reviewers_need_the_permission_and_leave_a_row(played: Played, trials: Trials) -> None:
    url = reverse("admin:conversation_lab", args=[played.conversation.pk])
    for client in (reviewer("bob"), client_of(people_and_turns.person("eve", is_staff=True))):
        assert client.get(url).status_code == 403
        assert client.post(url).status_code == 403
    assert not LogEntry.objects.exists()
    reader = reviewer("rita", "read_content")
    assert "what happened" not in reader.get(url).content.decode()
    assert not LogEntry.objects.exists()
    assert reader.post(url).status_code == 302
    row = LogEntry.objects.get(action_flag=READ)
    assert (row.user.username, row.object_id) == ("rita", str(played.conversation.pk))
    html = reader.get(url).content.decode()
    assert "what happened" in html
    assert "<img src=x" not in html
    change = reverse("admin:conversations_conversation_change", args=[played.conversation.pk])
    assert url in reader.get(change).content.decode()
    assert reader.get(reverse("admin:conversation_lab", args=[999])).status_code == 404


def test_a_reviewers_refusal_is_said(trials: Trials) -> None:
    turn = people_and_turns.queued(people_and_turns.person("bob"))
    url = reverse("admin:conversation_lab", args=[turn.conversation_id])
    response = reviewer("rita", "read_content").post(url)
    assert response.status_code == 409
    assert b"no answer yet" in response.content
