"""Thresholds as shares of the window: of the model that runs, shown with what they came to."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.core.checks import run_checks
from django.test import Client
from django.urls import reverse

from conversations.context.pipeline import prepare
from conversations.inspector.current_context import read_outline
from conversations.log import append
from conversations.models import ApiModel, Conversation, User
from conversations.reductions.conversation_settings import change_model, read_job_facts
from conversations.reductions.explanation import explain_change
from conversations.reductions.policy import effective_policy, list_numbers
from conversations.reductions.words import name_number
from tests.context.samples import prompt, situation, text, view_of
from tests.support import people_and_turns, stored_turns
from tests.web.test_admin_people import form, url

pytestmark = pytest.mark.django_db
MODEL, SMALL = stored_turns.MODEL, "claude-haiku-4-5"


@pytest.fixture
def chat() -> Conversation:
    return stored_turns.played().conversation


def settle(chat: Conversation, **values: Any) -> Any:
    client = Client()
    client.force_login(chat.owner)
    page = f"/c/{chat.public_id}/settings/"
    given = client.post(page, {"model": MODEL, **values})
    return client.get(page) if given.status_code == 302 else given


def window(model: str) -> int:
    return ApiModel.objects.get(pk=model).window


def test_a_chat_has_a_share_of_the_window_of_the_model_it_runs_with(chat: Conversation) -> None:
    page = settle(chat, keep_below_tokens="60%", low_water_tokens="9000")
    assert 'value="60%"' in page.content.decode()
    chat.refresh_from_db()
    assert chat.policy == {"keep_below_tokens": "60%", "low_water_tokens": 9_000}
    for model in (MODEL, SMALL):
        chat.model = model
        chat.save()
        policy = read_job_facts(chat.pk).policy
        assert policy.keep_below_tokens == window(model) * 60 // 100
        ahead = read_outline(chat)
        assert ahead is not None
        shown = [step.tokens for step in ahead.steps if step.share == "60%"]
        assert shown == [policy.promise(window(model))]
    client = Client()
    client.force_login(chat.owner)
    assert "(60% of the window)" in client.get(f"/c/{chat.public_id}/inspect/now/").content.decode()


@pytest.mark.parametrize("given", ["160%", "6.5%", "sixty"])
def test_what_is_no_share_is_refused_at_its_field(given: str, chat: Conversation) -> None:
    page = settle(chat, keep_below_tokens=given)
    said = "from 1% to 100%" if "%" in given else "Enter a whole number"
    assert (page.status_code, said in page.content.decode()) == (400, True)


def test_a_share_that_contradicts_a_number_is_refused(chat: Conversation) -> None:
    given = {"preset": "classic", "compaction_threshold_tokens": "1%"}
    page = settle(chat, input_token_budget="600000", **given)
    assert "Must be above input_token_budget (600,000)" in page.content.decode()


def test_a_model_has_thresholds_of_its_own(chat: Conversation, settings: Any) -> None:
    settings.AGENTWEB_KEEP_BELOW_TOKENS = "10%"
    assert effective_policy(chat).keep_below_tokens == window(MODEL) // 10
    root = User.objects.create(username="root", is_staff=True, is_superuser=True)
    client = Client()
    client.force_login(root)
    page = reverse("admin:conversations_apimodel_change", args=[MODEL])
    for wrong, said in (
        ('{"keep_below_percent": 5}', "keep_below_percent: is none of"), ("[1]", "must be an obj"),
        ('{"keep_below_tokens": "0%"}', "must be a whole number or a share"),
    ):  # fmt: skip
        refused = client.post(page, {"is_enabled": "on", "thresholds": wrong})
        assert said in refused.content.decode()
    given = {"is_enabled": "on", "thresholds": '{"keep_below_tokens": "30%"}'}
    assert client.post(page, given).status_code == 302
    assert effective_policy(chat).share("keep_below_tokens") is not None
    assert effective_policy(chat).keep_below_tokens == window(MODEL) * 30 // 100
    chat.policy = {"keep_below_tokens": 40_000}
    assert effective_policy(chat).keep_below_tokens == 40_000
    chat.policy, chat.model = {}, SMALL
    assert effective_policy(chat).keep_below_tokens == window(SMALL) // 10


def test_a_chat_whose_model_contradicts_its_owner_keeps_its_settings_page(
    chat: Conversation,
) -> None:
    User.objects.update(policy={"compaction_threshold_tokens": 90_000})
    ApiModel.objects.update(thresholds={"input_token_budget": 120_000})
    assert settle(chat, instructions="Be brief.").status_code == 200
    assert Conversation.objects.get().instructions == "Be brief."


def test_what_a_person_is_limited_to_counts_for_what_a_share_comes_to(chat: Conversation) -> None:
    User.objects.update(policy_limits={"keep_below_tokens": [None, 90_000]})
    chat = Conversation.objects.get(pk=chat.pk)
    chat.policy = {"keep_below_tokens": "50%"}
    policy = effective_policy(chat)
    assert (policy.keep_below_tokens, policy.shares) == (90_000, ())


def test_a_persons_share_must_suit_every_model(chat: Conversation) -> None:
    root = User.objects.create(username="root", is_staff=True, is_superuser=True)
    client = Client()
    client.force_login(root)
    ApiModel.objects.filter(pk=SMALL).update(window=100_000)
    given = {"policy_input_token_budget": "30000", "policy_preset": "classic"}
    wrong = form(chat.owner, policy_compaction_threshold_tokens="20%", **given)
    page = client.post(url(chat.owner), wrong).content.decode()
    assert f"With {SMALL}: must be above input_token_budget (30,000)" in page
    right = form(chat.owner, policy_compaction_threshold_tokens="50%", **given)
    assert client.post(url(chat.owner), right).status_code == 302
    owner = User.objects.get(pk=chat.owner_id)
    assert owner.policy["compaction_threshold_tokens"] == "50%"
    shown = {one.name: one.value for one in list_numbers(owner)}
    assert shown["compaction_threshold_tokens"] == "50%"


def test_a_record_says_the_share_and_what_it_came_to() -> None:
    lease = people_and_turns.started_turn()
    chat = Conversation.objects.get(pk=lease.conversation_id)
    chat.policy = {"preset": "rebuild", "max_conversation_tokens": "1%"}
    chat.save()
    policy = effective_policy(chat)
    view = view_of(*(prompt(text("x" * 20_000)) for _ in range(3)))
    change = next(prepare(view, situation(window=window(MODEL)), policy))
    row = append.record_transformation(lease=lease, change=change, policy=policy, summary_call=None)
    kept = json.loads(row.policy)
    number = window(MODEL) // 100
    assert kept["max_conversation_tokens"] == number
    assert kept["shares"] == {"max_conversation_tokens": "1%"}
    shown = {one.name: one for one in explain_change(chat, row).policy}
    one = shown[name_number("max_conversation_tokens")]
    assert (one.value, one.origin) == (f"{number:,} (1% of the window)", "this chat")


def test_a_model_whose_thresholds_contradict_the_sites_is_reported(settings: Any) -> None:
    settings.AGENTWEB_POLICY = "classic"
    assert not [one for one in run_checks(databases=["default"]) if one.id == "agentweb.E006"]
    ApiModel.objects.filter(pk=MODEL).update(thresholds={"compaction_threshold_tokens": 2_000})
    [found] = [one for one in run_checks(databases=["default"]) if one.id == "agentweb.E006"]
    assert found.msg.startswith(f"{MODEL}: compaction_threshold_tokens: must be above")


@pytest.mark.parametrize(
    ("preset", "share", "small", "large"),
    [("classic", "30%", 60_000, 79_999), ("native", "60%", 120_000, 149_999)],
)
@pytest.mark.parametrize("is_own", [True, False])
def test_no_turn_fails_for_a_share_that_suits_another_models_window(
    chat: Conversation, settings: Any, is_own: bool, preset: str, share: str, small: int, large: int
) -> None:
    if is_own:
        chat.policy = {"preset": preset, "input_token_budget": share}
        chat.save()
    else:
        settings.AGENTWEB_POLICY, settings.AGENTWEB_INPUT_TOKEN_BUDGET = preset, share
    for model, budget in ((SMALL, small), (MODEL, large)):
        change_model(conversation_id=chat.pk, model=model)
        assert read_job_facts(chat.pk).policy.input_token_budget == budget
    User.objects.update(policy_limits={"summary_breaker": [1, 2]})
    assert read_job_facts(chat.pk).policy.input_token_budget == large
    # The share is refused where it is set, and not where it is the site's.
    given = {"preset": preset, "input_token_budget": share} if is_own else {}
    page = settle(Conversation.objects.get(pk=chat.pk), **given)
    said = "Must be above input_token_budget" in page.content.decode()
    assert (page.status_code, said) == ((400, True) if is_own else (200, False))
