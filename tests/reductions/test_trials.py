"""The policy lab on a conversation of the log: its record, what happened, what would have."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext

from conversations.agent.ports import Ending, Sending
from conversations.agent.usage import Usage
from conversations.context.policy.policy import PRESETS
from conversations.context.view import wire
from conversations.lab.report import Report
from conversations.lab.summarizer import fail_summary
from conversations.models import ApiModel, Conversation, Message, ModelPrice, Turn
from conversations.reductions import trials as module
from conversations.reductions.trial_subject import TrialError, build_record, build_subject
from conversations.reductions.trials import Trial, Trials
from conversations.turns import calls, versions
from tests.support import people_and_turns, stored_turns

pytestmark = pytest.mark.django_db


def played() -> Conversation:
    conversation = stored_turns.played().conversation
    for at in range(4):
        people_and_turns.answered(people_and_turns.next_turn(conversation, f"And then {at}?"))
    return Conversation.objects.get(pk=conversation.pk)


def ran(conversation: Conversation, trials: Trials | None = None) -> Trial:
    trials = trials or Trials()
    trials.start(7, conversation.pk, conversation.head, build_subject(conversation)).result(60)
    found = trials.of(7, conversation.pk)
    assert found is not None
    return found


def test_the_record_holds_what_was_said_and_when_and_what_was_counted() -> None:
    conversation = played()
    record = build_record(conversation)
    stored = Message.objects.filter(conversation=conversation).order_by("seq")
    assert [message.content for message in record.messages] == [row.content for row in stored]
    assert record.system == "Be brief."
    assert record.id == str(conversation.public_id)
    assert len(record.times) == len(record.messages)
    assert list(record.times) == sorted(record.times)
    # The first call had nothing taken from it; those behind the compaction had.
    assert [(reading.at, reading.context) for reading in record.readings] == [(1, 1_300)]


def test_a_trial_tells_of_every_policy_that_can_be_replayed() -> None:
    conversation = played()
    trial = ran(conversation)
    assert not trial.is_running
    assert (trial.problem, trial.own) == ("", "adaptive")
    assert trial.names[0] == "adaptive"
    assert set(trial.names) == set(PRESETS)
    answers = Message.objects.filter(conversation=conversation, kind="answer").count()
    assert [report.calls for report in trial.reports] == [answers] * len(trial.names)
    assert [report.violations for report in trial.reports] == [[]] * len(trial.names)
    assert all(report.cost_uncached >= report.cost > 0 for report in trial.reports)


def test_a_trial_bills_summaries_at_the_price_of_the_model_that_writes_them(
    settings: Any,
) -> None:
    conversation = played()
    for at in range(6):
        lease = people_and_turns.next_turn(conversation, f"Part {at}: {'words ' * 3_000}")
        people_and_turns.answered(lease)
    ApiModel.objects.filter(pk=conversation.model).update(window=16_000)

    def summarised() -> Report:
        trial = ran(Conversation.objects.get(pk=conversation.pk))
        return trial.reports[trial.names.index("rebuild")]

    own = summarised()
    settings.AGENTWEB_SUMMARY_MODEL = "claude-haiku-5-5"
    other = summarised()
    assert own.summary_calls == other.summary_calls > 0
    assert 0 < other.summary_cost * 5 < own.summary_cost
    assert (other.cost, other.summaries) == (own.cost, own.summaries)
    ModelPrice.objects.filter(model="claude-haiku-5-5").delete()
    with pytest.raises(TrialError, match="has no price"):
        build_subject(conversation)


def test_what_happened_stands_beside_what_would_have() -> None:
    actual = ran(played()).actual
    assert actual is not None
    assert (actual.calls, actual.summary_calls) == (6, 1)
    assert actual.applied == {"compaction": 1}
    assert actual.tokens.read == 400
    assert actual.peak == 1_300
    assert actual.freed > 0
    assert actual.cost_uncached > actual.cost


def test_what_happened_on_another_version_is_not_counted() -> None:
    conversation = played()
    before = build_subject(conversation)
    assert before.actual is not None
    first = Turn.objects.filter(conversation=conversation).earliest("number")
    turn = versions.edit_prompt(turn=first, text="Something else", client_id=uuid4())
    people_and_turns.answered(people_and_turns.claimed(turn))
    other = build_subject(Conversation.objects.get(pk=conversation.pk))
    assert other.actual is not None
    assert (other.actual.calls, other.actual.summary_calls, other.actual.applied) == (1, 0, {})
    assert len(other.record.messages) == 2
    # Shown again, the first version has its figures and its system prompt.
    versions.show_version(turn=first)
    again = build_subject(Conversation.objects.get(pk=conversation.pk))
    assert again.actual == before.actual
    assert again.record == before.record


def test_a_title_is_no_summary() -> None:
    conversation = played()
    lease = people_and_turns.next_turn(conversation)
    messages = wire.encode([{"role": "user", "content": [{"type": "text", "text": "t"}]}])
    title = Sending("title", stored_turns.ENVELOPE, messages, 100, None, 1)
    sent = calls.open_call(lease=lease, sending=title)
    stored_turns.close(lease, sent.call, Ending("complete", Usage(3_000, 20, 0, 0, 0), "end_turn"))
    before = build_subject(conversation).actual
    people_and_turns.answered(lease)
    actual = build_subject(Conversation.objects.get(pk=conversation.pk)).actual
    assert before is not None
    assert actual is not None
    assert actual.summary_calls == 1
    assert actual.summary_cost == before.summary_cost


def test_a_trial_decides_by_the_prices_that_turns_decide_by(settings: Any) -> None:
    conversation = played()
    (first, *_) = build_subject(conversation).worlds
    assert first.rates is not None
    assert first.rates.cache_write_1h > 0
    settings.AGENTWEB_LONG_CACHE = False
    for world in build_subject(conversation).worlds:
        assert world.rates == replace(first.rates, cache_write_1h=0)


def test_the_replay_counts_as_the_api_did() -> None:
    conversation = played()
    scale = (
        build_subject(conversation).worlds[0].tokenizer.block({"type": "text", "text": "x" * 900})
    )
    plain = ran(conversation).reports[0].tokens.input
    assert scale > 0
    assert plain > 0


def test_an_imported_conversation_is_replayed_on_the_clock_of_the_lab() -> None:
    conversation = Conversation.objects.create(
        owner=people_and_turns.person(), model=stored_turns.MODEL
    )
    for seq, (kind, text) in enumerate((("prompt", "Hi"), ("answer", "Hello")), 1):
        Message.objects.create(
            conversation=conversation, seq=seq, parent=seq - 1, kind=kind, estimate=9, link=seq,
            content=json.dumps([{"type": "text", "text": text}]),
        )  # fmt: skip
    Conversation.objects.filter(pk=conversation.pk).update(tip=2, head=2)
    conversation.refresh_from_db()
    record = build_record(conversation)
    assert (record.times, record.readings) == ((), ())
    assert {"list_files", "recall"} <= {tool["name"] for tool in record.tools}
    trial = ran(conversation)
    assert trial.actual is None
    assert trial.reports[0].calls == 1


def test_what_cannot_be_replayed_is_said() -> None:
    turn = people_and_turns.queued(people_and_turns.person())
    with pytest.raises(TrialError, match="no answer yet"):
        build_subject(turn.conversation)
    conversation = played()
    Conversation.objects.filter(pk=conversation.pk).update(policy={"summary_breaker": "x"})
    conversation.refresh_from_db()
    with pytest.raises(TrialError, match="summary_breaker"):
        build_subject(conversation)
    conversation.policy = {}
    ModelPrice.objects.filter(kind="cache_read").delete()
    with pytest.raises(TrialError, match="has no price"):
        build_subject(conversation)
    conversation.model = "gone"
    with pytest.raises(TrialError, match="not in the catalogue"):
        build_subject(conversation)


def test_a_log_that_makes_no_request_is_said() -> None:
    conversation = stored_turns.played().conversation
    conversation.tip = Message.objects.get(kind="results").seq
    answer = Message.objects.filter(kind="answer").latest("seq")
    orphan = Message.objects.create(
        conversation=conversation, seq=99, parent=answer.seq, kind="results", estimate=1, link=99,
        content='[{"type":"tool_result","tool_use_id":"nobody","content":"x"}]',
    )  # fmt: skip
    last = Message.objects.create(
        conversation=conversation, seq=100, parent=orphan.seq, kind="answer", estimate=1, link=99,
        content='[{"type":"text","text":"x"}]',
    )  # fmt: skip
    conversation.tip = last.seq
    with pytest.raises(TrialError, match="no request that the API takes"):
        build_record(conversation)


def test_a_trial_is_bounded_in_bytes_and_time(monkeypatch: pytest.MonkeyPatch) -> None:
    conversation = played()
    monkeypatch.setattr(module, "MOST_SECONDS", -1.0)
    trial = ran(conversation)
    assert (trial.is_running, trial.reports) == (False, ())
    assert "was ended after" in trial.problem
    monkeypatch.setattr(module, "MOST_BYTES", 10)
    with pytest.raises(TrialError, match="at most 10"):
        ran(conversation)


def test_a_person_has_one_trial_at_a_time_and_few_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    conversation = played()
    trials, gate = Trials(), threading.Event()
    subject = build_subject(conversation)

    def held(*args: Any) -> Any:
        gate.wait(30)
        return fail_summary(*args)

    monkeypatch.setattr(
        module, "simulate_record", lambda record, world, watch: held(None) or _none()
    )
    begun = trials.start(7, conversation.pk, 1, subject)
    with pytest.raises(TrialError, match="still running"):
        trials.start(7, conversation.pk, 1, subject)
    monkeypatch.setattr(module, "MOST_WAITING", 2)
    others = [trials.start(8, conversation.pk, 1, subject)]
    with pytest.raises(TrialError, match="Too many"):
        trials.start(9, conversation.pk, 1, subject)
    found = trials.of(7, conversation.pk)
    assert found is not None
    assert found.is_running
    assert trials.of(7, conversation.pk + 1) is None
    gate.set()
    for future in (begun, *others):
        future.result(60)
    trials.start(9, conversation.pk, 1, subject).result(60)


def _none() -> Report:
    return Report("x")


def test_old_trials_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    conversation = played()
    monkeypatch.setattr(module, "MOST_KEPT", 2)
    monkeypatch.setattr(module, "simulate_record", lambda record, world, watch: _none())
    trials = Trials()
    for user in range(5):
        trials.start(user, conversation.pk, 1, build_subject(conversation)).result(60)
    kept = [user for user in range(5) if trials.of(user, conversation.pk)]
    assert kept == [3, 4]


def test_a_replay_that_fails_is_told_and_does_not_block(monkeypatch: pytest.MonkeyPatch) -> None:
    conversation = played()
    trials = Trials()
    monkeypatch.setattr(module, "simulate_record", None)
    assert "failed on the server" in ran(conversation, trials).problem
    monkeypatch.undo()
    assert ran(conversation, trials).problem == ""


def test_a_subject_costs_the_same_queries_however_long_the_conversation_is() -> None:
    conversation = played()
    counts = []
    for _ in range(2):
        with CaptureQueriesContext(connection) as found:
            build_subject(conversation)
        counts.append(len(found))
        for at in range(5):
            people_and_turns.answered(people_and_turns.next_turn(conversation, f"More {at}"))
        conversation.refresh_from_db()
    assert counts[0] == counts[1] <= 20


def test_the_command_replays_a_conversation_of_the_log(capsys: Any) -> None:
    conversation = played()
    call_command("simulate", "--conversation", str(conversation.public_id), "--json")
    printed = json.loads(capsys.readouterr().out)
    assert printed["totals"][0]["calls"] == 6
    for name in ("nonsense", "00000000-0000-4000-8000-000000000000"):
        with pytest.raises(CommandError, match="there is no conversation"):
            call_command("simulate", "--conversation", name)
    empty = people_and_turns.queued(people_and_turns.person("bob")).conversation
    with pytest.raises(CommandError, match="no answer yet"):
        call_command("simulate", "--conversation", str(empty.public_id))
    assert ApiModel.objects.filter(pk=stored_turns.MODEL).exists()
