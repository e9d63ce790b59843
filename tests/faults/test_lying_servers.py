"""No wrong answer or refusal of a server between app and API ends a conversation.

A gateway changes answers, or has rules that the app does not know. After each of them the turn is
answered; a refusal is followed by one repair, which is recorded with the text of the refusal.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from agentweb.emulator.server import Server
from conversations.audit.verify import Tally, verify_everything
from conversations.context.steps.repair_blocks import NO_RESULT
from conversations.context.view import wire
from conversations.db import run_db
from conversations.models import ApiResult, ToolCall, Transformation
from tests.faults.going_on import PROTOCOL, check_going_on, check_pages, talk
from tests.faults.oracle import check_rows
from tests.faults.running_app import App, Chat, reductions
from tests.support.gateway import Gateway

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]


async def with_gateway(app: App, gateway: Gateway, run: Callable[[Chat], Awaitable[None]]) -> None:
    """Run `run` with the app behind a gateway."""
    with Server(gateway).start() as server:
        await app.point_at(server.url)
        try:
            async with app.chat() as chat:
                await run(chat)
        finally:
            await app.point_at(app.emulator.url)


def has_word(word: str) -> Callable[[dict[str, Any]], str]:
    """Return a rule that refuses messages with a word; its error names the path as the API does."""

    def rule(body: dict[str, Any]) -> str:
        for at, message in enumerate(body["messages"]):
            for part, block in enumerate(message["content"]):
                if word in wire.encode(block):
                    return f"messages.{at}.content.{part}: new rule: `{word}` is not permitted"
        return ""

    return rule


def allow(body: dict[str, Any]) -> str:
    return ""


async def test_a_gateway_that_repeats_the_ids_of_calls_is_answered_every_time(app: App) -> None:
    """Each id is stored once; the row of a call has the received one."""
    gateway = Gateway(app.emulator.app, rewrite=lambda raw: re.sub(rb"toolu_\w+", b"call.0", raw))

    async def run(chat: Chat) -> None:
        for _ in range(3):
            turn = await chat.say("Use 3 tools")
            assert (turn.state, turn.error_text) == ("done", "")
        calls = await run_db(lambda: list(ToolCall.objects.values_list("tool_use_id", "given_id")))
        assert [one for one, _ in calls] == ["call_0", *(f"call_0_{n}" for n in range(2, 10))]
        assert {given for _, given in calls} == {"call.0"}
        assert await run_db(reductions, chat) == []
        await run_db(check_rows)
        await check_pages(chat)

    await with_gateway(app, gateway, run)


async def test_thinking_that_a_gateway_changed_costs_the_thinking_alone(app: App) -> None:
    def change(raw: bytes) -> bytes:
        return re.sub(rb'("signature":")\w{8}', rb"\1AAAAAAAA", raw)

    gateway = Gateway(app.emulator.app, rewrite=change)

    async def run(chat: Chat) -> None:
        assert (await chat.say("Hello")).state == "done"
        gateway.rewrite = lambda raw: raw
        for words in ("List files", "Who are you?", "And once more"):
            turn = await chat.say(words)
            assert (turn.state, turn.error_text) == ("done", "")
            assert await run_db(reductions, chat) == [("rebind", "applied")]
        await run_db(check_rows)
        await check_pages(chat)

    await with_gateway(app, gateway, run)


async def test_a_part_that_a_gateway_adds_to_an_answer_is_not_sent_back(
    app: App,
) -> None:
    begins, ends = b"event: content_block_start", b"event: message_delta"
    seen = 0

    def add(raw: bytes) -> bytes:
        nonlocal seen
        seen = raw.count(begins) if b"event: message_start" in raw else seen + raw.count(begins)
        start = {
            "type": "content_block_start",
            "index": seen,
            "content_block": {"type": "hologram"},
        }
        stop = {"type": "content_block_stop", "index": seen}
        more = "".join(
            f"event: {one['type']}\ndata: {wire.encode(one)}\n\n" for one in (start, stop)
        )
        return raw.replace(ends, more.encode() + ends)

    gateway = Gateway(app.emulator.app, rewrite=add)

    async def run(chat: Chat) -> None:
        for words in ("Hello", "List files", "And once more"):
            turn = await chat.say(words)
            assert (turn.state, turn.error_text) == ("done", "")
        assert "hologram" not in wire.encode(gateway.messages)
        assert await run_db(reductions, chat) == []
        await run_db(check_rows)
        await check_pages(chat)

    await with_gateway(app, gateway, run)


async def test_a_rule_that_is_new_to_the_api_costs_what_breaks_it_and_no_more(app: App) -> None:
    gateway = Gateway(app.emulator.app)

    async def run(chat: Chat) -> None:
        await talk(chat)
        gateway.rule = has_word("buy milk")
        await check_going_on(chat, repairs=1, refused=1)
        assert len(gateway.refused) == 1
        row = await run_db(Transformation.objects.get)
        assert "new rule: `buy milk` is not permitted" in row.reason
        refused = await run_db(ApiResult.objects.get, error_type="invalid_request")
        assert "new rule" in refused.error_message
        assert (refused.cost_micros, refused.status) == (0, "error")
        await run_db(check_rows)
        await check_pages(chat)

    await with_gateway(app, gateway, run)


@pytest.mark.parametrize("counts", [True, False])
async def test_a_rule_that_names_no_place_is_found_by_counting_or_by_age(
    app: App, counts: bool
) -> None:
    gateway = Gateway(app.emulator.app, counts=counts)

    def odd(body: dict[str, Any]) -> str:
        has_results = any(
            block["type"] == "tool_result" and block["content"] != NO_RESULT
            for message in body["messages"][-1:]
            for block in message["content"]
        )
        return "This result is not acceptable." if has_results else ""

    gateway.rule = odd

    async def run(chat: Chat) -> None:
        turn = await chat.say("List files")
        assert (turn.state, turn.error_text) == ("done", "")
        assert await run_db(reductions, chat) == [("repair", "applied")]
        gateway.rule = allow
        assert (await chat.say("Thanks")).state == "done"
        assert await run_db(reductions, chat) == [("repair", "applied")]
        await run_db(check_rows)

    await with_gateway(app, gateway, run)


async def test_what_is_refused_to_the_end_is_kept_for_its_reader_and_not_sent_again(
    app: App,
) -> None:
    gateway = Gateway(app.emulator.app, rule=has_word("forbidden"))

    async def run(chat: Chat) -> None:
        assert (await chat.say("Hello")).state == "done"
        turn = await chat.say("Say the forbidden word")
        assert (turn.state, turn.error_code) == ("failed", "invalid_request")
        assert "Say the forbidden word" in chat.text(2)
        assert "not sent again" in turn.error_text
        assert not PROTOCOL.search(chat.text(2))
        for words in ("Then something else", "And more"):
            assert (await chat.say(words)).state == "done"
        assert len(gateway.refused) == 1
        assert "forbidden" not in wire.encode(gateway.messages[-1])
        assert await run_db(reductions, chat) == [("repair", "applied")]
        await run_db(check_rows)
        await check_pages(chat)

    await with_gateway(app, gateway, run)


async def test_a_gateway_that_refuses_everything_takes_nothing_from_the_conversation(
    app: App,
) -> None:
    gateway = Gateway(app.emulator.app)

    async def run(chat: Chat) -> None:
        await talk(chat)
        gateway.rule = lambda body: "Not today."
        turn = await chat.say("Go on")
        assert (turn.state, turn.error_code) == ("failed", "invalid_request")
        assert len(gateway.refused) == 2
        gateway.rule = allow
        assert (await chat.say("And now")).state == "done"
        sent = wire.encode(gateway.messages[-1])
        assert "buy milk" in sent
        assert "Hello" in sent
        assert "Go on" not in sent
        await run_db(check_rows)
        assert list(await run_db(lambda: list(verify_everything(Tally())))) == []

    await with_gateway(app, gateway, run)
