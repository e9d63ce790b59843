"""The settings of a conversation: used by its next turns, errors shown at the right field."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from conversations.context.policy.policy import PRESETS
from conversations.models import ApiModel, Conversation, User
from conversations.reductions.conversation_settings import read_job_facts
from conversations.reductions.pins import pin_originals
from conversations.runtime.job import build_job
from tests.support import people_and_turns, stored_turns
from tests.support.stored_turns import Played
from tests.web.pages import client_of
from tests.web.sent_forms import open_form, read_form
from tests.web.tags import acting, elements

pytestmark = pytest.mark.django_db
SMALL = "claude-haiku-4-5"
CHAT_FORM = {"enter": "send", "thinking": "closed"}


@pytest.fixture
def client(played: Played) -> Client:
    return client_of(played.user)


def path(played: Played) -> str:
    return f"/c/{played.conversation.public_id}/settings/"


def save(client: Client, played: Played, **values: Any) -> Any:
    return client.post(path(played), {"model": stored_turns.MODEL, **values})


def stored(played: Played) -> Conversation:
    return Conversation.objects.get(pk=played.conversation.pk)


def page(client: Client, played: Played) -> str:
    html: str = client.get(path(played)).content.decode()
    assert not acting(html)
    return html


def test_the_page_shows_what_counts_where_nothing_is_set(client: Client, played: Played) -> None:
    html = page(client, played)
    fields = {attrs.get("name"): attrs for tag, attrs in elements(html) if tag == "input"}
    share = PRESETS["adaptive"].compact_above_percent
    assert fields["compact_above_percent"]["placeholder"] == str(share)
    assert "read_file=verbatim" in str(fields["tool_policies"]["placeholder"])
    assert "as everywhere (Balanced)" in html
    assert f'<option value="{stored_turns.MODEL}" selected>' in html
    numbers = next(attrs for tag, attrs in elements(html) if attrs.get("class") == "numbers")
    assert "open" not in numbers


def test_instructions_that_were_imported_longer_are_kept_and_do_not_grow(
    client: Client, played: Played
) -> None:
    long = "x" * 19_999 + "\nyy"
    Conversation.objects.update(instructions=long)
    kept = {"instructions": long.replace("\n", "\r\n")}
    assert save(client, played, effort="low", **kept).status_code == 302
    assert (stored(played).effort, stored(played).instructions) == ("low", long)
    grown = save(client, played, instructions=f"{long}y")
    assert (grown.status_code, stored(played).instructions) == (400, long)


def test_the_effort_is_chosen_in_words_and_the_default_says_what_it_is(
    client: Client, played: Played, settings: Any
) -> None:
    html = page(client, played)
    assert "as everywhere (high)" in html
    assert "Low: quickest and cheapest" in html
    assert save(client, played, effort="low").status_code == 302
    assert stored(played).effort == "low"
    assert read_job_facts(played.conversation.pk).effort == "low"
    assert '<option value="low" selected>' in page(client, played)
    wrong = save(client, played, effort="huge")
    assert wrong.status_code == 400
    settings.AGENTWEB_EFFORT = "max"
    assert save(client, played).status_code == 302
    assert "as everywhere (maximum)" in page(client, played)
    assert read_job_facts(played.conversation.pk).effort == "max"


def system_of(played: Played) -> str:
    """Return the system prompt of the next call."""
    sent = dict(build_job(read_job_facts(played.conversation.pk)).envelope.parameters)
    return str(sent["system"][0]["text"])


def test_what_is_set_is_what_the_next_turn_runs_with(client: Client, played: Played) -> None:
    response = save(
        client, played, model=SMALL, instructions="Be brief.\r\nAlways.", preset="classic",
        input_token_budget="50000", compaction_enabled="no", structure_kept="yes",
        tool_policies="fetch_url=cap 9000, read_file=keep", verbatim_tools="list_files",
    )  # fmt: skip
    assert response["Location"] == f"/c/{played.conversation.public_id}/"
    conversation = stored(played)
    assert conversation.instructions == "Be brief.\nAlways."
    work_of = build_job(read_job_facts(conversation.pk))
    policy = work_of.policy
    assert (work_of.model, policy.name, policy.input_token_budget) == (SMALL, "classic", 50_000)
    assert (policy.compaction_enabled, policy.structure_kept) == (False, True)
    assert policy.verbatim_tools == ("list_files",)
    rules = dict(rule.split("=") for rule in policy.tool_policies)
    assert (rules["fetch_url"], rules["read_file"], rules["current_time"]) == (
        "cap 9000", "keep", "keep",
    )  # fmt: skip
    assert "Be brief.\\nAlways." in work_of.envelope.text
    html = page(client, played)
    assert '<details class="numbers" open>' in html
    assert 'value="50000"' in html
    assert "fetch_url=cap 9000, read_file=keep" in html
    assert '<option value="classic" selected>' in html


def test_a_page_opened_earlier_undoes_no_change_of_another_tab(
    client: Client, played: Played
) -> None:
    save(client, played, instructions="Be brief.\nAlways.", input_token_budget="50000")
    earlier = open_form(client, path(played))
    # A browser ends the lines of every field alike.
    shown = earlier["initial-instructions"] = earlier["instructions"]
    assert shown == ["Be brief.\r\nAlways."]
    others = {"instructions": "In French.", "preset": "classic", "compaction_enabled": "no"}
    save(client, played, model=SMALL, **others)
    wrong = client.post(path(played), earlier | {"low_water_tokens": "1"})
    assert (wrong.status_code, ">\nIn French.<" in wrong.content.decode()) == (400, True)
    again = read_form(wrong, status=400) | {"low_water_tokens": "3000", "effort": "low"}
    save(client, played, model=SMALL, **others | {"preset": "thrifty"})
    assert client.post(path(played), again).status_code == 302
    found = stored(played)
    assert (found.model, found.effort, found.instructions) == (SMALL, "low", "In French.")
    numbers = {"compaction_enabled": False, "low_water_tokens": 3_000}
    assert found.policy == numbers | {"preset": "thrifty"}


def test_a_form_of_an_earlier_version_is_shown_again_with_all_that_was_filled_in(
    client: Client, played: Played
) -> None:
    """Its page says of no field what it showed."""
    filled = {"instructions": "Be brief.", "preset": "classic", "low_water_tokens": "1"}
    wrong = save(client, played, **filled)
    again = read_form(wrong, status=400) | {"low_water_tokens": "3000"}
    assert client.post(path(played), again).status_code == 302
    found = stored(played)
    assert (found.instructions, found.policy) == (
        "Be brief.", {"preset": "classic", "low_water_tokens": 3_000}
    )  # fmt: skip


def test_what_is_emptied_is_inherited_again(client: Client, played: Played) -> None:
    save(client, played, preset="classic", input_token_budget="50000")
    save(client, played)
    assert stored(played).policy == {}
    assert read_job_facts(played.conversation.pk).policy.name == "adaptive"


@pytest.mark.parametrize(
    ("values", "field", "words"),
    [
        ({"input_token_budget": "-1"}, "input_token_budget", "Must be from 0"),
        ({"input_token_budget": "many"}, "input_token_budget", "whole number"),
        ({"tool_policies": "fetch_url=never"}, "tool_policies", "is not tool=keep"),
        ({"low_water_percent": "90"}, "low_water_percent", "Must be below compact_above_percent"),
        (
            {"input_token_budget": "90000", "compaction_threshold_tokens": "80000"},
            "compaction_threshold_tokens", "Must be above input_token_budget",
        ),
        ({"preset": "nonsense"}, "preset", "Select a valid choice"),
        ({"model": "nonsense"}, "model", "Select a valid choice"),
        ({"model": ""}, "model", "required"),
        ({"compaction_enabled": "perhaps"}, "compaction_enabled", "Select a valid choice"),
        ({"instructions": "x" * 20_001}, "instructions", "At most 20,000"),
        ({"instructions": "a\0b"}, "instructions", "Null characters"),
        ({"verbatim_tools": "x" * 2_001}, "verbatim_tools", "at most 2000"),
    ],
)  # fmt: skip
def test_an_error_stands_at_its_field_and_nothing_is_stored(
    client: Client, played: Played, values: dict[str, str], field: str, words: str
) -> None:
    before = people_and_turns.everything()
    response = save(client, played, **values)
    assert response.status_code == 400
    html = response.content.decode()
    place = html.index(f'id="id_{field}"')
    assert words in html[place : html.find('class="field', place)]
    assert html.count('role="alert"') == 1
    assert people_and_turns.everything() == before


def test_only_what_the_site_offers_can_be_chosen(
    client: Client, played: Played, settings: Any
) -> None:
    settings.AGENTWEB_OFFERED_POLICIES = ("adaptive", "classic")
    ApiModel.objects.filter(pk=SMALL).update(is_enabled=False)
    html = page(client, played)
    assert '<option value="classic">' in html
    assert '<option value="off">' not in html
    assert SMALL not in html
    assert save(client, played, preset="off").status_code == 400
    assert save(client, played, model=SMALL).status_code == 400
    assert save(client, played, preset="classic").status_code == 302


def test_a_preset_that_is_not_offered_any_more_stays_until_another_is_chosen(
    client: Client, played: Played, settings: Any
) -> None:
    Conversation.objects.update(policy={"preset": "off"})
    settings.AGENTWEB_OFFERED_POLICIES = ("adaptive", "classic")
    assert '<option value="off" selected>' in page(client, played)
    assert save(client, played, preset="off", instructions="x").status_code == 302
    assert (stored(played).policy, stored(played).instructions) == ({"preset": "off"}, "x")
    assert save(client, played, preset="classic").status_code == 302
    assert save(client, played, preset="off").status_code == 400


def test_a_model_that_is_not_offered_any_more_stays_until_another_is_chosen(
    client: Client, played: Played
) -> None:
    ApiModel.objects.filter(pk=stored_turns.MODEL).update(is_enabled=False)
    html = page(client, played)
    assert f'<option value="{stored_turns.MODEL}" selected>' in html
    assert "is not available any more. Choose another model" in html
    assert save(client, played, instructions="Be brief.").status_code == 302
    assert (stored(played).model, stored(played).instructions) == (stored_turns.MODEL, "Be brief.")
    assert save(client, played, model=SMALL).status_code == 302
    assert stored(played).model == SMALL
    # It is no choice once another is in force.
    assert save(client, played).status_code == 400


def test_a_model_too_small_for_the_pins_is_refused(
    client: Client, played: Played, settings: Any
) -> None:
    pin_originals(conversation_id=played.conversation.pk, actor_id=played.user.pk, ids=["toolu_1"])
    ApiModel.objects.filter(pk=SMALL).update(window=1_000)
    response = save(client, played, model=SMALL)
    assert response.status_code == 400
    assert b"Unpin something first" in response.content
    assert stored(played).model == stored_turns.MODEL
    assert save(client, played, instructions="x").status_code == 302


def test_a_stored_policy_that_fits_no_more_can_be_set_right(client: Client, played: Played) -> None:
    for odd in ({"preset": ["x"]}, {"input_token_budget": "many"}, ["no object"], {"preset": "x"}):
        Conversation.objects.update(policy=odd)
        assert client.get(path(played)).status_code == 200, odd
    assert save(client, played).status_code == 302
    assert stored(played).policy == {}


def test_a_persons_policy_that_fits_no_more_is_said_at_its_field(
    client: Client, played: Played
) -> None:
    for odd in ({"low_water_percent": 95}, {"input_token_budget": -1}, {"preset": "gone"}):
        User.objects.filter(pk=played.user.pk).update(policy=odd)
        assert "as everywhere (Balanced)" in page(client, played), odd
        response = save(client, played)
        assert response.status_code == 400
        assert response.content.count(b'role="alert"') == 1


def test_a_number_that_is_nought_is_shown_as_set(client: Client, played: Played) -> None:
    save(client, played, compact_above_percent="0")
    assert '<details class="numbers" open>' in page(client, played)


def test_a_field_names_the_element_of_its_error(client: Client, played: Played) -> None:
    html = save(client, played, input_token_budget="-1").content.decode()
    fields = {attrs.get("name"): attrs for tag, attrs in elements(html) if tag == "input"}
    named = str(fields["input_token_budget"]["aria-describedby"]).split()
    assert len(named) == 2
    assert set(named) <= {attrs.get("id") for _, attrs in elements(html)}


def test_instructions_for_all_chats_are_told_before_those_of_the_chat(
    client: Client, played: Played
) -> None:
    long = client.post("/settings/chat/", CHAT_FORM | {"instructions": "x" * 4_001})
    assert long.status_code == 400
    assert "At most 4,000 characters fit; these are 4,001." in long.content.decode()
    mine = CHAT_FORM | {"instructions": "I am Ada.\r\nAnswer in metres."}
    assert client.post("/settings/chat/", mine).status_code == 302
    assert (
        ">\nI am Ada.\nAnswer in metres.</textarea>"
        in client.get("/settings/chat/").content.decode()
    )
    assert system_of(played).endswith("for all their chats:\n\nI am Ada.\nAnswer in metres.")
    assert save(client, played, instructions="Be brief.").status_code == 302
    assert system_of(played).endswith("in metres.\n\nWhat they say for this chat:\n\nBe brief.")
    assert client.post("/settings/chat/", CHAT_FORM).status_code == 302
    assert system_of(played).endswith("\n\nBe brief.")
    assert "this chat" not in system_of(played)


def test_hostile_instructions_are_text(client: Client, played: Played) -> None:
    hostile = "</textarea><script>alert(1)</script>\ud800"
    assert save(client, played, instructions=hostile[:-1]).status_code == 302
    html = page(client, played)
    assert "<script>alert" not in html
    assert "&lt;/textarea&gt;" in html


def test_the_chat_leads_to_its_settings(client: Client, played: Played) -> None:
    html = client.get(f"/c/{played.conversation.public_id}/").content.decode()
    assert f'href="{path(played)}"' in html
