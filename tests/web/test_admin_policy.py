"""The context policy of a person on their admin page, and what that person sees of it."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client, override_settings
from django.urls import reverse

from conversations.admin.policy_form import is_of_policy
from conversations.context.policy.policy import BOUNDS, POLICY_FIELDS, PolicyError
from conversations.models import ApiModel, Conversation, User
from conversations.reductions.policy import (
    MAIN_NUMBERS,
    effective_policy,
    inherited_policy,
    list_numbers,
)
from tests.support import people_and_turns, stored_turns
from tests.web.test_admin_people import client_of, form, text, url
from tests.web.test_admin_review import staff

pytestmark = pytest.mark.django_db


@pytest.fixture
def root() -> Client:
    return client_of(User.objects.create(username="root", is_staff=True, is_superuser=True))


@pytest.fixture
def ada() -> User:
    return User.objects.create(username="ada")


def save(client: Client, user: User, **values: Any) -> Any:
    return client.post(url(user), form(user, **values))


def stored(user: User) -> User:
    return User.objects.get(pk=user.pk)


def words(html: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html))


def test_every_threshold_has_a_field_and_its_effective_value(root: Client, ada: User) -> None:
    page = text(root.get(url(ada)))
    for name in POLICY_FIELDS:
        assert f'name="policy_{name}"' in page
        parts = ("least_", "most_") if name in BOUNDS else ("fixed_",)
        assert all(f'name="{part}{name}"' in page for part in parts)
    assert page.count('data-label="In force"') == len(POLICY_FIELDS)


@override_settings(AGENTWEB_MAX_TOOL_RESULT_CHARS=30_000)
def test_a_number_is_set_and_shown_with_where_it_comes_from(root: Client, ada: User) -> None:
    given = {"policy_input_token_budget": "60000", "policy_compaction_enabled": "no"}
    assert save(root, ada, **given).status_code == 302
    assert stored(ada).policy == {"input_token_budget": 60_000, "compaction_enabled": False}
    page = words(text(root.get(url(ada))))
    for shown in (
        "60,000 this user", "30,000 the site, AGENTWEB_MAX_TOOL_RESULT_CHARS", "off this user",
        "Balanced",
    ):  # fmt: skip
        assert shown in page


def test_a_change_is_on_record_from_what_to_what(root: Client, ada: User) -> None:
    save(root, ada, policy_input_token_budget="60000", most_input_token_budget="80000")
    save(root, ada, policy_input_token_budget="50000", policy_preset="classic")
    first, second = LogEntry.objects.order_by("pk")
    assert "input_token_budget: inherited → 60000" in first.get_change_message()
    assert "input_token_budget: free → any to 80000" in first.get_change_message()
    assert "input_token_budget: 60000 → 50000" in second.get_change_message()
    assert "preset: inherited → classic" in second.get_change_message()
    assert "input_token_budget: any to 80000 → free" in second.get_change_message()
    assert {first.user.username, second.user.username} == {"root"}


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"policy_input_token_budget": "-1"}, "Must be from 0 to 10,000,000"),
        ({"policy_input_token_budget": "x"}, "Enter a whole number"),
        (
            {"policy_input_token_budget": "9000", "policy_compaction_threshold_tokens": "8000"},
            "Must be above input_token_budget",
        ),
        ({"policy_input_token_budget": "3000000"}, "No model has a window of more than"),
        ({"policy_tool_policies": "x=nonsense"}, "keep"),
        ({"policy_preset": "nonsense"}, "Select a valid choice"),
        ({"least_input_token_budget": "9", "most_input_token_budget": "8"}, "Cannot be from 9"),
        ({"most_summary_breaker": "101"}, "Is limited by whole numbers from 1 to 100"),
    ],
)  # fmt: skip
def test_what_the_engine_would_refuse_is_refused_at_its_field(
    values: dict[str, str], said: str, root: Client, ada: User
) -> None:
    response = save(root, ada, **values)
    assert response.status_code == 200
    assert said in words(text(response))
    assert (stored(ada).policy, stored(ada).policy_limits) == ({}, {})


def test_a_threshold_above_every_window_may_still_say_never(root: Client, ada: User) -> None:
    ApiModel.objects.exclude(pk="claude-haiku-4-5").update(is_enabled=False)
    assert save(root, ada, policy_compaction_threshold_tokens="300000").status_code == 200
    assert save(root, ada, policy_compaction_threshold_tokens="10000000").status_code == 302


def test_a_policy_that_nobody_changes_is_not_judged(root: Client, ada: User) -> None:
    kept = {"compaction_threshold_tokens": 90_000, "tool_policies": ["x=keep"]}
    kept |= {"keep_below_tokens": 600_000, "low_water_tokens": "9%", "compaction_enabled": True}
    limits = {"input_token_budget": [None, 200_000], "server_side": "fixed"}
    User.objects.filter(pk=ada.pk).update(policy=kept, policy_limits=limits)
    ApiModel.objects.update(thresholds={"input_token_budget": 120_000}, window=500_000)
    same = read_policy_fields(root, ada)
    refused = save(root, ada, **same | {"policy_summary_breaker": "5"})
    assert "must be above input_token_budget" in words(text(refused))
    given = form(ada, **same)
    del given["is_active"]
    assert root.post(url(ada), given).status_code == 302
    assert (stored(ada).policy, stored(ada).policy_limits) == (kept, limits)
    assert not stored(ada).is_active


def read_policy_fields(client: Client, user: User) -> dict[str, Any]:
    """Return what a browser posts of the policy's fields."""
    bound = client.get(url(user)).context["adminform"].form
    return {
        one.html_name: one.value()
        for one in bound
        if is_of_policy(one.html_name) and one.value() not in (None, "", False)
    }


def test_what_is_emptied_is_the_sites_again(root: Client, ada: User) -> None:
    User.objects.update(policy={"input_token_budget": 5}, policy_limits={"summary_breaker": [1, 2]})
    assert save(root, ada).status_code == 302
    assert (stored(ada).policy, stored(ada).policy_limits) == ({}, {})


@pytest.mark.parametrize("policy", [{"input_token_budget": -5}, ["no object"], {"preset": "x"}])
def test_a_stored_policy_that_fits_no_more_is_said(policy: Any, root: Client, ada: User) -> None:
    User.objects.filter(pk=ada.pk).update(policy=policy)
    page = text(root.get(url(ada)))
    assert "cannot be shown" in page or "do not fit" in page


def test_who_may_only_look_sees_the_numbers_and_no_field(ada: User) -> None:
    User.objects.filter(pk=ada.pk).update(policy={"input_token_budget": 60_000})
    page = text(staff("bob").get(url(ada)))
    assert "60,000" in page
    assert 'name="policy_' not in page
    assert staff("cid").post(url(ada), form(ada, policy_summary_breaker="3")).status_code == 403


def test_a_chat_may_choose_within_what_its_owner_is_allowed(ada: User) -> None:
    User.objects.update(policy_limits={"input_token_budget": [10_000, 60_000]})
    conversation = people_and_turns.queued(ada).conversation
    client = client_of(ada)
    path = f"/c/{conversation.public_id}/settings/"
    assert "Your account allows 10,000 to 60,000." in text(client.get(path))
    refused = client.post(path, {"model": stored_turns.MODEL, "input_token_budget": "70000"})
    assert refused.status_code == 400
    assert "Must be from 10,000 to 60,000 for this account" in text(refused)
    taken = client.post(path, {"model": stored_turns.MODEL, "input_token_budget": "50000"})
    assert taken.status_code == 302
    assert effective_policy(Conversation.objects.get()).input_token_budget == 50_000


def test_a_limit_counts_for_what_was_chosen_before_it(ada: User) -> None:
    conversation = people_and_turns.queued(ada).conversation
    conversation.policy = {"preset": "classic", "input_token_budget": 70_000}
    conversation.save()
    assert effective_policy(conversation).input_token_budget == 70_000
    User.objects.update(policy_limits={"input_token_budget": [None, 50_000]})
    conversation = Conversation.objects.get()
    assert effective_policy(conversation).input_token_budget == 50_000
    assert inherited_policy(conversation).input_token_budget == 40_000


def test_what_is_fixed_is_shown_as_it_is_and_dropped_when_saved(ada: User) -> None:
    conversation = people_and_turns.queued(ada).conversation
    conversation.policy = {"compaction_enabled": False}
    conversation.save()
    User.objects.update(policy_limits={"compaction_enabled": "fixed"})
    assert effective_policy(conversation).compaction_enabled
    path = f"/c/{conversation.public_id}/settings/"
    client = client_of(ada)
    assert "Set for your account." in text(client.get(path))
    answer = client.post(path, {"model": stored_turns.MODEL, "compaction_enabled": "no"})
    assert answer.status_code == 302
    assert Conversation.objects.get().policy == {}


def test_a_person_sees_the_same_values_with_their_source(root: Client, ada: User) -> None:
    save(
        root, ada, policy_input_token_budget="60000", most_input_token_budget="80000",
        fixed_compaction_enabled="on",
    )  # fmt: skip
    page = words(text(client_of(ada).get(reverse("context_settings"))))
    assert "Balanced: all stays up to 100,000 tokens, then old parts go" in page
    assert "60,000 set for you 0 to 80,000" in page
    assert "on Balanced not to be changed" in page
    shown = {number.name for number in list_numbers(stored(ada)) if number.label in page}
    assert shown == set(POLICY_FIELDS)
    assert not shown & set(re.findall(r"[a-z_]+", page))


def test_a_person_sees_first_what_decides_and_what_was_set(ada: User, settings: Any) -> None:
    settings.AGENTWEB_SUMMARY_BREAKER = 5
    User.objects.update(policy={"low_water_percent": 30}, policy_limits={"structure_kept": "fixed"})
    parts = text(client_of(ada).get(reverse("context_settings"))).split("<details")
    first, advanced = (re.findall(r'scope="row">\s*(.+?)\s*<small', part) for part in parts)
    labels = {number.name: number.label for number in list_numbers(stored(ada))}
    set_elsewhere = {"low_water_percent", "summary_breaker", "structure_kept"}
    assert set(first) == {labels[name] for name in {*MAIN_NUMBERS, *set_elsewhere}}
    assert sorted([*first, *advanced]) == sorted(labels.values())
    User.objects.update(preferences={"language": "de"})
    assert "für Sie gesetzt" in text(client_of(ada).get(reverse("context_settings")))


def test_a_page_of_numbers_that_do_not_fit_says_so(ada: User) -> None:
    User.objects.update(policy={"input_token_budget": -5})
    response = client_of(ada).get(reverse("context_settings"))
    assert response.status_code == 200
    assert "do not fit" in text(response)
    with pytest.raises(PolicyError):
        list_numbers(stored(ada))
