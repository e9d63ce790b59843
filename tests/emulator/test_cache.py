"""Sections 4 and 7: what the prompt cache writes, reads, forgets, and how the usage is split."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agentweb.emulator.app import create_app
from tests.emulator.conftest import Asker, post
from tests.emulator.samples import HOUR, MARK, SEARCH, TEXT, TOOL, USE, assistant, user

LONG = "The quick brown fox jumps over the lazy dog, again and again. " * 200
Split = tuple[int, int, int, int]


def block(text: str, **mark: Any) -> dict[str, Any]:
    return {"type": "text", "text": text} | mark


def split(answered: Any) -> Split:
    """Return the tokens: uncached, read, written for five minutes, written for an hour."""
    usage = answered.json["usage"]
    assert usage["cache_creation_input_tokens"] == sum(usage["cache_creation"].values())
    return (
        usage["input_tokens"],
        usage["cache_read_input_tokens"],
        usage["cache_creation"]["ephemeral_5m_input_tokens"],
        usage["cache_creation"]["ephemeral_1h_input_tokens"],
    )


@pytest.fixture
def marked(body: Any) -> dict[str, Any]:
    grown: dict[str, Any] = body(system=[block(LONG, **MARK)])
    return grown


def test_a_prefix_is_written_once_and_read_after(ask: Any, marked: Any) -> None:
    fresh, read, written, _ = split(ask(marked))
    assert (read, written > 1_024) == (0, True)
    assert split(ask(marked)) == (fresh, written, 0, 0)


def test_every_split_sums_to_the_count(ask: Any, marked: Any) -> None:
    count = {name: marked[name] for name in ("model", "system", "messages")}
    counted = ask(count, path="/v1/messages/count_tokens").json["input_tokens"]
    assert sum(split(ask(marked))) == sum(split(ask(marked))) == counted


def test_a_longer_conversation_reads_the_shorter_one(ask: Any, body: Any) -> None:
    messages = [user(block(LONG, **MARK))]
    _, _, written, _ = split(ask(body(messages=messages)))
    messages = [user(block(LONG)), assistant(TEXT), user(block("And now?", **MARK))]
    _, read, added, _ = split(ask(body(messages=messages)))
    assert read == written
    assert 0 < added < 100


def test_the_automatic_mark_moves_with_the_conversation(ask: Any, body: Any) -> None:
    grown = body(LONG, cache_control={"type": "ephemeral"})
    fresh, _, written, _ = split(ask(grown))
    assert fresh == 0
    grown["messages"] += [assistant(TEXT), user(TEXT)]
    assert split(ask(grown))[1] == written


def test_look_back_ends_after_twenty_blocks(ask: Any, body: Any) -> None:
    start = [block(LONG, **MARK)]
    ask(body(messages=[user(*start)]))
    near = [block(LONG), *[block(str(n)) for n in range(18)], block("end", **MARK)]
    far = [block(LONG), *[block(str(n)) for n in range(19)], block("end", **MARK)]
    assert split(ask(body(messages=[user(*near)])))[1] > 0
    ask.emulator.cache.clear()
    ask(body(messages=[user(*start)]))
    assert split(ask(body(messages=[user(*far)])))[1] == 0


def test_below_the_minimum_nothing_is_cached_and_nothing_is_said(ask: Any, body: Any) -> None:
    short = body(system=[block("Be kind. " * 20, **MARK)])
    for _ in range(2):
        assert split(ask(short))[1:] == (0, 0, 0)


@pytest.mark.parametrize(("mark", "alive", "dead"), [(MARK, 299, 301), (HOUR, 3_599, 3_601)])
def test_an_entry_lives_from_its_last_use(
    ask: Any, body: Any, clock: Any, mark: Any, alive: int, dead: int
) -> None:
    asked = body(system=[block(LONG, **mark)])
    ask(asked)
    for _ in range(2):
        clock.advance(alive)
        assert split(ask(asked))[1] > 0
    clock.advance(dead)
    assert split(ask(asked))[1] == 0


def test_mixed_lifetimes_are_split_at_the_last_long_mark(ask: Any, body: Any) -> None:
    asked = body(
        system=[block(LONG, **HOUR)], messages=[user(block(LONG, **HOUR), block(LONG, **MARK))]
    )
    fresh, read, five, hour = split(ask(asked))
    assert (fresh, read) == (0, 0)
    assert hour > 1.8 * five
    assert split(ask(asked)) == (0, five + hour, 0, 0)


def test_a_read_ends_where_the_highest_hit_is(ask: Any, body: Any) -> None:
    _, _, _, system = split(ask(body(system=[block(LONG, **HOUR)])))
    asked = body(system=[block(LONG, **HOUR)], messages=[user(block(LONG, **MARK))])
    fresh, read, five, hour = split(ask(asked))
    assert (fresh, read, hour) == (0, system, 0)
    assert five > 1_024


def _system(asked: Any) -> None:
    asked["system"][0]["text"] += "!"


def _tools(asked: Any) -> None:
    asked["tools"] = [TOOL | {"description": "Other."}]


def _model(asked: Any) -> None:
    asked["model"] = "claude-sonnet-5"


@pytest.mark.parametrize("change", [_system, _tools, _model])
def test_a_changed_prefix_is_a_miss(ask: Any, marked: Any, change: Any) -> None:
    marked["tools"] = [TOOL]
    ask(marked)
    change(marked)
    assert split(ask(marked))[1] == 0


@pytest.mark.parametrize(
    "more",
    [
        {"tool_choice": {"type": "none"}},
        {"thinking": {"type": "adaptive"}},
        {"output_config": {"effort": "low"}},
    ],
)
def test_what_concerns_messages_spares_tools_and_system(ask: Any, body: Any, more: Any) -> None:
    asked = body(system=[block(LONG, **MARK)], messages=[user(block(LONG, **MARK))], tools=[TOOL])
    _, _, written, _ = split(ask(asked))
    _, read, again, _ = split(ask(asked | more))
    assert 0 < read < written
    assert read + again == written


def test_moving_a_mark_or_appending_is_no_miss(ask: Any, body: Any) -> None:
    first = body(messages=[user(block(LONG, **MARK), TEXT)])
    ask(first)
    second = body(messages=[user(block(LONG), TEXT | MARK), assistant(TEXT), user(TEXT)])
    assert split(ask(second))[1] > 0


@pytest.mark.parametrize("other", ["k@acme/red", "k@rival/blue"])
def test_workspaces_do_not_share(ask: Any, marked: Any, other: str) -> None:
    ask(marked, x_api_key="k@acme/blue")
    assert split(ask(marked, x_api_key="other@acme/blue"))[1] > 0
    assert split(ask(marked, x_api_key=other))[1] == 0


def test_a_refused_request_writes_nothing(ask: Any, marked: Any) -> None:
    ask(marked, x_emulator_fault="overloaded")
    assert split(ask(marked))[1] == 0


def test_marks_in_tools_and_results_count(ask: Any, body: Any) -> None:
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": LONG}
    asked = body(messages=[user(TEXT), assistant(USE), user(result | MARK)], tools=[TOOL | MARK])
    assert split(ask(asked))[2] > 1_024
    assert split(ask(asked))[1] > 1_024


def test_pre_warming_writes_without_answering(ask: Any, marked: Any) -> None:
    warmed = ask(marked | {"max_tokens": 0})
    assert warmed.json["content"] == []
    assert split(ask(marked))[1] > 0


def test_three_marks_are_billed_from_the_hit_over_the_last_long_one_to_the_last(
    ask: Any, body: Any
) -> None:
    """A is the highest hit, B the last one-hour breakpoint after it, C the last breakpoint."""
    system = [block(LONG, **HOUR)]
    _, _, _, hit = split(ask(body(system=system)))
    long, short = block(f"{LONG} long", **HOUR), block(f"{LONG} short", **MARK)
    fresh, read, five, hour = split(ask(body(system=system, messages=[user(long, short, TEXT)])))
    assert read == hit
    assert min(five, hour) > 1_024
    assert abs(five - hour) < 20
    assert 0 < fresh < 50


def test_a_response_that_has_not_begun_can_not_be_read(body: Any) -> None:
    """Of two concurrent requests both write; a later one reads."""
    app = create_app()

    async def both() -> list[Any]:
        slow = {"x-emulator-fault": "slow:0.2"}
        asked = body(system=[block(LONG, **MARK)])
        return await asyncio.gather(*(post(app, asked, **slow) for _ in range(2)))

    reads = [split(answered)[1] for answered in asyncio.run(both())]
    assert reads == [0, 0]
    assert split(Asker(app)(body(system=[block(LONG, **MARK)])))[1] > 0


def test_a_life_is_counted_from_the_start_of_the_request(ask: Any, marked: Any, clock: Any) -> None:
    async def late() -> None:
        asking = asyncio.create_task(post(ask.app, marked, **{"x-emulator-fault": "slow:0.2"}))
        await asyncio.sleep(0.05)
        clock.advance(200)
        await asking

    asyncio.run(late())
    clock.advance(101)
    assert split(ask(marked))[1] == 0


@pytest.mark.parametrize("more", [{"speed": "fast"}, {"tools": [TOOL, SEARCH]}])
def test_a_switch_for_the_system_prompt_spares_at_most_the_tools(
    ask: Any, body: Any, more: Any
) -> None:
    tools = [TOOL | {"description": LONG} | MARK]
    asked = body(tools=tools, system=[block(LONG, **MARK)], model="claude-opus-4-8")
    ask(asked)
    changed = asked | more | ({"tools": [*tools, SEARCH]} if "tools" in more else {})
    _, read, written, _ = split(ask(changed))
    assert read > 1_024
    assert written > 1_024


def test_an_image_changes_the_messages_alone(ask: Any, body: Any) -> None:
    source = {"type": "url", "url": "https://a.example/a.png"}
    asked = body(system=[block(LONG, **MARK)], messages=[user(block(LONG, **MARK))])
    _, _, written, _ = split(ask(asked))
    asked["messages"].append(user({"type": "image", "source": source}))
    _, read, _, _ = split(ask(asked))
    assert 1_024 < read < written
