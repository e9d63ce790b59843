"""Presets as people choose them: names and sentences, with the numbers collapsed."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from conversations.context.policy.policy import POLICY_FIELDS, PRESETS
from conversations.models import User
from conversations.web.forms.presets import list_preset_choices
from tests.support.stored_turns import Played
from tests.web.pages import client_of
from tests.web.test_admin_people import form, text, url


def test_the_older_designs_are_a_group_and_only_what_is_offered_is_listed() -> None:
    usual, *own, (group, classic) = list_preset_choices("as everywhere", PRESETS)
    assert usual == ("", "as everywhere")
    assert [str(label).partition(":")[0] for _, label in own] == [
        "Keep everything", "Balanced", "Thrifty",
    ]  # fmt: skip
    assert group == "Classic"
    names = {name for name, _ in classic}
    assert {"tool-budget", "rebuild", "gated-trim", "structured"} <= names
    assert list_preset_choices("usual", ["off"])[1:] == [
        ("off", "Keep everything: nothing is ever left out, until the model can take no more")
    ]


@pytest.mark.django_db
def test_a_chat_and_a_person_choose_by_name_with_the_numbers_folded(played: Played) -> None:
    root = client_of(User.objects.create(username="root", is_staff=True, is_superuser=True))
    pages = {
        "numbers": chat_settings(client_of(played.user), played),
        "policy-numbers": text(root.get(url(played.user))),
    }
    for name, html in pages.items():
        assert re.search(rf'<details\s+class="{name}"\s*>', html), name
        assert re.search(r"<summary>.*Advanced</summary>", html)
        shown = re.sub(r"<[^>]*>", " ", html)
        assert "Balanced: all stays up to 100,000 tokens" in shown
        assert not [field for field in POLICY_FIELDS if "_" in field and field in shown]
    root.post(url(played.user), form(played.user, policy_input_token_budget="50000"))
    unfolded = text(root.get(url(played.user)))
    assert re.search(r'<details\s+class="policy-numbers"\s+open', unfolded)


def chat_settings(client: Client, played: Played) -> str:
    html: str = client.get(f"/c/{played.conversation.public_id}/settings/").content.decode()
    return html
