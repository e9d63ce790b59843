"""A copied turn equals a played one."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

import pytest
from django.apps import apps
from django.db import models

from conversations.audit.verify import Tally, verify_everything
from conversations.models import ApiCall, Budget, BudgetWindow, Reservation
from tests.support import replayed_turns, stored_turns

pytestmark = pytest.mark.django_db
Rows = dict[tuple[type[models.Model], Any], dict[str, Any]]


@pytest.fixture(autouse=True)
def _nothing_kept() -> None:
    replayed_turns.forget()


def stored() -> Rows:
    """Return every row of the app by its table and key."""
    return {
        (kind, row["pk"]): row
        for kind in apps.get_app_config("conversations").get_models()
        for row in kind._default_manager.order_by("pk").values(
            "pk", *(one.attname for one in kind._meta.concrete_fields if one.name != "words")
        )
    }


def added(before: Rows) -> list[tuple[str, dict[str, Any]]]:
    """Return the new rows without what differs for each: keys become positions in their table."""
    new = {key: row for key, row in stored().items() if key not in before}
    of_kind: dict[Any, list[Any]] = {}
    for kind, key in new:
        of_kind.setdefault(kind, []).append(key)

    def plain(kind: Any, name: str, value: Any) -> Any:
        one = kind._meta.pk if name == "pk" else kind._meta.get_field(name)
        kind = one.remote_field.model if one.remote_field else kind if one.primary_key else None
        if kind is not None:
            return of_kind[kind].index(value) if value in of_kind.get(kind, ()) else value
        return type(value) if isinstance(value, UUID | datetime) else value

    found = []
    for (kind, _), row in new.items():
        own = {name: plain(kind, name, value) for name, value in row.items() if name != "chain"}
        found.append((kind.__name__, own))
    return found


def is_sound() -> bool:
    return list(verify_everything(Tally())) == []


def test_what_is_given_is_what_is_played_but_for_keys_and_times() -> None:
    # First, so that the texts that all of them share exist.
    stored_turns.played("first")
    replayed_turns.forget()
    before = stored()
    stored_turns.played("zed")
    played = added(before)
    before = stored()
    stored_turns.played("eve")
    given = added(before)
    for _, row in (*played, *given):
        row.pop("username", None)
    # The budgets of both were recorded when they were made.
    given, played = ([one for one in rows if one[0] != "MoneyRecord"] for rows in (given, played))
    assert given == played
    assert {name for name, _ in played} >= {"Turn", "SearchText", "LedgerEntry", "ToolCall"}
    assert is_sound()


def test_it_was_not_played_again(monkeypatch: pytest.MonkeyPatch) -> None:
    stored_turns.played("zed")
    monkeypatch.setattr(stored_turns, "_play", None)
    given = [stored_turns.played(name) for name in ("zed", "eve", "eve")]
    assert len({place.turn.client_id for place in given}) == 3
    assert {place.lease for place in given} == {
        stored_turns.lease_of(place.turn) for place in given
    }
    assert is_sound()


def test_its_events_have_passed_and_keep_their_order() -> None:
    started = stored_turns.played("zed").turn.created_at
    turn = stored_turns.played("eve").turn
    sent = list(ApiCall.objects.filter(turn=turn).order_by("number").values_list("sent_at"))
    assert sent == sorted(set(sent))
    assert turn.created_at > started


@pytest.mark.parametrize("limit", [30_000, 900_000])
def test_with_a_limit_that_is_near_it_is_played(limit: int) -> None:
    stored_turns.played("zed")
    near = stored_turns.played("eve", limit=limit)
    assert BudgetWindow.objects.get(user=near.user).limit == limit
    assert len(replayed_turns._tapes) == 1
    assert is_sound()


def test_with_other_budgets_it_is_played() -> None:
    stored_turns.played("zed")
    Budget.objects.create(scope="site", kind="pool", unit="turns", period="day", limit=50)
    place = stored_turns.played("eve")
    assert Reservation.objects.filter(call__turn=place.turn).count() == 6
    assert is_sound()
