"""Answers with server tools have the shape of the real API's answers, where recordings exist."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.emulator.samples import TOOL
from tests.emulator.test_server_tools import CODE, FETCH, SEARCH

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "data" / "api"
pytestmark = pytest.mark.skipif(not FOLDER.exists(), reason="no recordings beside the project")

Shapes = dict[str, list[frozenset[str]]]
#: Only sent by newer versions of the API, so early recordings lack it.
NEWER = {
    "message": {"stop_details", "diagnostics"},
    "usage": {"output_tokens_details", "inference_geo", "service_tier", "server_tool_use"},
    "delta of message_delta": {"stop_details", "container"},
    "usage of message_delta": {"output_tokens_details", "inference_geo", "service_tier"},
}


@cache
def recorded() -> tuple[tuple[str, Any], ...]:
    """Return every recorded answer with a server tool: its name, and its events or message."""
    found = []
    for file in sorted(FOLDER.glob("*.jsonl.gz")):
        for line in gzip.decompress(file.read_bytes()).decode().split("\n")[:-1]:
            row = json.loads(line)
            text = row["response"]
            if row["status"] == 200 and "_tool_result" in text and "srvtoolu" in text:
                found.append((f"{row['path']}:{row['n']}", answer_in(text)))
    return tuple(found)


def answer_in(text: str) -> Any:
    if text.startswith("{"):
        return json.loads(text)
    lines = (line for line in text.splitlines() if line.startswith("data:"))
    return [json.loads(line.removeprefix("data:")) for line in lines]


def shapes_of(answers: list[Any]) -> Shapes:
    shapes: Shapes = defaultdict(list)
    for answer in answers:
        for name, thing in _things(answer):
            shapes[name].append(frozenset(thing))
    return shapes


def _things(answer: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(answer, dict):
        yield "message", answer
        yield "usage", answer["usage"]
        for block in answer["content"]:
            yield from _of_block(block)
        return
    for event in answer:
        yield f"event {event['type']}", event
        match event["type"]:
            case "message_start":
                yield "message", event["message"]
                yield "usage", event["message"]["usage"]
            case "content_block_start":
                yield f"start of {event['content_block']['type']}", event["content_block"]
                if event["content_block"]["type"].endswith("_tool_result"):
                    yield from _of_block(event["content_block"])
            case "content_block_delta":
                yield f"delta {event['delta']['type']}", event["delta"]
                if "citation" in event["delta"]:
                    yield event["delta"]["citation"]["type"], event["delta"]["citation"]
            case "message_delta":
                yield "delta of message_delta", event["delta"]
                yield "usage of message_delta", event["usage"]


def _of_block(block: Any) -> Iterator[tuple[str, Any]]:
    yield f"block {block['type']}", block
    for citation in block.get("citations") or ():
        yield citation["type"], citation
    content = block.get("content")
    for part in content if isinstance(content, list) else [content] if content else []:
        yield part["type"], part


@pytest.fixture
def ours(ask: Any, body: Any) -> list[Any]:
    """Return answers with everything that the recorded ones have, streamed and not."""
    prompts = {
        "emulator:rounds=search,say,search,search": [SEARCH],
        "emulator:rounds=bash,edit": [CODE],
        "Fetch https://tea.example/green": [FETCH],
        "Fetch https://tea.example/black": [FETCH | {"citations": {"enabled": True}}],
        "emulator:rounds=search+tool": [SEARCH, TOOL],
    }
    made: list[Any] = []
    for prompt, tools in prompts.items():
        for thinking in ({"type": "adaptive", "display": "summarized"}, None):
            asked = body(prompt, tools=tools, thinking=thinking)
            made.append(ask(asked).json)
            made.append([data for _, data in ask(asked | {"stream": True}).events])
    return made


def test_there_are_recordings_of_every_kind() -> None:
    kinds = set(shapes_of([answer for _, answer in recorded()]))
    assert len(recorded()) >= 20
    assert {
        "block web_search_tool_result",
        "block web_fetch_tool_result",
        "block bash_code_execution_tool_result",
        "block text_editor_code_execution_tool_result",
        "delta citations_delta",
    } <= kinds


def test_every_part_of_an_answer_has_the_keys_the_api_gave_it(ours: list[Any]) -> None:
    real, made = shapes_of([answer for _, answer in recorded()]), shapes_of(ours)
    for name in real.keys() & made.keys():
        always = frozenset.intersection(*real[name])
        known = frozenset.union(*real[name]) | NEWER.get(name, set())
        for keys in set(made[name]):
            assert always <= keys, (name, always - keys)
            assert keys <= known, (name, keys - known)


def order(events: list[Any]) -> list[str]:
    """Return the kinds of events, blocks and deltas in order, without repetitions in a row."""
    kinds: list[str] = []
    for event in events:
        block, delta = event.get("content_block") or {}, event.get("delta") or {}
        kind = f"{event['type']} {block.get('type') or delta.get('type') or ''}"
        if event["type"] != "ping" and (not kinds or kinds[-1] != kind):
            kinds.append(kind)
    return kinds


def test_events_follow_each_other_as_they_did(ours: list[Any]) -> None:
    """Every pair of consecutive events in our streams occurs in a recorded one."""
    streams = [answer for _, answer in recorded() if isinstance(answer, list)]
    real = {pair for events in streams for pair in _pairs(order(events))}
    known = {part for pair in real for part in pair}
    made = {pair for answer in ours if isinstance(answer, list) for pair in _pairs(order(answer))}
    assert {pair for pair in made - real if set(pair) <= known} <= BETWEEN
    assert len(made & real) > 12


#: Pairs without a recorded case: citations of documents follow the text, as the documentation
#: streams them, and thinking is between rounds.
BETWEEN = {
    ("content_block_delta text_delta", "content_block_delta citations_delta"),
    ("content_block_delta citations_delta", "content_block_stop "),
    ("content_block_stop ", "content_block_start thinking"),
}


def _pairs(kinds: list[str]) -> list[tuple[str, str]]:
    return list(pairwise(kinds))
