"""The reasons for a reduction are explained in plain words, to its owner and to reviewers."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from django.template.loader import render_to_string
from django.test import Client
from django.urls import reverse
from django.utils import translation

from conversations.context.policy.policy import Policy
from conversations.context.view import edits, wire
from conversations.context.view.cost_decision import Decision
from conversations.log import append
from conversations.models import Transformation, User
from conversations.reductions.words import describe_decision
from conversations.rendering.numbers import dollars
from tests.support import people_and_turns, stored_turns
from tests.web import samples

pytestmark = pytest.mark.django_db
PAYS = Decision("pays", 12_345, 1_234, 30_000, 25, 60)


def reduced(decision: Decision | None) -> Transformation:
    lease = people_and_turns.started_turn(text="words " * 400)
    view = stored_turns.loaded(lease).view
    short = wire.encode({"type": "text", "text": "words"})
    edit = edits.SpliceBlocks(view.messages[0].seq, 0, 1, (short,))
    trigger = edits.Trigger(9, 1, "estimated", "low_water_tokens")
    change = edits.build_transformation(view, "shrink", trigger, (edit,), "Shortened", decision)
    return append.record_transformation(
        lease=lease, change=change, policy=Policy(), summary_call=None
    )


def decision_text(decision: Decision) -> str:
    row = reduced(decision)
    return " ".join(": ".join(pair) for pair in describe_decision(row.decision))


def pages(row: Transformation) -> list[str]:
    owner = Client()
    owner.force_login(row.conversation.owner)
    root = Client()
    root.force_login(User.objects.create(username="root", is_staff=True, is_superuser=True))
    urls = (
        (owner, f"/c/{row.conversation.public_id}/inspect/events/{row.seq}/"),
        (root, reverse("admin:conversations_transformation_change", args=[row.pk])),
    )
    return [client.get(url).content.decode() for client, url in urls]


def test_what_it_saves_and_costs_is_said_to_owner_and_reviewer() -> None:
    for html in pages(reduced(PAYS)):
        assert "the calls to come pay for the rewriting" in html
        assert "about 12,345 tokens a call, $0.0012" in html
        assert "$0.030, paid back after 25 calls; about 60 more were expected" in html


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"why": "cold", "cost": 0}, "nothing had to be rewritten"),
        ({"why": "cold", "cost": 0}, "Costs: no more than sending this once more"),
        ({"why": "share"}, "a share of the model's window was passed"),
        ({"why": "cliff"}, "a price step"),
        ({"saved_each": 0}, "Saves: about 12,345 tokens a call"),
    ],
)
def test_each_reason_has_its_words(change: dict[str, Any], words: str) -> None:
    text = decision_text(replace(PAYS, **change))
    assert words in text
    assert ("Costs" in text) is ("saved_each" not in change)


@pytest.mark.parametrize("micros", [1, 49, 50, 9_949, 9_950, 10_000, 16_130, 999_500, 1_234_567])
def test_a_recorded_amount_has_the_form_of_those_on_pages(micros: int) -> None:
    assert f"({dollars(micros)}), " in replace(PAYS, saved_each=micros).explanation


def test_figures_and_the_outcome_are_in_the_readers_language() -> None:
    row = reduced(replace(PAYS, pays_back_calls=2_500, expected_calls=6_000))
    with translation.override("de"):
        text = " ".join(": ".join(pair) for pair in describe_decision(row.decision))
        for number in ("12.345", "2.500", "6.000"):
            assert number in text
    client = Client(headers={"accept-language": "de"})
    client.force_login(row.conversation.owner)
    html = client.get(f"/c/{row.conversation.public_id}/inspect/events/{row.seq}/").content.decode()
    assert "angewendet" in html
    assert re.search(r"<dd>\s*applied", html) is None


def test_an_exported_page_names_a_change_in_the_readers_language() -> None:
    with translation.override("de"):
        html = render_to_string("conversations/exports/turn.html", {"turn": samples.turn()})
    assert "Verdichtung, angewendet ·" in html


def test_where_nothing_was_weighed_nothing_is_said() -> None:
    row = reduced(None)
    assert describe_decision(row.decision) == ()
    owner, review = pages(row)
    assert "Decided because" not in owner + review
