"""A refusal that no known rule explains: a repair, one more request, and never a locked talk."""

from __future__ import annotations

import json
from typing import Any

import pytest

from conversations.agent.ports import ModelFailed
from conversations.agent.refused_requests import MOST_REPAIRS, NOT_TAKEN
from conversations.agent.resume import TurnProgress
from conversations.context.steps.repair import NOTES
from conversations.context.steps.repair_blocks import NO_PART
from conversations.context.steps.repair_refused import TURN_LEFT_OUT
from conversations.context.view import wire
from tests.agent.fakes import FakeLog, World, blocks
from tests.agent.laws import check_log, check_usable
from tests.agent.streams import calls, complete_block, ended, says, start, text
from tests.context.samples import IMAGE

pytestmark = pytest.mark.asyncio


def refused(api_text: str, code: str = "invalid_request", **more: Any) -> list[Any]:
    return [ModelFailed(code, "Refused.", http_status=400, api_text=api_text, **more)]


def talk(*more: str) -> World:
    """A conversation of two exchanges, with an image in the first prompt, and a prompt."""
    log = FakeLog()
    log.put("prompt", wire.encode([IMAGE, {"type": "text", "text": "What is it?"}]))
    log.put("answer", blocks("A dot."))
    log.put("prompt", blocks("And then?"))
    log.put("answer", blocks("Nothing."))
    return World(log=log, prompt=more[0] if more else "Go on")


def sent(world: World, at: int = -1) -> list[Any]:
    found: list[Any] = json.loads(world.calls.bodies[at])["messages"]
    return found


def kinds(world: World) -> list[str]:
    return [change.kind for change, _ in world.log.recorded]


async def test_what_the_api_names_is_left_out_and_the_turn_goes_on() -> None:
    world = talk()
    finish = await world.run(
        refused("messages.0.content.0.image.source: Could not process image"), says("Fine.")
    )
    assert (finish.state, finish.text) == ("done", "")
    assert kinds(world) == ["repair"]
    change = world.log.recorded[0][0]
    assert (change.note, change.reason) == (
        NOTES["prompt"], "messages.0.content.0.image.source: Could not process image"
    )  # fmt: skip
    assert [block["type"] for block in sent(world)[0]["content"]] == ["text", "text"]
    assert "could not be sent" in sent(world)[0]["content"][0]["text"]
    await check_usable(world)
    assert kinds(world) == ["repair"]


@pytest.mark.parametrize(
    ("api_text", "left"),
    [
        ("messages.1.content.0: text is odd", ["What is it?", "And then?", "Nothing.", "Go on"]),
        ("messages.1: something is odd", ["And then?", "Nothing.", "Go on"]),
        ("bad request", ["What is it?", "A dot.", "Go on"]),
        ("messages.99.content.3: no such", ["What is it?", "A dot.", "Go on"]),
    ],
)
async def test_the_finest_part_that_the_words_allow_is_left_out(
    api_text: str, left: list[str]
) -> None:
    world = talk()
    finish = await world.run(refused(api_text), says("Fine."))
    assert finish.state == "done"
    texts = [b["text"] for m in sent(world) for b in m["content"] if b["type"] == "text"]
    assert texts == left
    await check_usable(world)
    assert kinds(world) == ["repair"]


async def test_the_change_whose_request_can_be_counted_is_chosen() -> None:
    world = talk()
    world.model.counts = [None, 50]
    finish = await world.run(refused("messages.1.content.0: odd"), says("Fine."))
    assert finish.state == "done"
    assert len(world.model.counted) == 2
    texts = [b["text"] for m in sent(world) for b in m["content"] if b["type"] == "text"]
    assert texts == ["And then?", "Nothing.", "Go on"]


async def test_a_result_that_the_api_does_not_take_is_replaced_by_words() -> None:
    world = talk()
    finish = await world.run(
        calls("toolu_1"),
        refused("messages.6.content.0.tool_result.content: odd"),
        says("I see."),
    )
    assert finish.state == "done"
    [result] = sent(world)[-1]["content"]
    assert result["tool_use_id"] == "toolu_1"
    assert "could not be sent" in result["content"]
    assert [call for call, _ in world.tools.ran] == ["toolu_1"]
    await check_usable(world)


async def test_a_call_that_the_api_names_by_its_place_goes_with_its_result() -> None:
    world = talk()
    await world.run(calls("toolu_1"), says("I see."))
    said = "messages.5.content.0.name: odd"
    finish = await world.go_on("More", refused(said), says("Yes."))
    assert finish.state == "done"
    assert "toolu_1" not in world.calls.bodies[-1]
    assert [call for call, _ in world.tools.ran] == ["toolu_1"]
    await check_usable(world)


async def test_a_place_in_a_message_that_has_no_such_part_names_the_message() -> None:
    world = talk()
    finish = await world.run(refused("messages.1.content.9: odd"), says("Fine."))
    assert finish.state == "done"
    texts = [b["text"] for m in sent(world) for b in m["content"] if b["type"] == "text"]
    assert texts == ["And then?", "Nothing.", "Go on"]


async def test_without_a_place_what_the_api_put_into_the_last_answer_is_left_out() -> None:
    world = talk()
    search = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}}
    found = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []}
    parts = [*complete_block(search), *complete_block(found, 1), *text(2, "Found.")]
    await world.go_on("Search", [start(), *parts, *ended("end_turn")])
    assert "web_search" in world.log.view().body
    finish = await world.go_on("Thanks", refused("bad request"), says("Fine."))
    assert finish.state == "done"
    assert "web_search" not in world.calls.bodies[-1]
    assert "Found." in world.calls.bodies[-1]
    await check_usable(world)


async def test_a_call_that_the_api_names_by_its_id_goes_with_its_result() -> None:
    world = talk()
    await world.run(calls("toolu_1"), says("I see."))
    finish = await world.go_on("More", refused("`tool_use` ids must be odd: toolu_1"), says("Yes."))
    assert finish.state == "done"
    assert "toolu_1" not in world.calls.bodies[-1]
    await check_usable(world)


def gallery(count: int) -> World:
    """A conversation of exchanges with an image each, and a prompt."""
    log = FakeLog()
    for _ in range(count):
        log.put("prompt", wire.encode([IMAGE, {"type": "text", "text": "What is it?"}]))
        log.put("answer", blocks("A dot."))
    return World(log=log, prompt="Go on")


def wrong_image(at: int) -> list[Any]:
    return refused(f"messages.{2 * at}.content.0.image.source: Could not process image")


async def test_each_place_that_the_api_names_is_repaired_in_the_same_turn() -> None:
    world = gallery(4)
    finish = await world.run(*map(wrong_image, range(3)), says("Fine."))
    assert finish.state == "done"
    assert kinds(world) == ["repair"] * 3
    first = [message["content"][0]["type"] for message in sent(world)[:7:2]]
    assert first == ["text", "text", "text", "image"]
    await check_usable(world)
    assert kinds(world) == ["repair"] * 3


async def test_repairs_that_helped_are_kept_when_the_turn_fails() -> None:
    world = gallery(MOST_REPAIRS + 2)
    many = map(wrong_image, range(MOST_REPAIRS + 1))
    finish = await world.run(*many, says("Never."))
    assert (finish.state, finish.text) == ("failed", NOT_TAKEN)
    assert kinds(world) == ["repair"] * (MOST_REPAIRS + 1)
    assert world.log.view().body.count('"image"') == 2
    await check_usable(world)


@pytest.mark.parametrize("last", ["bad request", "messages.2.content.0.image.source: no"])
async def test_only_the_last_repair_is_taken_back(last: str) -> None:
    world = gallery(3)
    finish = await world.run(wrong_image(0), wrong_image(1), refused(last), says("Never."))
    assert (finish.state, finish.text) == ("failed", NOT_TAKEN)
    first = [message.blocks[0].type for message in world.log.view().messages[::2]]
    assert first == ["text", "image", "image"]
    await check_usable(world)


async def test_a_field_that_the_api_does_not_accept_is_left_out_of_all_such_blocks() -> None:
    log = FakeLog()
    cited = {"type": "text", "text": "A dot.", "citations": [{"type": "odd"}]}
    log.put("prompt", wire.encode([{"type": "text", "text": "What?", "citations": None}]))
    log.put("answer", wire.encode([cited]))
    log.put("prompt", blocks("Sure?"))
    log.put("answer", wire.encode([cited, {"type": "text", "text": "Yes."}]))
    world = World(log=log)
    said = "messages.1.content.0.text.citations.0.odd.x: Extra inputs are not permitted"
    finish = await world.run(refused(said), says("Fine."))
    assert finish.state == "done"
    assert world.log.recorded[0][0].note == NOTES["order"]
    answers = [block for m in sent(world) if m["role"] == "assistant" for block in m["content"]]
    assert answers == [{"type": "text", "text": t} for t in ("A dot.", "A dot.", "Yes.")]
    assert sent(world)[0]["content"][0]["citations"] is None
    await check_usable(world)


async def test_a_file_that_the_api_does_not_have_is_left_out_wherever_it_is_sent() -> None:
    log = FakeLog()
    missing = {"type": "document", "source": {"type": "file", "file_id": "file_011C-a"}}
    there = {"type": "document", "source": {"type": "file", "file_id": "file_011C"}}
    log.put("prompt", wire.encode([missing]))
    log.put("answer", blocks("A letter in file_011C-a."))
    log.put("prompt", wire.encode([there, missing, {"type": "text", "text": "Again?"}]))
    log.put("answer", blocks("The same."))
    world = World(log=log, prompt="And file_011C-a?")
    finish = await world.run(refused("File not found: file_011C-a"), says("Fine."))
    assert (finish.state, kinds(world)) == ("done", ["repair"])
    parts = [[b.get("text", b.get("source")) for b in m["content"]] for m in sent(world)]
    assert parts == [
        [NO_PART], ["A letter in file_011C-a."], [there["source"], NO_PART, "Again?"],
        ["The same."], ["And file_011C-a?"],
    ]  # fmt: skip
    await check_usable(world)


async def test_a_missing_file_that_is_sent_nowhere_is_a_refusal_like_any_other() -> None:
    world = talk()
    finish = await world.run(refused("File not found: file_011C"), says("Fine."))
    assert (finish.state, kinds(world)) == ("done", ["repair"])
    await check_usable(world)


@pytest.mark.parametrize(
    "api_text",
    ["tools.0.custom.input_schema: bad", "max_tokens: 9 > 8", "thinking.type: no", "system"],
)
async def test_a_refused_parameter_costs_nothing_of_the_conversation(api_text: str) -> None:
    world = talk()
    finish = await world.run(refused(api_text))
    assert (finish.state, finish.code, finish.text) == ("failed", "invalid_request", "Refused.")
    assert kinds(world) == []
    await check_usable(world)


async def test_a_second_refusal_ends_the_turn_takes_the_guess_back_and_locks_nothing() -> None:
    world = talk("odd words")
    before = world.log.view().messages
    finish = await world.run(refused("bad request"), refused("bad request"), says("Never."))
    assert (finish.state, finish.code, finish.text) == ("failed", "invalid_request", NOT_TAKEN)
    assert len(world.calls.bodies) == 2
    assert kinds(world) == ["repair", "repair"]
    assert [m.content for m in world.log.view().messages] == [m.content for m in before[:-1]]
    assert world.log.recorded[-1][0].note == TURN_LEFT_OUT
    await check_usable(world)
    assert "odd words" not in world.calls.bodies[-1]
    assert "Nothing." in world.calls.bodies[-1]


async def test_a_prompt_alone_is_never_guessed_away() -> None:
    world = World(prompt="odd words")
    finish = await world.run(refused("messages.0.content.0: odd"), says("Never."))
    assert (finish.state, finish.text) == ("failed", NOT_TAKEN)
    assert len(world.calls.bodies) == 1
    await check_usable(world)


@pytest.mark.parametrize("said", ["bad request", "messages.6.content.0.tool_result: odd"])
async def test_what_a_turn_did_that_could_not_be_sent_stays_on_record(said: str) -> None:
    world = talk("Order it")
    order = calls("toolu_1", input={"path": "order-4711.txt"})
    finish = await world.run(order, refused(said), refused(said), says("Never."))
    assert (finish.state, finish.text) == ("failed", NOT_TAKEN)
    assert kinds(world) == ["repair", "repair"]
    kept = world.log.view().messages[-1]
    assert (kept.kind, kept.by, len(kept.blocks)) == ("prompt", ("repair",), 1)
    assert "look order-4711.txt" in kept.content
    assert "toolu_1" not in world.log.view().body
    await check_usable(world)
    assert "look order-4711.txt" in world.calls.bodies[-1]


async def test_another_worker_does_not_repair_a_second_time() -> None:
    world = talk()
    finish = await world.resume(TurnProgress(first=5, refusals=1), refused("bad request"))
    assert (finish.state, finish.text) == ("failed", NOT_TAKEN)
    assert kinds(world) == ["repair"]
    await check_usable(world)


async def test_signatures_that_are_refused_without_any_thinking_are_repaired_too() -> None:
    world = talk()
    odd = "messages.1.content.0: Invalid `signature` in `thinking` block"
    finish = await world.run(refused(odd, "signature"), refused(odd, "signature"), says("Fine."))
    assert finish.state == "done"
    assert kinds(world) == ["repair"]
    check_log(world)


async def test_after_words_were_shown_nothing_is_sent_again() -> None:
    world = talk()
    finish = await world.run([*says("Half")[:3], *refused("messages.1.content.0: odd")])
    assert finish.state == "failed"
    assert len(world.calls.bodies) == 1
    assert kinds(world) == []
    await check_usable(world)
