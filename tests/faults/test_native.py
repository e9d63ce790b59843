"""The `native` policy through the whole app: the API clears and compacts, and the app records it.

The emulator is the reference: it refuses what breaks a rule, reports what it cleared, and keeps its
own bill. The failures of a compaction differ in what the API sends: PostgreSQL runs some of them.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.urls import reverse

from conversations.context.view import wire
from conversations.db import run_db
from conversations.models import ApiCall, ApiResult, Conversation, Envelope, Transformation
from conversations.runtime.adapters import workspace_for
from tests.faults.oracle import check_everything
from tests.faults.running_app import App, Chat, reductions
from tests.support.one_database import with_slice

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]
PAGE = "The invoice 4711 of 1,250.50 EUR is paid by noon on Tuesday at the latest. " * 130


def small(settings: Any, **numbers: int) -> None:
    """Set the policy's numbers so low that a short conversation exceeds them."""
    settings.AGENTWEB_POLICY = "native"
    settings.AGENTWEB_INPUT_TOKEN_BUDGET = 9_000
    settings.AGENTWEB_COMPACTION_THRESHOLD_TOKENS = 24_000
    settings.AGENTWEB_MINIMUM_GAIN_TOKENS = 1_000
    settings.AGENTWEB_CLEAR_KEEP_RESULTS = 1
    settings.AGENTWEB_PROTECTED_TAIL_MESSAGES = 2
    for name, value in numbers.items():
        setattr(settings, f"AGENTWEB_{name}", value)


async def reads(chat: Chat, times: int, aside: str = "") -> None:
    """Have the model read a file `times` times, with a message for each."""
    await run_db(workspace_for(chat.user.pk).write, "notes.txt", PAGE.encode())
    for number in range(times):
        turn = await chat.say(f"Read notes.txt, number {number} {aside}")
        assert (turn.state, turn.finish_reason, turn.error_text) == ("done", "end_turn", "")


def bills_agree(app: App) -> None:
    """Compare every result with the emulator's bill of the same request."""
    bills = app.emulator.emulator.bills
    for result in ApiResult.objects.exclude(request_id=""):
        assert result.cost_micros == bills[result.request_id].cost_micros
        assert result.cost_basis == "exact"


def sent_bodies(app: App) -> list[dict[str, Any]]:
    """Return the bodies of the messages requests, oldest first."""
    rows = [row for row in app.emulator.emulator.log if row.path == "/v1/messages"]
    return [json.loads(row.body) for row in rows]


def cleared(conversation: Conversation) -> list[tuple[int, int]]:
    """Return for each reply how many results were expected to be cleared, and how many were."""
    found = []
    expected = 0
    entries: list[tuple[int, Any]] = [
        *Transformation.objects.filter(conversation=conversation).values_list("link", "pk"),
        *ApiCall.objects.filter(conversation=conversation, purpose="reply").values_list(
            "link", "pk"
        ),
    ]
    rows = {row.link: row for row in Transformation.objects.filter(conversation=conversation)}
    calls = {
        row.link: row for row in ApiCall.objects.filter(conversation=conversation, purpose="reply")
    }
    for link, _ in sorted(entries):
        if link in rows:
            row = rows[link]
            if row.kind == "clearing" and row.outcome == "expected":
                expected = len(row.reason.split())
            elif row.kind == "summary" and row.outcome == "applied":
                expected = 0
        else:
            usage = wire.decode(calls[link].result.usage)
            edits = usage.get("context_management", {}).get("applied_edits", [])
            found.append((expected, sum(edit["cleared_tool_uses"] for edit in edits)))
    return found


def explained(chat: Chat) -> list[str]:
    """Return the pages of every change of the context, and that of the conversation."""
    rows = Transformation.objects.filter(conversation=chat.conversation)
    name = chat.conversation.public_id
    paths = [reverse("reduction", args=[name, row.seq]) for row in rows]
    answers = [chat.client.get(path) for path in (*paths, reverse("chat", args=[name]))]
    assert {answer.status_code for answer in answers} == {200}
    return [answer.content.decode() for answer in answers]


async def test_old_results_are_cleared_as_was_recorded_and_then_compacted(
    app: App, settings: Any, caplog: Any
) -> None:
    small(settings)
    async with app.chat() as chat:
        await reads(chat, 9)
        assert set(app.statuses) == {200}
        found = await run_db(reductions, chat)
        assert ("clearing", "expected") in found
        assert ("summary", "applied") in found
        assert {kind for kind, _ in found} <= {"clearing", "summary", "rebind"}
        counts = await run_db(cleared, chat.conversation)
        assert all(expected == was for expected, was in counts)
        assert max(was for _, was in counts) > 0
        await run_db(bills_agree, app)
        bodies = sent_bodies(app)
        assert any("compaction" in body for body in bodies)
        last = bodies[-1]["messages"]
        assert last[0]["content"][0]["type"] == "compaction"
        assert "recall" in {tool["name"] for tool in bodies[-1]["tools"]}
        assert "expected were" not in caplog.text
        rows = await run_db(lambda: list(Envelope.objects.exclude(headers="{}")))
        assert {row.headers for row in rows} >= {
            '{"anthropic-beta":"compact-2026-09-04"}',
            '{"anthropic-beta":"context-management-2025-06-27"}',
            '{"anthropic-beta":"compact-2026-09-04,context-management-2025-06-27"}',
        }
        await check_everything(chat)
        pages = await run_db(explained, chat)
        assert any("Cleared by the API" in page for page in pages)
        assert any("The API compacted" in page for page in pages)


@pytest.mark.parametrize("how", with_slice(["error", "empty", "refusal", "toolcall", "cut"]))
async def test_a_compaction_that_fails_is_paid_recorded_and_left_to_the_other_steps(
    app: App, settings: Any, how: str
) -> None:
    small(settings, INPUT_TOKEN_BUDGET=100_000, COMPACTION_THRESHOLD_TOKENS=110_000)
    async with app.chat() as chat:
        await reads(chat, 4, f"emulator:summary={how}")
        small(settings, COMPACTION_THRESHOLD_TOKENS=12_000, INPUT_TOKEN_BUDGET=11_000)
        turn = await chat.say("Read notes.txt again")
        assert (turn.state, turn.error_text) == ("done", "")
        found = await run_db(reductions, chat)
        assert ("summary", "rejected") in found
        assert ("summary", "applied") not in found
        rows = ApiResult.objects.filter(call__purpose="summary")
        costs = await run_db(lambda: list(rows.values_list("cost_micros", flat=True)))
        assert all(cost > 0 for cost in costs) == (how != "error")
        await check_everything(chat)


async def test_another_model_is_given_the_words_of_the_block(app: App, settings: Any) -> None:
    small(settings)
    async with app.chat() as chat:
        await reads(chat, 9)
        assert ("summary", "applied") in await run_db(reductions, chat)
        everybody = Conversation.objects.filter(pk=chat.conversation.pk)
        # A model with its own compaction, and one without.
        for model in ("claude-haiku-5-5", "claude-fable-5-2"):
            await run_db(lambda name=model: everybody.update(model=name))
            turn = await chat.say("Answer in 30 words")
            assert (turn.state, turn.error_text) == ("done", "")
        assert set(app.statuses) == {200}
        first = sent_bodies(app)[-1]["messages"][0]
        assert (first["role"], first["content"][0]["text"][:17]) == ("user", "[CONTEXT SUMMARY]")
        await check_everything(chat)
