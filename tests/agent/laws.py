"""Laws that hold after every turn, however it ended."""

from __future__ import annotations

from conversations.context.view import rules
from conversations.context.view.envelope import join_body
from conversations.context.view.view import Message
from tests.agent.fakes import World, blocks
from tests.agent.streams import says


def check_log(world: World) -> None:
    """Every call is closed once, every body is rebuilt from the log, and the history is legal."""
    calls = world.calls
    assert set(calls.endings) == set(range(1, len(calls.sendings) + 1))
    for sending, sent, tip in zip(calls.sendings, calls.bodies, calls.tips, strict=True):
        if sending.view is not None:
            assert join_body(sending.envelope.text, world.log.view(tip).body) == sent
    prompt = Message.parse(len(world.log.entries) + 1, "prompt", blocks("next"))
    rules.check_rules(world.log.view().append(prompt))


async def check_usable(world: World) -> None:
    """The laws of the log, and a next message is answered."""
    check_log(world)
    finish = await world.go_on("And now?", says("Now this."))
    assert (finish.state, finish.reason) == ("done", "end_turn")
    assert world.log.messages[-1] == ("answer", [{"type": "text", "text": "Now this."}])
