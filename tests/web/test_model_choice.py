"""The model and the effort beside the message: the levels of a model, their default and cost."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.test import Client

from conversations.budgets.prices import find_usable_model
from conversations.log.settings_version import reading_settings
from conversations.models import ApiModel, Conversation, EffortRule, ModelPrice
from conversations.reductions.conversation_settings import ModelUnknown, read_job_facts
from conversations.reductions.pins import pin_originals
from conversations.rendering.model_names import name_model
from tests.support import people_and_turns, stored_turns
from tests.support.stored_turns import Played
from tests.web.pages import client_of, html_of
from tests.web.tags import acting, elements

pytestmark = pytest.mark.django_db
MODEL = stored_turns.MODEL
WITHOUT = "claude-haiku-4-5"


@pytest.fixture
def client(played: Played) -> Client:
    return client_of(played.user)


def choose(client: Client, played: Played, **chosen: str) -> Any:
    return client.post(
        f"/c/{played.conversation.public_id}/model/", chosen, headers={"HX-Request": "true"}
    )


def stored(played: Played) -> tuple[str, str]:
    row = Conversation.objects.get(pk=played.conversation.pk)
    return row.model, row.effort


def chat(client: Client, played: Played) -> str:
    html: str = html_of(client, f"/c/{played.conversation.public_id}/")
    assert not acting(html)
    return html


def levels(html: str) -> dict[str, bool]:
    """Return the values of the selectable levels, each with whether it is selected."""
    fields = [attrs for tag, attrs in elements(html) if tag == "input"]
    return {
        str(attrs.get("value") or ""): "checked" in attrs
        for attrs in fields
        if attrs.get("name") == "effort"
    }


def test_a_chat_offers_the_levels_of_its_model_and_marks_the_default(
    client: Client, played: Played
) -> None:
    html = chat(client, played)
    assert levels(html) == {"low": False, "medium": False, "": True, "xhigh": False, "max": False}
    assert re.search(r"High</strong>\s*<span class=\"chooser-default\">default", html)
    price = ModelPrice.objects.get(model=MODEL, kind="output", above_tokens=0, effective_to=None)
    assert f"${price.micros_per_million / 1_000_000:.2f} for a million tokens" in html


def test_a_choice_counts_for_the_next_turn_and_is_remembered(
    client: Client, played: Played
) -> None:
    assert choose(client, played, effort="low").status_code == 200
    assert stored(played) == (MODEL, "low")
    assert read_job_facts(played.conversation.pk).effort == "low"
    assert levels(chat(client, played))["low"]
    assert choose(client, played, model="claude-opus-5-5").status_code == 200
    assert stored(played) == ("claude-opus-5-5", "low")
    assert "Opus 5.5" in chat(client, played)
    assert choose(client, played, effort="").status_code == 200
    assert stored(played) == ("claude-opus-5-5", "")


def test_a_model_without_effort_offers_none(client: Client, played: Played) -> None:
    choose(client, played, model=WITHOUT, effort="low")
    html = chat(client, played)
    assert levels(html) == {}
    assert 'id="effort-menu"' not in html
    assert read_job_facts(played.conversation.pk).effort == ""


def test_a_level_that_the_model_lacks_becomes_its_nearest_and_is_said(
    client: Client, played: Played
) -> None:
    choose(client, played, model="claude-opus-4-6", effort="xhigh")
    html = chat(client, played)
    assert set(levels(html)) == {"low", "medium", "", "max"}
    assert levels(html)[""]
    said = " ".join(html.split())
    assert "Opus 4.6 does not have the level Very high, which this chat is set to" in said
    assert read_job_facts(played.conversation.pk).effort == "high"


def test_the_default_is_that_of_the_group_then_of_the_site(
    client: Client, played: Played, settings: Any
) -> None:
    settings.AGENTWEB_EFFORT = "low"
    assert levels(chat(client, played))[""]
    assert read_job_facts(played.conversation.pk).effort == "low"
    for name, level in (("All", "medium"), ("Research", "xhigh"), ("Others", "max")):
        group = Group.objects.create(name=name)
        EffortRule.objects.create(group=group, effort=level)
        if name != "Others":
            played.user.groups.add(group)
    assert read_job_facts(played.conversation.pk).effort == "xhigh"
    assert levels(chat(client, played)) == {
        "low": False, "medium": False, "high": False, "": True, "max": False,
    }  # fmt: skip
    choose(client, played, effort="low")
    assert read_job_facts(played.conversation.pk).effort == "low"


def test_a_model_that_is_kept_for_a_group_is_for_its_members_alone(
    client: Client, played: Played
) -> None:
    group = Group.objects.create(name="Research")
    kept = ApiModel.objects.get(pk="claude-opus-5-5")
    kept.groups.add(group, Group.objects.create(name="Others"))
    assert 'value="claude-opus-5-5"' not in chat(client, played)
    assert choose(client, played, model="claude-opus-5-5").status_code == 400
    started = {"text": "Hello", "model": "claude-opus-5-5"}
    assert client.post("/c/start/", started).status_code == 400
    assert 'value="claude-opus-5-5"' not in html_of(client, "/settings/chat/")
    Conversation.objects.filter(pk=played.conversation.pk).update(model="claude-opus-5-5")
    with pytest.raises(ModelUnknown, match="kept for other groups"):
        read_job_facts(played.conversation.pk)
    played.user.groups.add(group)
    assert 'value="claude-opus-5-5"' in chat(client, played)
    assert read_job_facts(played.conversation.pk).model == "claude-opus-5-5"
    # A person in both groups sees it once.
    played.user.groups.add(Group.objects.get(name="Others"))
    assert html_of(client, "/settings/chat/").count('value="claude-opus-5-5"') == 1


def test_who_leaves_a_group_loses_its_models_in_what_is_kept_too(played: Played) -> None:
    group = Group.objects.create(name="Research")
    ApiModel.objects.get(pk=MODEL).groups.add(group)
    found = []
    for change in (played.user.groups.add, played.user.groups.remove):
        change(group)
        with reading_settings():
            found.append(find_usable_model(played.user.pk, MODEL))
    assert [each is not None for each in found] == [True, False]


def test_a_model_that_is_kept_for_a_group_from_now_on_is_kept_from_others(played: Played) -> None:
    with reading_settings():
        assert find_usable_model(played.user.pk, MODEL) is not None
    ApiModel.objects.get(pk=MODEL).groups.add(Group.objects.create(name="Research"))
    with reading_settings():
        assert find_usable_model(played.user.pk, MODEL) is None


def test_a_choice_that_cannot_be_is_refused_and_what_counts_is_shown(
    client: Client, played: Played
) -> None:
    ApiModel.objects.filter(pk="claude-opus-5-5").update(is_enabled=False)
    refused = choose(client, played, model="claude-opus-5-5")
    assert refused.status_code == 400
    html = refused.content.decode()
    assert "This model is not available" in html
    assert 'id="model-choice"' in html
    assert choose(client, played, effort="huge").status_code == 400
    assert stored(played) == (MODEL, "")


def test_a_model_that_is_too_small_for_what_is_pinned_is_refused(
    client: Client, played: Played
) -> None:
    pin_originals(conversation_id=played.conversation.pk, actor_id=played.user.pk, ids=["toolu_1"])
    ApiModel.objects.filter(pk=WITHOUT).update(window=1_000)
    refused = choose(client, played, model=WITHOUT)
    assert (refused.status_code, b"Unpin something first" in refused.content) == (400, True)
    assert stored(played) == (MODEL, "")


def test_a_new_chat_begins_with_what_is_chosen(client: Client, played: Played) -> None:
    assert levels(html_of(client, "/c/new/"))[""]
    shown = html_of(client, f"/c/new/model/?model={WITHOUT}&effort=low")
    assert levels(shown) == {}
    assert "Haiku 4.5" in shown
    begun = client.post("/c/start/", {"text": "Hi", "model": "claude-opus-5-5", "effort": "max"})
    assert begun.status_code == 302
    newest = Conversation.objects.latest("pk")
    assert (newest.model, newest.effort) == ("claude-opus-5-5", "max")
    assert client.post("/c/start/", {"text": "Hi", "effort": "huge"}).status_code == 400


def test_a_model_that_is_not_offered_any_more_is_said(client: Client, played: Played) -> None:
    ApiModel.objects.filter(pk=MODEL).update(is_enabled=False)
    assert "is not available any more" in chat(client, played)


def test_staff_give_a_group_its_effort(client: Client, played: Played) -> None:
    staff = client_of(people_and_turns.person("root", is_superuser=True, is_staff=True))
    group = Group.objects.create(name="Research")
    page = "/admin/conversations/effortrule/"
    assert staff.post(f"{page}add/", {"group": group.pk, "effort": "max"}).status_code == 302
    assert "Research" in staff.get(page).content.decode()
    assert EffortRule.objects.get().effort == "max"
    assert client.get(page).status_code == 302


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("claude-opus-4-8", "Opus 4.8"),
        ("claude-sonnet-5", "Sonnet 5"),
        ("claude-haiku-4-5-20251001", "Haiku 4.5"),
        ("my-gateway/model-7", "my-gateway/model-7"),
    ],
)
def test_a_model_is_called_by_its_name(model: str, name: str) -> None:
    assert name_model(model) == name
