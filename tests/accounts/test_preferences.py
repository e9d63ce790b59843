"""Preferences: what is stored, what is read of it, and that nothing odd breaks a page."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conversations.accounts.people import read_owner_preferences, save_preferences
from conversations.accounts.preferences import (
    DEFAULTS,
    NAMES,
    PreferenceError,
    Preferences,
    merge_preferences,
    read_preferences,
)
from conversations.models import User
from tests.support import people_and_turns

CHOSEN = Preferences(
    theme="dark",
    text_size="large",
    motion="reduced",
    language="de",
    shortcuts=False,
    enter="line",
    model="claude-haiku-5-5",
    thinking="open",
    notifications=True,
    put_away="4-50 4-80",
    instructions="I am Ada.\nAnswer in metres.",
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)


def test_every_preference_can_be_chosen_and_read_again() -> None:
    assert all(getattr(CHOSEN, name) != getattr(DEFAULTS, name) for name in NAMES)
    assert read_preferences(merge_preferences({}, asdict(CHOSEN))) == CHOSEN


@given(st.dictionaries(st.sampled_from([*NAMES, "other"]), JSON) | JSON)
def test_whatever_is_stored_a_page_has_its_preferences(stored: Any) -> None:
    found = read_preferences(stored)
    assert read_preferences(asdict(found)) == found
    for name in NAMES:
        assert type(getattr(found, name)) is type(getattr(DEFAULTS, name))


def test_only_what_differs_from_the_defaults_is_stored() -> None:
    stored = merge_preferences({"theme": "dark", "gone": 1}, {"enter": "line"})
    assert stored == {"theme": "dark", "enter": "line"}
    assert merge_preferences(stored, {"theme": "system"}) == {"enter": "line"}


@pytest.mark.parametrize(
    "change", [{"theme": "pink"}, {"shortcuts": "yes"}, {"model": "x" * 101}, {"other": 1}]
)
def test_what_no_preference_can_be_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(PreferenceError):
        merge_preferences({}, change)


@pytest.mark.django_db
def test_a_change_leaves_the_other_preferences_and_the_user_as_they_are() -> None:
    user = people_and_turns.person(email="ada@example.org")
    save_preferences(user_id=user.pk, changes={"theme": "dark"})
    save_preferences(user_id=user.pk, changes={"enter": "line"})
    found = User.objects.get(pk=user.pk)
    assert found.preferences == {"theme": "dark", "enter": "line"}
    assert found.email == "ada@example.org"
    conversation = people_and_turns.queued(user).conversation
    assert read_owner_preferences(conversation) == Preferences(theme="dark", enter="line")


@pytest.mark.django_db(transaction=True)
def test_changes_at_the_same_time_are_all_kept() -> None:
    user = people_and_turns.person()
    changes: list[dict[str, Any]] = [{"theme": "dark"}, {"enter": "line"}, {"thinking": "open"}]

    def change(at: int) -> None:
        save_preferences(user_id=user.pk, changes=changes[at])

    assert people_and_turns.failures(people_and_turns.crowd(3, change)) == []
    user.refresh_from_db()
    assert user.preferences == {"theme": "dark", "enter": "line", "thinking": "open"}
