"""Approvals over HTTP: by the owner, once, for the shown arguments; refused for others."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from conversations.context.view import wire
from conversations.log.leases import Lease
from conversations.models import Approval, ApprovalRule, Conversation, Decision, Turn, User
from conversations.runtime import dispatch
from tests.support import people_and_turns, toy_tools
from tests.support.approval_turns import FIRE, POST, waiting_turn
from tools.framework.registry import TOOLS

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def woken(monkeypatch: Any, tmp_path: Path) -> list[int]:
    """Return the list of turns that are woken."""
    toy_tools.install(monkeypatch, tmp_path / "ran")
    found: list[int] = []
    monkeypatch.setattr(dispatch, "wake_turn", lambda turn: found.append(turn.pk))
    return found


def owner(lease: Lease) -> Client:
    return visitor(people_and_turns.turn_of(lease).conversation.owner)


def visitor(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def post(client: Client, question: Approval, *, htmx: bool = True, **fields: Any) -> Any:
    public_id = fields.pop("public_id", question.conversation.public_id)
    data = {
        "approval_id": question.pk,
        "digest": question.arguments_digest,
        "verdict": "once",
    } | fields
    headers = {"HX-Request": "true"} if htmx else {}
    return client.post(reverse("decide", args=[public_id]), data, headers=headers)


def test_the_page_shows_the_question_with_its_exact_arguments() -> None:
    hostile = '</pre><script>alert(1)</script>\u202e"'
    lease, (question,) = waiting_turn(("p", "post", {"to": "a@b.example", "text": hostile}))
    page = owner(lease).get(reverse("chat", args=[question.conversation.public_id]))
    html = page.content.decode()
    assert f'id="question-{question.pk}"' in html
    assert f'value="{question.arguments_digest}"' in html
    assert "Allow this mail to <bdi>a@b.example</bdi>?" in html
    assert "&lt;/pre&gt;&lt;script&gt;alert(1)&lt;/script&gt;⟨U+202E⟩&quot;" in html
    assert "<script>alert" not in html


def test_a_question_by_the_rule_of_the_site_says_so() -> None:
    ApprovalRule.objects.create(tool="put", rule="ask")
    lease, (question,) = waiting_turn(("u", "put", {}))
    page = owner(lease).get(reverse("chat", args=[question.conversation.public_id]))
    html = page.content.decode()
    assert "This site asks before this tool is used." in html
    assert "cannot be undone" not in html


def test_a_decision_wakes_the_turn(woken: list[int]) -> None:
    lease, (question,) = waiting_turn(POST)
    assert post(owner(lease), question).status_code == 200
    assert woken == [lease.turn_id]
    decision = Decision.objects.get()
    assert (decision.verdict, decision.actor) == ("once", question.conversation.owner)


def test_without_a_script_the_page_comes_back() -> None:
    lease, (question,) = waiting_turn(FIRE)
    answer = post(owner(lease), question, htmx=False, verdict="denied")
    assert answer.headers["Location"] == reverse("chat", args=[question.conversation.public_id])


def test_a_turn_that_waits_for_another_decision_is_not_woken(woken: list[int]) -> None:
    lease, (question, _) = waiting_turn(FIRE, POST)
    post(owner(lease), question)
    assert woken == []


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"approval_id": 999_999}, 404),
        ({"approval_id": "x"}, 400),
        ({"approval_id": -1}, 400),
        ({"approval_id": 2**70}, 400),
        ({"digest": ""}, 400),
        ({"digest": wire.digest('{"at":"x"}')}, 400),
        ({"verdict": "expired"}, 400),
        ({"verdict": ""}, 400),
    ],
)
def test_what_was_not_asked_is_refused(
    fields: dict[str, Any], status: int, woken: list[int]
) -> None:
    lease, (question,) = waiting_turn(FIRE)
    assert post(owner(lease), question, **fields).status_code == status
    assert not Decision.objects.exists()
    assert woken == []
    assert people_and_turns.turn_of(lease).state == "approval_wait"


def test_a_second_decision_is_refused_with_a_reason() -> None:
    lease, (question,) = waiting_turn(FIRE)
    client = owner(lease)
    post(client, question, verdict="denied")
    again = post(client, question)
    assert again.status_code == 409
    assert b"decided already" in again.content
    assert Decision.objects.get().verdict == "denied"


def test_nobody_else_decides() -> None:
    lease, (question,) = waiting_turn(FIRE)
    eve, admin = (
        people_and_turns.person("eve"),
        people_and_turns.person("root", is_staff=True, is_superuser=True),
    )
    mine = Conversation.objects.create(owner=eve, model="claude-sonnet-5-5")
    for user in (eve, admin):
        assert post(visitor(user), question).status_code == 404
    # Nor through a conversation of their own.
    assert post(visitor(eve), question, public_id=mine.public_id).status_code == 404
    assert post(Client(), question).status_code == 401
    assert not Decision.objects.exists()
    assert Turn.objects.get(pk=lease.turn_id).state == "approval_wait"


def test_a_decision_needs_the_token_of_the_page() -> None:
    lease, (question,) = waiting_turn(FIRE)
    client = Client(enforce_csrf_checks=True)
    client.force_login(question.conversation.owner)
    assert post(client, question).status_code == 403
    assert people_and_turns.turn_of(lease).state == "approval_wait"


@pytest.mark.parametrize(
    ("destination", "is_open"), [("", True), ("mail:a@b.example", True), ("mcp:notes", True),
                                 ("evil.example:443", False)]
)  # fmt: skip
def test_only_the_address_of_a_site_is_folded_on_a_card(
    destination: str, is_open: bool, monkeypatch: Any
) -> None:
    tells = replace(toy_tools.fire, destination=lambda _: destination)
    monkeypatch.setitem(TOOLS, "fire", tells)
    lease, _ = waiting_turn(("f", "fire", {"at": "the whole text"}))
    turn = people_and_turns.turn_of(lease)
    page = owner(lease).get(reverse("chat", args=[turn.conversation.public_id])).content.decode()
    (folded,) = re.findall(r'<details\s+class="whole"\s*(open)?\s*>', page)
    assert (folded == "open") is is_open
