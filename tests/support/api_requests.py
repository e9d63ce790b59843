"""Requests to the API with a token, their answers, and figures to ask for."""

from __future__ import annotations

from functools import cache
from typing import Any

from django.contrib.auth.models import Group
from django.test import Client
from jsonschema import Draft202012Validator, FormatChecker

from conversations.budgets.grants import correct_window
from conversations.models import (
    BudgetWindow,
)
from tests.support import people_and_turns, stored_turns
from tests.support.budget_rows import group, site

V1 = "/api/v1/"


def ask(secret: str, path: str, **query: str) -> Any:
    return Client().get(V1 + path, query, headers={"Authorization": f"Bearer {secret}"})


def read(secret: str, path: str, **query: str) -> list[dict[str, Any]]:
    response = ask(secret, path, **query)
    assert response.status_code == 200, response.content
    found: list[dict[str, Any]] = response.json()["rows"]
    return found


def whole(secret: str, path: str, **query: str) -> str:
    response = ask(secret, path, **query)
    assert response.status_code == 200
    return b"".join(response.streaming_content).decode("utf-8-sig")


def refused(response: Any, status: int) -> dict[str, Any]:
    assert response.status_code == status
    assert response["Content-Type"] == "application/problem+json"
    body: dict[str, Any] = response.json()
    assert body["status"] == status
    check_against("problem", body)
    return body


@cache
def described() -> dict[str, Any]:
    found: dict[str, Any] = Client().get(V1 + "openapi.json").json()
    return found


def check_against(schema: str, body: Any) -> None:
    """Check by a validator that is not ours."""
    document = described()
    wanted = {"$ref": f"#/components/schemas/{schema}", "components": document["components"]}
    Draft202012Validator(wanted, format_checker=FormatChecker()).validate(body)


def played() -> stored_turns.Played:
    """Play a turn under budgets of every scope, and compact it."""
    group("Research", 90_000_000, kind="pool", unit="tokens")
    site(50_000_000, kind="pool", period="lifetime")
    place = stored_turns.played("ada")
    place.user.groups.add(Group.objects.get(name="Research"))
    people_and_turns.opened(people_and_turns.next_turn(place.conversation))
    window = BudgetWindow.objects.filter(user=place.user).latest("pk")
    correct_window(window_id=window.pk, amount=5, reason="=counted twice", actor=place.user)
    return place


def correct(count: int) -> None:
    window = BudgetWindow.objects.latest("pk")
    for _ in range(count):
        correct_window(window_id=window.pk, amount=1, reason="once more")
