"""S90: every request is rebuilt byte for byte from the log, whatever was done to the context.

Each kind of transformation happens in the whole app, by policies and by hand; the body that the
emulator logged is compared with the rebuilt one, not with a digest that the app wrote itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from conversations.context.view import wire
from conversations.db import run_db
from conversations.log.rebuild import rebuild_request
from conversations.models import ApiCall, Conversation, Message, Transformation
from conversations.reductions import manual_changes, pins, proposals
from conversations.reductions.preview import build_offer
from conversations.reductions.summary import build_summary_card
from conversations.runtime.adapters import workspace_for
from tests.faults.oracle import check_requests, check_rows
from tests.faults.running_app import App, Chat
from tests.support.paying_summaries import SUMMARY_PAYS
from tests.support.running_turns import until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]
PAGE = "The invoice 4711 of 1,250.50 EUR is paid by noon on Tuesday at the latest. " * 130
#: Reductions are switched on one by one; these settings switch all off.
QUIET = {
    "POLICY": "classic", "INPUT_TOKEN_BUDGET": 0, "MAX_TOOL_RESULT_CHARS": 0,
    "COMPACTION_THRESHOLD_TOKENS": 10_000_000, "MAX_CONVERSATION_BYTES": 0,
    "PROTECTED_TAIL_MESSAGES": 2, "MINIMUM_GAIN_TOKENS": 500, "TITLE_MODEL": "off",
    "TRIM_THRESHOLD_PERCENT": 60, "ROUND_SUMMARY_EVERY": 0,
}  # fmt: skip


class Story:
    """One person's conversation with its changes; checks that each request can be rebuilt."""

    def __init__(self, chat: Chat, settings: Any) -> None:
        self.chat, self.settings = chat, settings
        self.who = {"conversation_id": chat.conversation.pk, "actor_id": chat.user.pk}

    def policy(self, **numbers: object) -> None:
        for name, value in (QUIET | numbers).items():
            setattr(self.settings, f"AGENTWEB_{name}", value)

    async def say(self, text: str, times: int = 1) -> None:
        for _ in range(times):
            turn = await self.chat.say(text)
            assert turn.state == "done", turn.error_text

    async def read(self, times: int = 1) -> None:
        """Have the model read a file that is longer than what is sent in full."""
        await run_db(workspace_for(self.chat.user.pk).write, "notes.txt", PAGE.encode())
        await self.say("Read notes.txt", times)

    async def by_hand(self, change: Callable[..., Any], **more: Any) -> Any:
        """Change the context by hand, and send a request from it."""
        row = await run_db(change, **self.who, **more)
        await self.say("Answer in 20 words")
        return row

    def kinds(self) -> set[str]:
        rows = Transformation.objects.filter(outcome__in=("applied", "expected"))
        return set(rows.values_list("kind", flat=True))

    def conversation(self) -> Conversation:
        return Conversation.objects.get(pk=self.chat.conversation.pk)

    def proposed(self) -> str | None:
        """Return the digest of the view with a proposed summary; None while there is none."""
        made = build_offer(self.conversation(), "summary").proposed
        return made.preview.digest if made is not None and made.preview is not None else None

    def calls_of_tools(self) -> list[str]:
        rows = Message.objects.filter(conversation=self.chat.conversation, kind="results")
        return [wire.decode(row.content)[0]["tool_use_id"] for row in rows.order_by("seq")]


def check_rebuilt(app: App) -> None:
    """Compare every body that the API got with the rebuilt one, byte for byte."""
    seen = [row.body.decode() for row in app.emulator.emulator.log if row.path == "/v1/messages"]
    calls: dict[str, list[ApiCall]] = {}
    for call in ApiCall.objects.select_related("conversation", "envelope", "messages"):
        calls.setdefault(call.body_digest, []).append(call)
    assert len(seen) > 5
    for body in seen:
        for call in calls[wire.digest(body)]:
            found = rebuild_request(call)
            assert (found.problem, found.body) == ("", body)


async def by_policies(story: Story) -> None:
    story.settings.AGENTWEB_SUMMARY_MODEL = SUMMARY_PAYS["AGENTWEB_SUMMARY_MODEL"]
    chats = Conversation.objects.filter(pk=story.chat.conversation.pk)
    await run_db(chats.update, model=SUMMARY_PAYS["AGENTWEB_MODEL"])
    story.policy(MAX_TOOL_RESULT_CHARS=1_000)
    await story.read()
    assert "ingest" in await run_db(story.kinds)
    story.policy()
    await story.read(4)
    story.policy(INPUT_TOKEN_BUDGET=2_000)
    await story.say("Answer in 20 words")
    assert "compaction" in await run_db(story.kinds)
    story.policy()
    await story.say("Answer in 300 words", 3)
    story.policy(COMPACTION_THRESHOLD_TOKENS=2_000)
    await story.say("Answer in 20 words")
    assert "summary" in await run_db(story.kinds)
    story.policy()
    await story.say("Answer in 300 words", 3)
    story.policy(MAX_CONVERSATION_MESSAGES=4)
    await story.say("Answer in 20 words")
    assert "trim" in await run_db(story.kinds)
    story.policy(MAX_CONVERSATION_BYTES=30_000, TRIM_THRESHOLD_PERCENT=1)
    await story.say(f"{PAGE * 6} Answer in 20 words")
    assert "shrink" in await run_db(story.kinds)
    # Rounds long enough for a summary: each lists them all.
    for number in range(200):
        name = f"{'an invoice of last year, ' * 6}number {number}.txt"
        await run_db(workspace_for(story.chat.user.pk).write, name, b"paid")
    story.policy(ROUND_SUMMARY_EVERY=2, MAX_ROUNDS=6)
    await story.say("Hello emulator:fault=loop")
    assert "rounds" in await run_db(story.kinds)


async def by_person(story: Story) -> None:
    story.policy(INPUT_TOKEN_BUDGET=100_000)
    await story.read(3)
    first, second, _ = await run_db(story.calls_of_tools)
    row = await story.by_hand(manual_changes.exclude_originals, ids=[first])
    assert row.kind == "compaction"
    assert (await story.by_hand(manual_changes.include_originals, ids=[first])).kind == "restore"
    gone = await run_db(manual_changes.exclude_originals, **story.who, ids=[second])
    await story.by_hand(manual_changes.undo_change, seq=gone.seq)
    preview = (await run_db(lambda: build_offer(story.conversation(), "results"))).preview
    await story.by_hand(manual_changes.compact_now, wanted="results", digest=preview.digest)
    assert (await story.by_hand(pins.pin_originals, ids=[second])).kind == "restore"
    await story.by_hand(pins.unpin_originals, ids=[second])
    await story.say("Answer in 300 words", 3)
    await story.chat.post("compact/ask")
    await until(lambda: story.proposed() is not None)
    summary = await story.by_hand(proposals.apply_proposal, digest=await run_db(story.proposed))
    words = "They asked for invoice 4711 and were told of it in 300 words. " * 3
    await story.by_hand(manual_changes.edit_summary, seq=summary.seq, text=words)
    card = await run_db(lambda: build_summary_card(story.conversation(), summary))
    assert card is not None


async def of_the_api(story: Story) -> None:
    numbers = {"INPUT_TOKEN_BUDGET": 9_000, "COMPACTION_THRESHOLD_TOKENS": 24_000}
    story.policy(POLICY="native", CLEAR_KEEP_RESULTS=1, MINIMUM_GAIN_TOKENS=1_000, **numbers)
    await story.read(9)
    assert {"clearing", "summary"} <= await run_db(story.kinds)
    await run_db(Conversation.objects.filter(pk=story.chat.conversation.pk).update,
             model="claude-haiku-5-5")  # fmt: skip
    await story.say("Answer in 20 words")


@pytest.mark.parametrize("live", [by_policies, by_person, of_the_api])
async def test_every_request_is_rebuilt_from_originals_and_the_record(
    app: App, settings: Any, live: Callable[[Story], Any]
) -> None:
    async with app.chat() as chat:
        await live(Story(chat, settings))
        await run_db(check_rebuilt, app)
        await run_db(check_rows)
        await check_requests(app)
