"""Transcripts: people read the originals, in turns and rounds, for the same number of queries."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from conversations.agent.events import RoundChanged, RoundOpened
from conversations.agent.finish import can_continue
from conversations.agent.ports import Ending, Finish, ToolDone
from conversations.context.view import wire
from conversations.context.view.envelope import build_envelope
from conversations.files.attachment_display import list_shown_files
from conversations.library.sidebar import read_sidebar
from conversations.live import render
from conversations.log import append
from conversations.models import ApiResult, Conversation, Draft, ToolCall
from conversations.transcript import transcript
from conversations.transcript.shapes import Bookmark, Fallback, Live, Round
from conversations.transcript.tool_cards import build_tool_card
from conversations.transcript.words import describe_ending, explain_ending
from conversations.transfer.importing import import_recording
from conversations.transfer.recordings import parse_recording
from conversations.turns import drafts, tool_calls, turns
from tests.support import people_and_turns, stored_turns
from tests.support.reduced_conversations import compact, now, talk

pytestmark = pytest.mark.django_db


def long_conversation(size: int) -> Conversation:
    """Play turns of two rounds each."""
    lease = people_and_turns.started_turn(people_and_turns.person())
    for at in range(size):
        if at:
            lease = people_and_turns.next_turn(people_and_turns.conversation_of(lease))
        stored_turns.close(
            lease, people_and_turns.opened(lease).call, people_and_turns.tool_call_ending(f"t{at}")
        )
        done = ToolDone('"listed"', "ok")
        tool_calls.start_tool(lease=lease, tool_use_id=f"t{at}")
        tool_calls.finish_tool(lease=lease, tool_use_id=f"t{at}", done=done)
        append.store_results(lease=lease, content=people_and_turns.results(f"t{at}"), estimate=1)
        people_and_turns.answered(lease)
    return people_and_turns.conversation_of(lease)


@pytest.mark.parametrize(
    ("path", "file"),
    [("notes/a.md", "notes/a.md"), ("attached/a.docx", ""), ("./attached/a.docx", "")],
)
def test_a_card_leads_to_a_file_of_the_workspace_and_to_none_of_the_chat(
    path: str, file: str
) -> None:
    call = ToolCall(name="read_file", state="ok", details={"path": path})
    use = {"id": "t1", "name": "read_file", "input": {"path": path}}
    assert build_tool_card(frozenset(), use, call, None).file == file


def queries(action: Any) -> int:
    with CaptureQueriesContext(connection) as found:
        action()
    return len(found)


def test_a_round_by_itself_is_the_round_within_its_turn() -> None:
    played = stored_turns.played(title="Read <b>it</b>")
    conversation = played.conversation
    (turn,) = transcript.read_transcript(conversation).turns
    assert [transcript.read_round(conversation, 1, at) for at in (1, 2)] == list(turn.rounds)
    assert transcript.read_round(conversation, 1, 3) == Round(3)
    lease = people_and_turns.next_turn(conversation)
    change = stored_turns.summarise(lease)
    opened = transcript.read_round(conversation, 2, 1)
    assert [marker.seq for marker in opened.markers] == [change.seq]
    assert replace(opened, is_live=True) == transcript.read_turn(conversation, 2).rounds[0]
    assert transcript.read_round(conversation, 2, 9) == Round(9)


def test_a_turn_that_begins_is_its_prompt_and_its_rounds_are_told_behind_it() -> None:
    played = stored_turns.played(title="Read <b>it</b>")
    conversation = played.conversation
    late = transcript.read_turn(conversation, 1, is_begun=False)
    assert "Read &lt;b&gt;it&lt;/b&gt;" in late.prompt_html
    assert late.rounds == ()
    people_and_turns.next_turn(conversation)
    begun = transcript.read_turn(conversation, 2, is_begun=False)
    assert begun == transcript.read_turn(conversation, 2)
    whole = queries(lambda: transcript.read_turn(conversation, 2))
    assert queries(lambda: transcript.read_turn(conversation, 2, is_begun=False)) == whole - 3


def test_a_round_that_is_told_late_opens_without_what_is_told_behind_it() -> None:
    played = stored_turns.played()
    opened = render.render_events(played.conversation.pk, RoundOpened(1, 2))
    assert "4711" not in opened
    assert opened.count('class="marker') >= 2
    assert "4711" in render.render_events(played.conversation.pk, RoundChanged(1, 2))


def test_a_round_costs_the_same_however_many_there_are() -> None:
    lease = people_and_turns.started_turn(people_and_turns.person())
    conversation, costs = people_and_turns.conversation_of(lease), []
    for at in range(1, 7):
        stored_turns.close(
            lease, people_and_turns.opened(lease).call, people_and_turns.tool_call_ending(f"t{at}")
        )
        append.store_results(lease=lease, content=people_and_turns.results(f"t{at}"), estimate=1)
        costs.append(queries(lambda at=at: transcript.read_round(conversation, 1, at)))
    assert len(set(costs)) == 1
    assert queries(lambda: transcript.read_round(conversation, 1, 7)) == 4


def test_a_turn_is_its_prompt_its_rounds_and_its_tools() -> None:
    played = stored_turns.played(title="Read <b>it</b>")
    (turn,) = transcript.read_transcript(played.conversation).turns
    assert (turn.number, turn.state, turn.is_live, turn.chip) == (1, "done", False, "")
    assert "&lt;b&gt;" in turn.prompt_html
    first, second = turn.rounds
    (card,) = first.tools
    assert (card.name, card.state, card.brief) == ("read_file", "ok", "notes.txt")
    assert card.output == stored_turns.LONG
    assert [marker.kind for marker in second.markers] == ["compaction", "summary"]
    assert turn.source == "Let me look.\n\nThe order is 4711-ÄÖ."
    results = ApiResult.objects.filter(call__turn=played.turn)
    assert turn.cost_micros == sum(result.cost_micros for result in results)


def broken_images() -> list[dict[str, Any]]:
    sources = [{}, {"media_type": "image/png"}, {"media_type": "text/html", "data": "AA"}]
    sources += [{"media_type": 1, "data": "AA"}, {"media_type": "image/png", "data": "AA"}]
    return [{"type": "image", "source": {"type": "base64", **source}} for source in sources]


def test_an_imported_image_without_its_kind_or_data_is_not_shown() -> None:
    said = [{"role": "user", "content": [*broken_images(), {"type": "text", "text": "see"}]}]
    record = {"id": "r1", "messages": [*said, {"role": "assistant", "content": "ok"}]}
    conversation = import_recording(
        user=people_and_turns.person(), recording=parse_recording(record), model=stored_turns.MODEL
    )
    (turn,) = transcript.read_transcript(conversation).turns
    assert turn.files == ()
    assert "see" in turn.prompt_html


def test_an_image_that_an_older_log_holds_is_shown_as_far_as_it_can_be() -> None:
    shown = list_shown_files(wire.encode(broken_images()), {})
    assert [file.url for file in shown] == ["", "", "", "", "data:image/png;base64,AA"]
    assert [file.is_image for file in shown] == [False] * 4 + [True]


def test_pages_are_joined_without_a_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transcript, "PAGE", 4)
    conversation = long_conversation(7)
    newest = transcript.read_transcript(conversation)
    assert [turn.number for turn in newest.turns] == [4, 5, 6, 7]
    assert newest.earlier == 4
    oldest = transcript.read_transcript(conversation, newest.earlier)
    assert [turn.number for turn in oldest.turns] == [1, 2, 3]
    assert oldest.earlier is None


def test_a_page_costs_the_same_queries_however_long_the_conversation_is() -> None:
    counts = []
    # What a process keeps is read with the first page.
    for size in (2, 3, 30):
        conversation = long_conversation(size)
        user = conversation.owner
        counts.append(
            [
                queries(lambda c=conversation: transcript.read_transcript(c)),
                queries(lambda c=conversation: render.render_snapshot(c.pk, Bookmark(), None)),
                queries(lambda c=conversation, u=user: read_sidebar(u, c)),
            ]
        )
        type(user).objects.filter(pk=user.pk).update(username=f"played {size}")
    assert counts[1] == counts[2]
    assert counts[1][0] == 8
    assert counts[1][2] == 3


def test_the_running_answer_is_shown_as_the_hub_has_it() -> None:
    lease = people_and_turns.started_turn()
    conversation = people_and_turns.conversation_of(lease)
    live = Live(1, 1, "hm", "<p>Done.</p>", "<p>On its</p>")
    (turn,) = transcript.list_turns_after(conversation, 0, live)
    (shown,) = turn.rounds
    assert (shown.is_live, shown.thinking) == (True, "hm")
    assert (shown.html, shown.tail) == ("<p>Done.</p>", "<p>On its</p>")
    assert turn.is_live


def test_without_a_hub_the_running_answer_is_that_of_the_last_checkpoint() -> None:
    lease = people_and_turns.started_turn()
    conversation = people_and_turns.conversation_of(lease)
    assert transcript.list_turns_after(conversation, 0, None)[0].rounds == (Round(1, is_live=True),)
    people_and_turns.opened(lease)
    drafts.save_draft(lease=lease, text="So *far*", thinking="")
    (shown,) = transcript.list_turns_after(conversation, 0, None)[0].rounds
    assert "<em>far</em>" in shown.tail
    assert shown.is_live


def test_a_draft_is_in_the_round_of_the_reduction_before_it() -> None:
    lease = people_and_turns.next_turn(stored_turns.played().conversation)
    stored_turns.summarise(lease)
    people_and_turns.opened(lease)
    drafts.save_draft(lease=lease, text="So far", thinking="")
    shown = transcript.read_turn(people_and_turns.conversation_of(lease), 2).rounds
    assert [(one.number, len(one.markers), one.is_live) for one in shown] == [(1, 1, True)]


def test_an_answer_that_was_stored_is_not_shown_again_as_a_draft() -> None:
    lease = people_and_turns.started_turn()
    call = people_and_turns.opened(lease).call
    drafts.save_draft(lease=lease, text="Let me look.", thinking="")
    stored_turns.close(lease, call, people_and_turns.tool_call_ending("t1"))
    drafts.save_draft(lease=lease, text="Let me look.", thinking="")
    (shown,) = transcript.list_turns_after(people_and_turns.conversation_of(lease), 0, None)[
        0
    ].rounds
    assert not shown.is_live
    assert shown.tail == ""


def test_a_draft_that_outlived_its_call_is_not_shown() -> None:
    lease = people_and_turns.started_turn()
    call = people_and_turns.opened(lease).call
    stored_turns.close(lease, call, people_and_turns.tool_call_ending("t1"))
    # As it stays where its first words were being saved on PostgreSQL while the call was closed.
    Draft.objects.create(turn_id=lease.turn_id, call_id=call, text="Let me look.")
    (turn,) = transcript.read_transcript(people_and_turns.conversation_of(lease)).turns
    assert not any(one.is_live for one in turn.rounds)


def test_only_turns_behind_a_number_are_given() -> None:
    conversation = long_conversation(3)
    assert [turn.number for turn in transcript.list_turns_after(conversation, 1, None)] == [2, 3]
    assert transcript.list_turns_after(conversation, 3, None) == []


@pytest.mark.parametrize(
    ("finish", "words", "can_retry"),
    [
        (Finish("done", "end_turn"), "The answer is empty", True),
        (Finish("done", "max_tokens"), "Cut at the length limit", False),
        (Finish("failed", "budget", "budget", "No money."), "Over budget", True),
        (Finish("cancelled", "stopped"), "Stopped", True),
        (Finish("interrupted", "crash"), "Interrupted. Partial answer kept.", True),
    ],
)
def test_a_turn_says_in_words_how_it_ended(finish: Finish, words: str, can_retry: bool) -> None:
    lease = people_and_turns.started_turn()
    turns.finish_turn(lease=lease, finish=finish)
    (turn,) = transcript.read_transcript(people_and_turns.conversation_of(lease)).turns
    assert (turn.chip, turn.can_retry, turn.error) == (words, can_retry, finish.text)


def test_a_reduction_behind_an_answer_does_not_make_it_empty() -> None:
    played = talk(stored_turns.played())
    before = transcript.read_transcript(now(played)).turns[-1]
    compact(played, "turns")
    after = transcript.read_transcript(now(played)).turns[-1]
    assert after.rounds[-1].markers
    assert (after.chip, after.hint, after.can_retry) == (before.chip, before.hint, False)


@pytest.mark.parametrize("is_reduced", [False, True])
def test_tools_that_nothing_is_said_to_end_in_an_empty_answer(is_reduced: bool) -> None:
    lease = people_and_turns.started_turn(people_and_turns.person())
    stored_turns.close(
        lease, people_and_turns.opened(lease).call, people_and_turns.tool_call_ending("t1")
    )
    append.store_results(lease=lease, content=people_and_turns.results("t1"), estimate=1)
    if is_reduced:
        stored_turns.summarise(lease)
    empty = Ending("complete", people_and_turns.USAGE, "end_turn")
    stored_turns.close(lease, people_and_turns.opened(lease).call, empty)
    turns.finish_turn(lease=lease, finish=Finish("done", "end_turn"))
    (turn,) = transcript.read_transcript(people_and_turns.conversation_of(lease)).turns
    assert (turn.chip, turn.can_retry) == ("The answer is empty", True)


@pytest.mark.parametrize(
    ("finish", "words"),
    [
        (Finish("done", "loop_limit", "turn_rounds"), "limit of model calls for one turn"),
        (Finish("done", "loop_limit", "turn_tools"), "limit of tool calls for one turn"),
        (Finish("done", "loop_limit", "wrong_calls"), "tool calls that could not run"),
        (Finish("failed", "loop_limit", "turn_money"), "limit of cost for one turn"),
        (Finish("failed", "loop_limit", "turn_time"), "limit of time for one turn"),
        (Finish("done", "loop_limit"), "at a limit for one turn"),
    ],
)
def test_a_turn_that_used_up_a_cap_says_which(finish: Finish, words: str) -> None:
    lease = people_and_turns.started_turn()
    turns.finish_turn(lease=lease, finish=finish)
    (turn,) = transcript.read_transcript(people_and_turns.conversation_of(lease)).turns
    assert words in turn.chip
    assert "it can go on from here" in explain_ending(finish.state, finish.reason, has_answer=True)


def test_every_reason_of_a_failure_has_words() -> None:
    for reason in ("", "budget", "context", "loop_limit", "poison"):
        assert describe_ending("failed", reason)


@pytest.mark.parametrize("reason", ["pause_turn", "max_tokens", "loop_limit"])
def test_an_ending_that_kept_no_answer_is_not_said_to_go_on(reason: str) -> None:
    assert "answered again" in explain_ending("done", reason, has_answer=False)
    assert "answered again" not in explain_ending("done", reason, has_answer=True)
    assert not can_continue("done", reason, has_answer=False)


@pytest.mark.parametrize("blocks", [(), (people_and_turns.ANSWER,)])
def test_who_goes_on_is_shown_before_there_is_an_answer(blocks: tuple[str, ...]) -> None:
    lease = people_and_turns.started_turn(people_and_turns.person())
    conversation, usage = people_and_turns.conversation_of(lease), people_and_turns.USAGE
    refused = Ending("refused", usage, "refusal", blocks)
    stored_turns.close(lease, people_and_turns.opened(lease).call, refused)
    number = 1 + len(blocks)
    assert transcript.read_round(conversation, 1, number).fallback is None
    other = build_envelope(model="claude-opus-4-8", max_tokens=1_024, system="x")
    people_and_turns.opened(lease, other)
    expected = Fallback("Opus 4.8", "Sonnet 5.5")
    assert transcript.read_round(conversation, 1, number).fallback == expected
    assert transcript.read_turn(conversation, 1).rounds[number - 1].fallback == expected
    opened = render.render_events(conversation.pk, RoundOpened(1, number))
    assert "Opus 4.8 was asked, because Sonnet 5.5 declined." in " ".join(opened.split())
