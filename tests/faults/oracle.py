"""The invariants that must hold after every fault: O1 to O7 of RELIABILITY.md.

O8, that nothing is leaked (tasks, connections, descriptors, threads, memory), concerns the process
and not a conversation: `whole.running` checks tasks and connections at the end of each test,
`test_resources` the rest.
"""

from __future__ import annotations

import asyncio
from collections import Counter

from django.db.models import QuerySet, Sum

from agentweb.emulator import api_accounts
from agentweb.emulator.api_accounts import Account
from agentweb.emulator.server import EmulatorServer
from agentweb.emulator.validation.call import validate_call
from conversations.audit.verify import Tally, verify_everything
from conversations.context.view import wire
from conversations.db import run_db
from conversations.models import (
    LIVE,
    ApiCall,
    ApiResult,
    Budget,
    BudgetWindow,
    Conversation,
    LedgerEntry,
    Message,
    ToolCall,
    Transformation,
    Turn,
)
from tests.faults.running_app import App, Chat
from tests.support.running_turns import unrecorded

#: Errors at which a client disconnects while the server may still be writing.
_WENT_AWAY = ("protocol_error", "timeout")


async def check_everything(chat: Chat) -> None:
    """Check that a next message is answered, and all invariants."""
    app = chat.app
    app.clock.ahead += 61
    turn = await chat.say("Are you there?")
    assert (turn.state, turn.finish_reason, turn.error_text) == ("done", "end_turn", "")
    await run_db(check_rows)
    await check_requests(app)
    await check_page(chat)
    await run_db(check_runs, app)
    await run_db(check_prompts, chat)
    await settled(app.emulator)
    await run_db(check_bills, app.emulator, ApiResult.objects.all())


def check_rows() -> None:
    """Check O1, O3, O4, O6 and O7 for all conversations, once nothing runs."""
    check_totals()
    for conversation in Conversation.objects.all():
        check_log(conversation)
    problems = list(verify_everything(Tally()))
    assert not problems, problems


def check_totals() -> None:
    """Check O1, O4 and O6 for all conversations."""
    assert not Turn.objects.filter(state__in=LIVE).exists()
    assert ApiCall.objects.filter(result=None).count() == 0
    assert Message.objects.filter(kind="prompt").count() == Turn.objects.count()
    assert not ToolCall.objects.filter(state__in=("planned", "started")).exists()
    for window in BudgetWindow.objects.all():
        entries = LedgerEntry.objects.filter(window=window, kind="settle")
        settled = entries.aggregate(sum=Sum("amount"))["sum"] or 0
        assert window.held == 0
        assert window.spent + window.overrun == settled
    paid = ApiResult.objects.aggregate(sum=Sum("cost_micros"))["sum"] or 0
    spent = sum(window.spent + window.overrun for window in BudgetWindow.objects.all())
    assert spent == paid or not Budget.objects.exists()


def check_log(conversation: Conversation) -> None:
    """Check O3: the numbers of the log have no gaps and no duplicates."""
    seqs = [
        *Message.objects.filter(conversation=conversation).values_list("seq", flat=True),
        *Transformation.objects.filter(conversation=conversation).values_list("seq", flat=True),
    ]
    assert sorted(seqs) == list(range(1, conversation.head + 1))


async def check_requests(app: App) -> None:
    """Check O2: every request is valid, whatever its response was, and is in the audit."""
    assert await run_db(unrecorded, app.emulator) == []
    for row in app.emulator.emulator.log:
        if row.path == "/v1/messages":
            betas = api_accounts.betas(row.headers)
            validate_call(
                row.body,
                account=Account("default", "default"),
                betas=betas,
                version=api_accounts.find_version(row.headers),
                counting=False,
            )


async def check_page(chat: Chat) -> None:
    """Check O3: a page that got every frame equals a newly loaded one."""
    fresh = await chat.fresh()
    assert not chat.page.missed, chat.page.missed
    turns = Turn.objects.filter(conversation=chat.conversation)
    for number in await run_db(lambda: list(turns.values_list("number", flat=True))):
        assert chat.text(number) == fresh.text(f"turn-{number}")


def check_runs(app: App) -> None:
    """Check O5: no tool call ran twice, and every call recorded as done has run."""
    assert set(app.runs.values()) <= {1}
    ran = ToolCall.objects.filter(state="ok").values_list("turn_id", "tool_use_id")
    assert set(ran) <= set(app.runs)


def check_prompts(chat: Chat) -> None:
    """Check O6: every acknowledged message is stored, once."""
    rows = Message.objects.filter(
        conversation=chat.conversation, kind="prompt", turn__retry_of=None
    )
    stored = [wire.decode(row.content)[0]["text"] for row in rows.order_by("seq")]
    assert stored == chat.sent


async def settled(emulator: EmulatorServer) -> None:
    """Wait until the emulator has noticed every disconnected client."""
    async with asyncio.timeout(60):
        while emulator.emulator.open_streams:
            await asyncio.sleep(0.01)


def check_bills(emulator: EmulatorServer, results: QuerySet[ApiResult]) -> None:
    """Check O4: each call's cost is its bill, or a bounded estimate if the client disconnected."""
    bills = {key: bill.cost_micros for key, bill in emulator.emulator.bills.items()}
    paid: Counter[str] = Counter()
    unanswered = 0
    for row in results:
        if row.input_tokens is None:
            # Refused, or disconnected before the first event: its cost was not reported.
            unanswered += row.cost_basis == "estimated"
            continue
        went = row.status == "stopped" or row.error_type in _WENT_AWAY
        if row.cost_basis == "estimated":
            # Where the answer thought, an estimate by its time can be above the bill.
            assert went or row.cost_micros >= bills[row.request_id]
            bills[row.request_id] = row.cost_micros
        paid[row.request_id] += row.cost_micros
    assert len(bills.keys() - paid.keys()) <= unanswered
    assert paid == {key: bills[key] for key in bills if key in paid}
