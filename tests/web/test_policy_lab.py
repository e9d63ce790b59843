"""The policy lab's page: for the owner, and for reviewers, whose visits are recorded."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse
from redis import Redis

from conversations.accounts.reading_log import READ
from conversations.reductions import trials as module
from conversations.reductions.trials import Trials
from conversations.web import policy_lab
from conversations.web.shared_trials import SharedTrials, read_copy, write_copy
from tests.support import people_and_turns, servers, stored_turns
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
        "is not included",
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


class Process(SharedTrials):
    """The trials of one web process, started in order."""

    last: Future[None] | None = None

    def start(self, *args: Any) -> Future[None]:
        self.last = super().start(*args)
        return self.last

    def finish(self) -> None:
        assert self.last is not None
        self.last.result(60)


@pytest.fixture
def redis(settings: Any, redis_url: str) -> Iterator[Redis]:
    settings.REDIS_URL = redis_url
    with Redis.from_url(redis_url) as client:
        yield client
        for key in client.scan_iter("agentweb:trial:*"):
            client.delete(key)


def test_every_process_shows_a_trial_and_starts_no_second_one(
    played: Played, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, one, other = client_of(played.user), Process(), Process()
    run = one._run
    monkeypatch.setattr(one, "_run", lambda *args: None)
    monkeypatch.setattr(policy_lab, "trials", one)
    assert client.post(path(played)).status_code == 302
    monkeypatch.setattr(policy_lab, "trials", other)
    assert 'hx-trigger="every 1s"' in client.get(path(played)).content.decode()
    response = client.post(path(played))
    assert (response.status_code, other.last) == (409, None)
    assert b"still running" in response.content
    trial = one.find(played.user.pk)
    assert trial is not None
    run(played.user.pk, trial, policy_lab.build_subject(played.conversation))
    html = client.get(path(played)).content.decode()
    assert "what happened" in html
    assert 'hx-trigger="every' not in html
    # Another one may run anywhere, and replaces what the first process knew.
    people_and_turns.answered(people_and_turns.next_turn(played.conversation))
    client.post(path(played))
    other.finish()
    monkeypatch.setattr(policy_lab, "trials", one)
    assert "went on since" not in client.get(path(played)).content.decode()


def test_a_copy_has_all_figures(played: Played, trials: Trials) -> None:
    client_of(played.user).post(path(played))
    trial = trials.find(played.user.pk)
    assert trial is not None
    assert trial.actual is not None
    bare = tuple(replace(report, decide=[], join=[]) for report in trial.reports)
    assert read_copy(write_copy(trial)) == replace(trial, reports=bare)
    data = json.loads(write_copy(trial))
    assert read_copy(json.dumps(data | {"another": 1})) is None
    assert read_copy(json.dumps(data | {"actual": {"policy": ""}})) is None


def test_a_trial_whose_process_ended_is_forgotten(
    played: Played, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    lasts: list[float] = []

    class Watched(Process):
        def put(self, user_id: int, *args: Any) -> None:
            super().put(user_id, *args)
            lasts.append(redis.ttl(f"agentweb:trial:{user_id}"))

    one = Watched()
    monkeypatch.setattr(policy_lab, "trials", one)
    client_of(played.user).post(path(played))
    one.finish()
    waiting, *running, ended = lasts
    assert 1_100 < waiting <= 1_200
    assert all(100 < seconds <= 120 for seconds in running)
    assert ended > 80_000


def test_without_redis_a_process_shows_its_own_trials(
    played: Played, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.REDIS_URL = f"redis://127.0.0.1:{servers.free_port()}/0"
    one = Process()
    monkeypatch.setattr(policy_lab, "trials", one)
    client = client_of(played.user)
    assert client.post(path(played)).status_code == 302
    one.finish()
    assert "what happened" in client.get(path(played)).content.decode()


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
