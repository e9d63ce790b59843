"""Manual reductions on pages: previewed, confirmed, refused with a reason, shown in every tab."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from conversations.context.view.edits import load_edits
from conversations.models import Conversation, Proposal, Transformation
from conversations.reductions import manual_changes, proposals
from conversations.reductions.removed_originals import list_excluded
from tests.support import people_and_turns, stored_turns
from tests.support.open_pages import opened, shown
from tests.support.reduced_conversations import WORDS, proposed, summarise, talk
from tests.support.stored_turns import Played
from tests.web.pages import chat_path, client_of, html_of, press
from tests.web.tags import elements

pytestmark = pytest.mark.django_db
PAYLOAD = "<img src=x onerror=alert(1)>"


@pytest.fixture
def played() -> Played:
    return talk(stored_turns.played())


@pytest.fixture
def client(played: Played) -> Client:
    return client_of(played.user)


def fields(html: str) -> dict[str, str]:
    return {
        str(a["name"]): str(a.get("value"))
        for tag, a in elements(html)
        if tag == "input" and a.get("name") in ("want", "digest")
    }


def event(played: Played, row: Transformation) -> str:
    return f"{chat_path(played)}/inspect/events/{row.seq}/"


@pytest.mark.parametrize("want", ["results", "turns"])
def test_a_preview_is_confirmed_and_leads_to_what_was_done(
    client: Client, played: Played, want: str
) -> None:
    path = f"{chat_path(played)}/compact/preview/"
    html = html_of(client, f"{path}?want={want}")
    given = fields(html)
    assert given["want"] == want
    assert given["digest"] in html
    # The preview counts the whole request, the record the messages: each says which.
    assert "Tokens of the context, about" in html
    assert "written anew" in html or "in the cache any more" in html
    response = press(client, path, **given)
    row = played.conversation.transformations.latest("seq")
    assert response["Location"] == event(played, row)
    page = html_of(client, event(played, row))
    assert "the person whose chat it is" in page
    assert f"{event(played, row)}undo/" in page
    assert "none: a person wanted it" in page
    assert "Tokens of the messages, about" in page
    again = press(client, path, **given)
    assert again.status_code == 409
    assert "went on" in again.content.decode()
    response = press(client, f"{event(played, row)}undo/")
    assert response.status_code == 302
    assert fields(html_of(client, f"{path}?want={want}")) == given


def test_a_stale_preview_is_refused_with_the_new_one(client: Client, played: Played) -> None:
    path = f"{chat_path(played)}/compact/preview/"
    given = fields(html_of(client, path))
    people_and_turns.answered(
        people_and_turns.next_turn(Conversation.objects.get(pk=played.conversation.pk))
    )
    response = press(client, path, **given)
    html = response.content.decode()
    assert response.status_code == 409
    assert "here is the new preview" in html
    assert fields(html)["digest"] != given["digest"]


def test_while_an_answer_is_on_its_way_a_preview_cannot_be_confirmed(
    client: Client, played: Played
) -> None:
    path = f"{chat_path(played)}/compact/preview/"
    given = fields(html_of(client, path))
    people_and_turns.next_turn(Conversation.objects.get(pk=played.conversation.pk))
    html = html_of(client, path)
    assert "on its way" in html
    assert fields(html) == {}
    assert press(client, path, **given).status_code == 409
    assert press(client, f"{chat_path(played)}/compact/ask/").status_code == 409
    assert (
        press(client, f"{chat_path(played)}/exclude/", htmx=True, id="toolu_2").status_code == 409
    )


def test_a_result_is_left_out_and_included_from_its_card(client: Client, played: Played) -> None:
    assert f'action="{chat_path(played)}/exclude/"' in html_of(client, f"{chat_path(played)}/")
    html = press(client, f"{chat_path(played)}/exclude/", htmx=True, id="toolu_2").content.decode()
    assert f'hx-post="{chat_path(played)}/include/"' in html
    page = html_of(client, f"{chat_path(played)}/")
    assert 'class="out-mark"' in page
    assert "Left out of the context" in page
    html = press(client, f"{chat_path(played)}/include/", htmx=True, id="toolu_2").content.decode()
    assert f'hx-post="{chat_path(played)}/exclude/"' in html
    assert 'class="out-mark"' not in html_of(client, f"{chat_path(played)}/")
    assert press(client, f"{chat_path(played)}/exclude/", id="toolu_2").status_code == 302
    press(client, f"{chat_path(played)}/pin/", id="toolu_3")
    refused = press(client, f"{chat_path(played)}/exclude/", id="toolu_3")
    assert refused.status_code == 400
    assert "Unpin it first" in refused.content.decode()


@pytest.mark.django_db(transaction=True)
def test_every_tab_is_told_of_a_change_by_hand() -> None:
    played = talk(stored_turns.played())
    version = Conversation.objects.get(pk=played.conversation.pk).version
    with opened(played.conversation.pk, version) as topic:
        press(client_of(played.user), f"{chat_path(played)}/exclude/", htmx=True, id="toolu_2")
        (turn,) = shown(topic)
    assert "Left out of the context" in turn
    assert "/undo/" in turn
    assert 'id="meter"' in turn


def test_the_price_of_a_summary_is_shown_before_it_is_asked_for(
    client: Client, played: Played
) -> None:
    path = f"{chat_path(played)}/compact/preview/?want=summary"
    html = html_of(client, path)
    assert "Make the summary" in html
    assert re.search(r"about \$[\d.]+, at most \$[\d.]+", html)
    assert press(client, f"{chat_path(played)}/compact/ask/")["Location"] == path
    assert Proposal.objects.get().is_asking
    html = html_of(client, path)
    assert 'hx-trigger="load delay:1500ms"' in html
    assert "is writing the summary" in html


def test_where_nothing_can_be_summarised_the_page_says_why() -> None:
    played = stored_turns.played()
    client = client_of(played.user)
    html = html_of(client, f"{chat_path(played)}/compact/preview/?want=summary")
    assert "the first message and the newest ones stay as they are" in html
    press(client, f"{chat_path(played)}/compact/ask/")
    assert not Proposal.objects.exists()


def test_proposed_words_are_applied_or_discarded(client: Client, played: Played) -> None:
    path = f"{chat_path(played)}/compact/preview/"
    proposed(played, WORDS + PAYLOAD)
    html = html_of(client, f"{path}?want=summary")
    assert "alert(1)" in html
    assert PAYLOAD not in html
    given = fields(html)
    assert press(client, f"{chat_path(played)}/compact/discard/").status_code == 302
    assert press(client, path, **given).status_code == 409
    proposed(played)
    response = press(client, path, **fields(html_of(client, f"{path}?want=summary")))
    row = played.conversation.transformations.latest("seq")
    assert response["Location"] == event(played, row)
    assert row.kind == "summary"


def test_proposed_words_are_discarded_while_the_settings_are_invalid(
    client: Client, played: Played
) -> None:
    proposed(played)
    before = played.conversation.transformations.count()
    Conversation.objects.update(policy={"max_tool_result_chars": "many"})
    refused = press(client, f"{chat_path(played)}/compact/now/")
    assert refused.status_code == 400
    response = press(client, f"{chat_path(played)}/compact/discard/")
    assert response.status_code == 302
    assert not Proposal.objects.exists()
    assert played.conversation.transformations.count() == before
    html_of(client, response["Location"])


def test_the_card_of_a_summary_says_what_it_stands_for_and_lets_it_be_edited(
    client: Client, played: Played
) -> None:
    row = summarise(played)
    page = html_of(client, event(played, row))
    assert WORDS.strip() in page
    assert stored_turns.MODEL in page
    assert "?m=" in page
    assert "Edit the words" in page
    assert "after 1 call" in page
    response = press(client, f"{event(played, row)}edit/", text=f"{WORDS} {PAYLOAD} And more.")
    new = played.conversation.transformations.latest("seq")
    assert response["Location"] == event(played, new)
    page = html_of(client, event(played, new))
    assert PAYLOAD not in page
    assert "<ins>" in page
    assert f"edited by <bdi>{played.user.username}</bdi>" in page
    old = html_of(client, event(played, row))
    assert f"the version of entry {new.seq}" in old
    assert "Edit the words" not in old
    assert press(client, f"{event(played, new)}undo/").status_code == 302
    assert "Edit the words" in html_of(client, event(played, row))


def test_words_that_are_not_accepted_stay_in_their_field(client: Client, played: Played) -> None:
    row = summarise(played)
    words = "Sorry, I cannot do that."
    response = press(client, f"{event(played, row)}edit/", text=words)
    assert response.status_code == 409
    html = response.content.decode()
    assert "a refusal or an error" in html
    assert words in html


def test_a_summary_is_rewritten_in_two_steps(client: Client, played: Played) -> None:
    row = summarise(played)
    response = press(client, f"{event(played, row)}rewrite/")
    assert response["Location"] == f"{chat_path(played)}/compact/preview/?want=summary"
    assert Proposal.objects.get().target == row.seq
    compaction = played.conversation.transformations.filter(kind="compaction").earliest("seq")
    Proposal.objects.all().delete()
    refused = press(client, f"{event(played, compaction)}rewrite/")
    assert "newest version" in refused.content.decode()


def test_the_why_card_says_where_each_number_came_from(client: Client, played: Played) -> None:
    Conversation.objects.filter(pk=played.conversation.pk).update(
        policy={"tool_result_retention_chars": 200}
    )
    given = fields(html_of(client, f"{chat_path(played)}/compact/preview/"))
    press(client, f"{chat_path(played)}/compact/preview/", **given)
    row = played.conversation.transformations.latest("seq")
    assert load_edits(row.edits)
    people_and_turns.answered(
        people_and_turns.next_turn(Conversation.objects.get(pk=played.conversation.pk))
    )
    page = html_of(client, event(played, row))
    for words in ("this chat", "Balanced", "expected at the next call", "Saved since", "1 call"):
        assert words in page


def test_of_another_person_nothing_is_found(played: Played) -> None:
    row = summarise(played)
    other = Client()
    other.force_login(people_and_turns.person("eve"))
    before = people_and_turns.everything()
    for path in ("compact/ask/", "compact/discard/", "compact/preview/", "exclude/", "include/"):
        assert press(other, f"{chat_path(played)}/{path}", id="toolu_2").status_code == 404
    for path in ("edit/", "rewrite/", "undo/"):
        assert press(other, event(played, row) + path, text=WORDS).status_code == 404
    assert other.get(f"{chat_path(played)}/compact/preview/").status_code == 404
    assert people_and_turns.everything() == before


def test_asking_twice_asks_once_and_including_twice_changes_once(
    client: Client, played: Played
) -> None:
    for _ in range(2):
        press(client, f"{chat_path(played)}/compact/ask/")
    assert Proposal.objects.count() == 1
    Proposal.objects.all().delete()
    press(client, f"{chat_path(played)}/exclude/", id="toolu_2")
    rows = played.conversation.transformations.count()
    for _ in range(2):
        assert press(client, f"{chat_path(played)}/include/", id="toolu_2").status_code == 302
    assert played.conversation.transformations.count() == rows + 1
    assert list_excluded(Conversation.objects.get(pk=played.conversation.pk)) == frozenset()
    assert proposals.expire_proposals() == 0
    assert (
        manual_changes.include_originals(
            conversation_id=played.conversation.pk, actor_id=played.user.pk, ids=["toolu_2"]
        )
        is None
    )
