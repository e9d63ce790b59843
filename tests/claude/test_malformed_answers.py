"""The runner through the real client to the emulator, which validates every next request."""

from __future__ import annotations

import pytest

from agentweb.emulator.faults import answer_faults, stream_faults
from agentweb.emulator.server import EmulatorServer
from conversations.claude.client import Deadlines
from tests.agent.fakes import World, job
from tests.agent.laws import check_log
from tests.claude.wire_server import client

pytestmark = pytest.mark.asyncio
#: For answers of which some hang.
QUICK = Deadlines(first_event=0.3, silence=0.3, attempt=2)
#: Model names with each kind of thinking.
MODELS = ("claude-sonnet-5-5", "claude-opus-5-5", "claude-opus-4-8")


@pytest.mark.parametrize("fault", sorted(answer_faults.NAMES | stream_faults.NAMES))
async def test_whatever_the_model_says_the_next_message_is_answered(
    fault: str, emulator: EmulatorServer
) -> None:
    async with client(emulator.url, QUICK) as claude, client(emulator.url) as patient:
        world = World(
            job(model="claude-sonnet-5-5", rounds=3, attempts=2, overflows=1),
            prompt=f"Tell me a story. emulator:fault={fault}",
            model=claude,
        )
        finish = await world.run()
        assert finish.state in {"done", "failed"}
        assert finish.code not in {"rule", "wire", "invalid_request"}
        check_log(world)
        world.tools.ran.clear()
        world.model = patient
        finish = await world.go_on("Hello again")
        assert (finish.state, finish.reason, finish.text) == ("done", "end_turn", "")
    assert emulator.emulator.log[-1].status == 200
    check_log(world)


@pytest.mark.parametrize("model", MODELS)
async def test_a_conversation_with_tools_goes_on_for_several_turns(
    model: str, emulator: EmulatorServer
) -> None:
    async with client(emulator.url) as claude:
        world = World(job(model=model, rounds=3), prompt="Hello", model=claude)
        assert (await world.run()).reason == "end_turn"
        await world.go_on("Go. emulator:fault=many_tools:3")
        assert len(world.tools.ran) == 9
        assert (await world.go_on("Thank you")).reason == "end_turn"
    assert emulator.emulator.log[-1].status == 200
    check_log(world)


async def test_a_key_of_another_organisation_does_not_end_the_conversations_of_the_first(
    emulator: EmulatorServer,
) -> None:
    world = World(job(model="claude-sonnet-5-5", rounds=2), prompt="Go. emulator:fault=loop")
    async with client(emulator.url, key="sk-one@first") as claude:
        world.model = claude
        await world.run()
    assert any('"thinking"' in entry.content for entry in world.log.view().messages)
    async with client(emulator.url, key="sk-two@second") as claude:
        world.model = claude
        finish = await world.go_on("Hello again")
    assert (finish.reason, finish.text) == ("end_turn", "")
    assert [change.kind for change, _ in world.log.recorded] == ["rebind"]
    check_log(world)


async def test_a_stop_in_mid_answer_leaves_a_conversation_that_goes_on(
    emulator: EmulatorServer,
) -> None:
    async with client(emulator.url) as claude:
        prompt = "Tell me a long story. emulator:fault=hang_after:4"
        world = World(job(model="claude-sonnet-5-5"), prompt=prompt, model=claude)
        grow = world.display.grow

        async def stop(text: str, thinking: str) -> None:
            await grow(text, thinking)
            world.stop()

        world.display.grow = stop  # type: ignore[method-assign]
        finish = await world.run()
        assert (finish.state, finish.reason) == ("cancelled", "stopped")
        world.display.grow = grow  # type: ignore[method-assign]
        assert (await world.go_on("Go on")).reason == "end_turn"
    check_log(world)
