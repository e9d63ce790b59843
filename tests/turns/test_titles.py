"""Titles by the model: what is asked, what is taken, who wins, and what it costs."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from conversations.agent import title as titles
from conversations.agent.ports import Ending, Finish, Refused, Sending, Sent
from conversations.agent.usage import Usage
from conversations.audit import verify
from conversations.context.view import wire
from conversations.context.view.envelope import Envelope, build_envelope
from conversations.library import erase
from conversations.library.conversations import (
    delete_conversation,
    empty_trash,
    rename_conversation,
)
from conversations.log.leases import Lease
from conversations.models import (
    ApiCall,
    ApiModel,
    ApiResult,
    BudgetWindow,
    Conversation,
    LedgerEntry,
    ModelPrice,
    SearchText,
    Turn,
)
from conversations.transcript import meter, transcript
from conversations.turns import side_calls, turns
from conversations.turns import titles as services
from conversations.turns.billed_usage import Timing
from conversations.turns.titles import find_opening
from conversations.turns.versions import regenerate_answer
from tests.support import people_and_turns, stored_turns

pytestmark = pytest.mark.django_db(transaction=True)
HAIKU = "claude-haiku-5-5"
ASKED = build_envelope(
    model=HAIKU, max_tokens=titles.MAX_TOKENS, system=titles.SYSTEM, cached=False
)
SAID = Ending("complete", Usage(400, 12, 0, 0, 0), "end_turn")


@pytest.fixture(autouse=True)
def _on(settings: Any) -> None:
    settings.AGENTWEB_TITLE_MODEL = HAIKU


def answered(text: str = "How do I bake bread?") -> Lease:
    lease = people_and_turns.started_turn(text=text)
    people_and_turns.answered(lease)
    return lease


def sending(asked: Envelope = ASKED) -> Sending:
    text = titles.quote_beginning("How do I bake bread?", "Here you are.")
    messages = wire.encode([{"role": "user", "content": [{"type": "text", "text": text}]}])
    return Sending("title", asked, messages, 500, None, 1)


def opened(lease: Lease) -> Sent:
    return services.open_title_call(lease=lease, sending=sending())


def closed(sent: Sent, ending: Ending = SAID) -> None:
    side_calls.close_side_call(call_id=sent.call, ending=ending, timing=Timing(10, 20))


def is_whole() -> bool:
    return list(verify.verify_everything(verify.Tally())) == []


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Baking bread at home", "Baking bread at home"),
        ('  "Baking bread."  ', "Baking bread"),
        ("# **Baking** `bread`", "Baking bread"),
        ("Title: Baking bread", "Baking bread"),
        ("„Brot backen“", "Brot backen"),
        ("\n\n- Baking bread\nand more", "Baking bread"),
        ("Baking\0 \x1b[31mbread\u202e", "Baking [31mbread"),
        ("<b>Baking</b> & bread", "<b>Baking</b> & bread"),
        ("\ud800 Baking", "\ufffd Baking"),
        ("پنیر می‌خواهم", "پنیر می‌خواهم"),
        ('***\n""', ""),
        ("", ""),
    ],
)
def test_of_an_answer_one_clean_line_is_taken_or_nothing(text: str, title: str) -> None:
    assert titles.read_title(text, "end_turn") == title


@given(st.text(), st.sampled_from(["end_turn", "stop_sequence", "max_tokens", "refusal", ""]))
def test_whatever_the_model_says_a_title_is_short_and_plain(text: str, reason: str) -> None:
    title = titles.read_title(text, reason)
    assert len(title) <= titles.MOST_CHARS
    assert title == " ".join(title.split())
    assert "\0" not in title
    title.encode()
    assert not title or reason in ("end_turn", "stop_sequence")


def test_a_long_title_ends_between_words() -> None:
    title = titles.read_title("bread " * 40, "end_turn")
    assert title == "bread " * 12 + "bread…"
    assert len(titles.read_title("x" * 200, "end_turn")) == titles.MOST_CHARS


@given(st.text(), st.text())
def test_what_is_quoted_is_two_strings_of_bounded_length(prompt: str, answer: str) -> None:
    found = wire.decode(titles.quote_beginning(prompt, answer))
    assert set(found) <= {"person", "assistant"}
    assert len(found.get("person", "")) <= titles.PROMPT_CHARS + 1
    assert len(found.get("assistant", "")) <= titles.ANSWER_CHARS + 1


def test_the_first_answered_turn_is_what_a_title_is_made_from() -> None:
    lease = answered()
    found = find_opening(lease.turn_id)
    assert found is not None
    assert (found.prompt, found.answer) == ("How do I bake bread?", "Here you are.")
    assert found.model == HAIKU
    following = people_and_turns.next_turn(people_and_turns.conversation_of(lease))
    people_and_turns.answered(following)
    assert find_opening(following.turn_id) is None


def test_a_turn_that_failed_or_was_refused_gives_no_title_and_the_next_one_does() -> None:
    lease = people_and_turns.started_turn()
    turns.finish_turn(lease=lease, finish=Finish("failed", "", "upstream", "The API failed."))
    assert find_opening(lease.turn_id) is None
    declined = people_and_turns.next_turn(people_and_turns.conversation_of(lease), "Something bad")
    turns.finish_turn(lease=declined, finish=Finish("done", "refusal"))
    assert find_opening(declined.turn_id) is None
    good = people_and_turns.next_turn(people_and_turns.conversation_of(lease), "Something good")
    people_and_turns.answered(good)
    found = find_opening(good.turn_id)
    assert found is not None
    assert found.prompt == "Something good"


def test_no_title_is_asked_for_where_it_is_off_or_a_person_was_first(settings: Any) -> None:
    lease = answered()
    settings.AGENTWEB_TITLE_MODEL = "off"
    assert find_opening(lease.turn_id) is None
    settings.AGENTWEB_TITLE_MODEL = HAIKU
    rename_conversation(conversation=people_and_turns.conversation_of(lease), title="Mine")
    assert find_opening(lease.turn_id) is None


def test_a_model_that_cannot_be_used_leaves_the_title_to_the_conversations_own() -> None:
    lease = answered()
    ApiModel.objects.filter(pk=HAIKU).update(is_enabled=False)
    found = find_opening(lease.turn_id)
    assert found is not None
    assert found.model == stored_turns.MODEL
    ApiModel.objects.filter(pk=HAIKU).update(is_enabled=True)
    ModelPrice.objects.filter(model=HAIKU, kind="output").update(effective_to=timezone.now())
    found = find_opening(lease.turn_id)
    assert found is not None
    assert found.model == stored_turns.MODEL
    ApiModel.objects.update(is_enabled=False)
    assert find_opening(lease.turn_id) is None


def test_the_call_is_its_own_in_the_record_and_in_the_books() -> None:
    user = people_and_turns.person()
    window = people_and_turns.limited(user, 50_000_000)
    lease = people_and_turns.started_turn(user)
    people_and_turns.answered(lease)
    before = BudgetWindow.objects.get(budget=window).spent
    sent = opened(lease)
    assert BudgetWindow.objects.get(budget=window).held > 0
    closed(sent)
    call = ApiCall.objects.select_related("result").get(purpose="title")
    # 400 tokens at $0.10 and 12 at $0.50 a million.
    assert call.result.cost_micros == 46
    after = BudgetWindow.objects.get(budget=window)
    assert (after.spent - before, after.held) == (46, 0)
    assert is_whole()


def test_a_title_counts_for_the_conversation_and_not_for_the_answer() -> None:
    lease = answered()
    conversation = people_and_turns.conversation_of(lease)
    before = meter.read_meter(conversation)
    assert (before.cost_micros, before.calls) == (400, 1)
    closed(opened(lease))
    after = meter.read_meter(conversation)
    assert (after.cost_micros, after.calls) == (446, 2)
    assert transcript.read_turn(conversation, 1).cost_micros == 400


def test_a_second_call_is_never_made() -> None:
    lease = answered()
    closed(opened(lease))
    with pytest.raises(Refused):
        opened(lease)


def test_a_call_is_not_made_for_who_was_shut_out_or_has_no_budget_left() -> None:
    user = people_and_turns.person()
    lease = people_and_turns.started_turn(user)
    people_and_turns.answered(lease)
    people_and_turns.limited(user, 5)
    with pytest.raises(Refused) as refused:
        opened(lease)
    assert refused.value.code == "budget"
    user.is_active = False
    user.save()
    with pytest.raises(Refused) as refused:
        opened(lease)
    assert refused.value.code == "inactive"
    assert not ApiCall.objects.filter(purpose="title").exists()


def test_a_title_replaces_the_first_words_and_is_found_by_search() -> None:
    lease = answered()
    assert services.name_conversation(conversation_id=lease.conversation_id, title="Bread & <b>")
    conversation = people_and_turns.conversation_of(lease)
    assert (conversation.title, conversation.titled_by) == ("Bread & <b>", "model")
    assert SearchText.objects.get(conversation=conversation, seq=0).text == "Bread & <b>"


def test_a_name_given_meanwhile_wins() -> None:
    lease = answered()
    sent = opened(lease)
    rename_conversation(conversation=people_and_turns.conversation_of(lease), title="Mine")
    closed(sent)
    assert not services.name_conversation(conversation_id=lease.conversation_id, title="Bread")
    assert people_and_turns.conversation_of(lease).title == "Mine"
    assert SearchText.objects.get(conversation=lease.conversation_id, seq=0).text == "Mine"


def test_a_lost_call_is_closed_once_and_what_it_held_stays_spent() -> None:
    user = people_and_turns.person()
    people_and_turns.limited(user, 50_000_000)
    lease = people_and_turns.started_turn(user)
    people_and_turns.answered(lease)
    sent = opened(lease)
    held = BudgetWindow.objects.get().held
    assert side_calls.close_lost_side_calls() == 0
    assert side_calls.close_lost_side_calls(everything=True) == 1
    result = ApiResult.objects.get(call=sent.call)
    assert (result.status, result.cost_micros) == ("lost", held)
    # Its process was only slow: what it says now comes too late.
    closed(sent)
    assert ApiResult.objects.filter(call=sent.call).count() == 1
    assert LedgerEntry.objects.filter(call=sent.call, kind="settle").count() == 1
    assert BudgetWindow.objects.get().held == 0
    assert people_and_turns.conversation_of(lease).titled_by == "words"
    assert is_whole()


def test_a_call_that_takes_too_long_is_lost() -> None:
    lease = answered()
    opened(lease)
    later = timezone.now() + timedelta(seconds=10_000)
    assert side_calls.close_lost_side_calls(now=later) == 1


def test_a_chat_that_is_erased_meanwhile_has_no_lost_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who looked for its calls waits for the lock until the erasure is committed."""
    opened(answered())

    def lock(key: int) -> Conversation:
        raise Conversation.DoesNotExist(key)

    monkeypatch.setattr(side_calls, "lock_conversation", lock)
    assert side_calls.close_lost_side_calls(everything=True) == 0


def test_a_conversation_is_erased_when_its_title_is_settled() -> None:
    lease = answered()
    sent = opened(lease)
    conversation = people_and_turns.conversation_of(lease)
    delete_conversation(conversation=conversation)
    empty_trash(owner_id=conversation.owner_id)
    assert erase.erase_due_conversations() == 0
    closed(sent)
    assert erase.erase_due_conversations() == 1
    assert not Conversation.objects.exists()
    closed(sent)
    assert is_whole()


def test_a_version_chosen_while_the_title_is_settled_waits_for_nobody() -> None:
    for at in range(6):
        lease = people_and_turns.started_turn(people_and_turns.person(f"person {at}"))
        people_and_turns.answered(lease)
        sent, turn = opened(lease), people_and_turns.turn_of(lease)

        def act(who: int, sent: Sent = sent, turn: Turn = turn) -> None:
            if who:
                closed(sent)
            else:
                regenerate_answer(turn=turn, client_id=uuid4())

        assert people_and_turns.failures(people_and_turns.crowd(2, act)) == []
    assert is_whole()
