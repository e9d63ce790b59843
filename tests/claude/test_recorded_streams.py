"""Every recorded stream of the real API goes through the parser into what it says.

The recordings are not part of the project: where they do not lie beside it, the tests are skipped.
The reference is the SDK's own accumulation; the usage is the last figure of each field.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import httpx2
import pytest
from anthropic._models import construct_type
from anthropic.lib.streaming._beta_messages import accumulate_event
from anthropic.types.beta import BetaRawMessageStreamEvent

from conversations.agent.answer import Answer
from conversations.agent.usage import START
from conversations.claude.sse import EventReader

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "data" / "api"
FILES = sorted(FOLDER.glob("*.jsonl.gz"))
pytestmark = pytest.mark.skipif(not FILES, reason="no recordings beside the project")
#: Streams in the files: none may be passed over for how it is recorded.
FEWEST = 180
#: Sizes of the chunks in which a stream arrives.
CHUNKS = (1, 7, 1_000_000)
_INPUTS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


def streams() -> Iterator[tuple[str, bytes]]:
    for file in FILES:
        with gzip.open(file, "rt") as lines:
            for row in map(json.loads, lines):
                text = row["response"] or ""
                if row["status"] == 200 and text.lstrip().startswith("event:"):
                    yield f"{row['path']} {row['n']}", text.encode()


def parsed(raw: bytes, chunk: int) -> Answer:
    answer, reader = Answer(), EventReader()
    for at in range(0, len(raw), chunk):
        for event in reader.feed(raw[at : at + chunk]):
            answer.feed(event)
    return answer


def events_in(raw: bytes) -> list[dict[str, Any]]:
    """The events, read without the parser."""
    lines = raw.decode().splitlines()
    return [json.loads(line[5:]) for line in lines if line.startswith("data:")]


def accumulated(events: list[dict[str, Any]]) -> Any:
    """The message as the SDK puts it together."""
    message: Any = None
    buffers: dict[int, bytes] = {}
    for value in events:
        if value["type"] == "ping":
            continue
        event = construct_type(type_=cast("Any", BetaRawMessageStreamEvent), value=value)
        message = accumulate_event(
            event=cast("Any", event),
            current_snapshot=message,
            json_bufs=buffers,
            request_headers=httpx2.Headers(),
        )
    return message


def bare(value: Any) -> Any:
    """A value without its nulls, which are not sent back."""
    if isinstance(value, dict):
        return {key: bare(item) for key, item in value.items() if item is not None}
    return [bare(item) for item in value] if isinstance(value, list) else value


def sent_back(block: dict[str, Any]) -> dict[str, Any]:
    """A block of the SDK's message as the API takes it back."""
    if block["type"] != "text":
        return block
    cited = [
        {key: one[key] for key in one if key != "file_id"} for one in block.get("citations", [])
    ]
    return {"type": "text", "text": block["text"]} | ({"citations": cited} if cited else {})


@pytest.mark.parametrize("chunk", CHUNKS)
def test_every_recorded_stream_gives_the_blocks_that_the_sdk_gives(chunk: int) -> None:
    count = 0
    for name, raw in streams():
        count += 1
        answer, reference = parsed(raw, chunk), accumulated(events_in(raw))
        found = [bare(json.loads(block)) for block in answer.blocks]
        blocks = [sent_back(bare(block.to_dict())) for block in reference.content]
        # A compaction that the app did not ask for is read, and not sent back.
        wanted = [block for block in blocks if block["type"] != "compaction"]
        assert found == wanted, name
        summed = [json.loads(block.compaction) for block in answer._blocks if block.compaction]
        assert [*summed, *found] == blocks, name
        assert (answer.is_complete, answer.stop_reason) == (True, reference.stop_reason), name
        asked = [block for block in wanted if block["type"] == "tool_use"]
        if reference.stop_reason == "tool_use":
            assert [(use.id, json.loads(use.input)) for use in answer.tool_uses] == [
                (block["id"], block["input"]) for block in asked
            ], name
    assert count > FEWEST


def test_the_usage_of_every_recorded_stream_is_its_last_figures_and_keeps_the_first() -> None:
    for name, raw in streams():
        said: dict[str, Any] = {}
        first: dict[str, Any] = {}
        for event in events_in(raw):
            usage = event.get("message", event).get("usage") or {}
            said |= {key: value for key, value in usage.items() if value is not None}
            first = first or dict(said)
        answer = parsed(raw, 1_000_000)
        assert answer.usage is not None, name
        stored = json.loads(answer.usage.raw)
        began = stored.pop(START, None)
        stored.pop("context_management", None)
        assert stored == said, name
        assert answer.usage.is_final, name
        figures = answer.usage
        assert figures.read == sum(said.get(key) or 0 for key in _INPUTS), name
        assert figures.output == said["output_tokens"], name
        assert not figures.is_clamped, name
        is_served = b"_tool_result" in raw and b"srvtoolu" in raw
        assert (began is not None) == is_served, name
        if began is not None:
            assert figures.context == sum(first.get(key) or 0 for key in _INPUTS), name
            assert figures.context < figures.read, name
