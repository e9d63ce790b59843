from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from conversations.agent.ports import ToolDone
from conversations.agent.stop import Stopped
from conversations.agent.tool_calls import TOO_MANY
from conversations.context.view import wire
from tests.agent.fakes import FakeTools, World, forever, job, look
from tests.agent.laws import check_log, check_usable
from tests.agent.streams import Events, calls, ended, says, start, text, thought, use
from tests.context.samples import IMAGE

pytestmark = pytest.mark.asyncio


def results(world: World) -> list[dict[str, Any]]:
    """The blocks of the last results message."""
    return next(content for kind, content in reversed(world.log.messages) if kind == "results")


async def test_tools_run_side_by_side_with_results_in_the_order_of_the_calls() -> None:
    world = World()
    gates = {f"toolu_{number}": asyncio.Event() for number in range(3)}

    async def wait(input: Any) -> ToolDone:
        # The first ends only after the second, the second after the third.
        number = input["n"]
        if number < 2:
            await gates[f"toolu_{number + 1}"].wait()
        gates[f"toolu_{number}"].set()
        return ToolDone(wire.encode(f"result {number}"), "ok")

    world.tools.run_by_name["wait"] = wait
    events = [start()]
    for number in range(3):
        events += use(number, f"toolu_{number}", "wait", {"n": number})
    await asyncio.wait_for(world.run([*events, *ended("tool_use")], says("Done.")), 60)
    assert [(block["tool_use_id"], block["content"]) for block in results(world)] == [
        (f"toolu_{number}", f"result {number}") for number in range(3)
    ]
    assert world.tools.most == 3
    await check_usable(world)


async def test_no_more_tools_run_at_once_than_the_cap() -> None:
    world = World(job(parallel_tools=2))
    await world.run(calls(*(f"toolu_{number}" for number in range(7))), says("Done."))
    assert world.tools.most == 2
    assert len(world.tools.ran) == 7


async def test_started_is_committed_before_a_tool_runs_and_its_end_after() -> None:
    world = World()
    seen: list[list[tuple[str, str]]] = []

    async def note(_: Any) -> ToolDone:
        seen.append(list(world.tools.log))
        return ToolDone('"ok"', "ok")

    world.tools.run_by_name["look"] = note
    await world.run(calls("toolu_1"), says("Done."))
    assert seen == [[("started", "toolu_1")]]
    assert world.tools.log == [("started", "toolu_1"), ("ok", "toolu_1")]


@pytest.mark.parametrize("name", ["launch_rocket", "x" * 128])
async def test_an_unknown_tool_is_an_error_result(name: str) -> None:
    world = World()
    finish = await world.run(calls("toolu_1", name=name), says("Sorry."))
    assert finish.reason == "end_turn"
    assert results(world)[0]["is_error"] is True
    await check_usable(world)


async def test_an_exception_in_a_tool_is_an_error_result_without_its_words(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = World()

    async def broken(_: Any) -> ToolDone:
        raise RuntimeError("/srv/secret/path")

    world.tools.run_by_name["broken"] = broken
    events = [start(), *use(0, "toolu_1", "broken"), *use(1, "toolu_2"), *ended("tool_use")]
    finish = await world.run(events, says("Sorry."))
    assert finish.reason == "end_turn"
    first, second = results(world)
    assert first["is_error"] is True
    assert "secret" not in first["content"]
    assert "is_error" not in second
    assert "tool broken failed" in caplog.text
    await check_usable(world)


async def test_a_tool_that_cancels_itself_is_broken_and_does_not_end_the_turn() -> None:
    world = World()

    async def lost(_: Any) -> ToolDone:
        raise asyncio.CancelledError

    world.tools.run_by_name["lost"] = lost
    finish = await world.run(calls("toolu_1", name="lost"), says("Sorry."))
    assert finish.reason == "end_turn"
    assert world.tools.log[-1] == ("error", "toolu_1")


@pytest.mark.parametrize(
    "raw",
    [
        '{"path": "notes.txt", "offset": }',
        '{"path": "cut',
        "[1, 2]",
        '"text"',
        "NaN",
        '{"a":' * 200 + "1" + "}" * 200,
        "[" * 100_000,
        '{"n": ' + "9" * 5_000 + "}",
    ],
)
async def test_input_that_is_no_json_object_is_an_error_result_and_never_run(raw: str) -> None:
    world = World()
    events = [start(), *thought(0), *use(1, "toolu_1", input=raw), *thought(2), *use(3, "toolu_2")]
    finish = await world.run([*events, *ended("tool_use")], says("Sorry."))
    assert finish.reason == "end_turn"
    assert world.tools.ran == [("toolu_2", {})]
    assert ("error", "toolu_1") in world.tools.log
    assert results(world)[0]["is_error"] is True
    answer = world.log.messages[1][1]
    # Thinking behind what could not be kept as it was is signed over something else.
    assert [block["type"] for block in answer] == ["thinking", "tool_use", "tool_use"]
    await check_usable(world)


async def test_input_is_kept_byte_for_byte_as_the_model_wrote_it() -> None:
    world = World()
    raw = '{"b": 1.0, "a": "\\u00e9\\ud83d\\ude00 \\\\ud83d", "a": 1e2, "big": ' + "9" * 40 + "}"
    await world.run(calls("toolu_1", input=raw), says("Done."))
    assert raw in world.calls.bodies[1]


async def test_the_escape_of_a_lone_surrogate_is_neither_run_nor_sent_back() -> None:
    """The API refuses a body with one, so every later request would fail."""
    world = World()
    raw = '{"b": 1.0, "\\uDE00": [{"a": "half \\ud83d"}], "c": "\\ud83d\\ude00"}'
    await world.run(calls("toolu_1", input=raw), says("Done."))
    assert (
        raw.replace("\\uDE00", "\\ufffd").replace('\\ud83d"', '\\ufffd"') in world.calls.bodies[1]
    )
    ran = {"b": 1.0, "\ufffd": [{"a": "half \ufffd"}], "c": "\U0001f600"}
    assert world.tools.ran == [("toolu_1", ran)]
    await check_usable(world)


async def test_an_input_of_a_megabyte_is_run() -> None:
    world = World(job(window=10_000_000))
    await world.run(calls("toolu_1", input={"text": "é" * 1_000_000}), says("Done."))
    assert world.tools.ran[0][1] == {"text": "é" * 1_000_000}
    await check_usable(world)


async def test_an_empty_input_is_an_empty_object() -> None:
    world = World()
    events = [start(), *use(0, "toolu_1", input=""), *ended("tool_use")]
    await world.run(events, says("Done."))
    assert world.tools.ran == [("toolu_1", {})]


def cut_input() -> Events:
    """A tool call that the output limit cuts where it still looks valid."""
    return [start(), *text(0, "I write."), *use(1, "toolu_1")[:-1]]


@pytest.mark.parametrize(
    "events",
    [
        [start(), *use(0, "toolu_1", input={"to": "x"}), *ended("max_tokens")],
        [start(), *use(0, "toolu_1", input={"to": "x"}), *ended("end_turn")],
        [start(), *use(0, "toolu_1", input={"to": "x"}), *ended("refusal")],
        [start(), *use(0, "toolu_1", input={"to": "x"}), *ended("pause_turn")],
        [*cut_input(), *ended("max_tokens")],
        [*cut_input(), *ended("tool_use")],
        cut_input(),
        [start(), *text(0, "I write."), *use(1, "toolu_1"), *ended("tool_use")[:1]],
    ],
)
async def test_a_tool_never_runs_unless_the_answer_is_whole_and_stopped_for_tools(
    events: Events,
) -> None:
    world = World()
    await world.run(events, says("Again."))
    assert world.tools.ran == world.tools.log == []
    assert not any(ending.tools for ending in world.calls.endings.values())
    await check_usable(world)


async def test_an_id_that_an_earlier_answer_used_is_replaced_and_the_call_is_answered() -> None:
    world = World()
    await world.run(calls("toolu_1"), says("Done."))
    finish = await world.go_on("More", calls("toolu_1", "toolu_1"), says("Again."))
    assert finish.reason == "end_turn"
    assert [call for call, _ in world.tools.ran] == ["toolu_1", "toolu_1_2", "toolu_1_3"]
    assert [use.given_id for use in world.calls.endings[3].tools] == ["toolu_1", "toolu_1"]
    assert world.log.recorded == []
    await check_usable(world)


@pytest.mark.parametrize("content", [[IMAGE], [{"type": "text", "text": "no"}, IMAGE]])
async def test_an_error_with_an_image_is_sent_without_the_flag_and_as_it_is(content: Any) -> None:
    async def fail(input: Any) -> ToolDone:
        return ToolDone(wire.encode(content), "error")

    world = World(tools=FakeTools({"look": fail}))
    finish = await world.run(calls("toolu_1"), says("I see."))
    assert finish.reason == "end_turn"
    [[found]] = [blocks for kind, blocks in world.log.messages if kind == "results"]
    assert found == {"type": "tool_result", "tool_use_id": "toolu_1", "content": content}
    await check_usable(world)


async def test_calls_beyond_the_cap_are_denied_and_end_the_turn_with_a_valid_history() -> None:
    world = World(job(tool_calls=3))
    finish = await world.run(
        calls("toolu_1", "toolu_2"), calls("toolu_3", "toolu_4", "toolu_5"), says("Never.")
    )
    assert (finish.state, finish.reason) == ("done", "loop_limit")
    assert [call for call, _ in world.tools.ran] == ["toolu_1", "toolu_2", "toolu_3"]
    assert [block["content"] for block in results(world)[1:]] == [TOO_MANY] * 2
    assert ("denied", "toolu_5") in world.tools.log
    await check_usable(world)


async def test_the_last_allowed_call_does_not_end_the_turn() -> None:
    world = World(job(tool_calls=1))
    finish = await world.run(calls("toolu_1"), says("Done."))
    assert finish.reason == "end_turn"


@pytest.mark.parametrize("port", ["started", "finished"])
async def test_when_a_port_fails_no_other_tool_goes_on(port: str) -> None:
    world = World()
    ended_early: list[bool] = []

    async def long(_: Any) -> ToolDone:
        try:
            await forever()
        finally:
            ended_early.append(True)
        raise AssertionError

    world.tools.run_by_name["long"] = long
    events = [start(), *use(0, "toolu_1", "long"), *use(1, "toolu_2"), *ended("tool_use")]

    async def fail_later(input: Any) -> ToolDone:
        world.tools.fails["finished"] = Stopped("lease")
        return await look(input)

    if port == "finished":
        world.tools.run_by_name["look"] = fail_later
        finish = await world.run(events)
        assert (finish.state, finish.reason) == ("interrupted", "lease")
        assert ended_early == [True]
    else:
        world.tools.fails["started"] = OSError("no disk")
        finish = await world.run(events, says("Sorry."))
        assert finish.reason == "end_turn"
        assert [block["is_error"] for block in results(world)] == [True, True]
    assert world.tools.running == 0


async def test_results_of_every_state_but_ok_are_errors() -> None:
    world = World()

    async def denied(_: Any) -> ToolDone:
        return ToolDone(wire.encode([{"type": "text", "text": "no"}]), "denied")

    world.tools.run_by_name["denied"] = denied
    await world.run(calls("toolu_1", name="denied"), says("Fine."))
    assert results(world) == [
        {
            "type": "tool_result",
            "tool_use_id": "toolu_1",
            "content": [{"type": "text", "text": "no"}],
            "is_error": True,
        }
    ]
    check_log(world)
    assert json.loads(world.calls.bodies[1])["messages"][2]["role"] == "user"
