"""Recorded conversations are accepted unchanged, and refused once they are corrupted.

The recordings quote third parties, so they are not part of the project: AGENTWEB_TEST_RECORDED_DATA
names their folder. Without it a small conversation of our own is used.
"""

from __future__ import annotations

import copy
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any
from zlib import crc32

import pytest

from agentweb.emulator.model_catalogue import MODELS
from tests.emulator.corruptions import CORRUPTIONS, Corruption, small_talk
from tests.support.recorded_conversations import recorded_files

OWN = Path("small talk")
#: Tokens from which a conversation is asked of every fourth model, by turns: the models differ in
#: rules that the shorter ones meet.
LONG = 20_000
PATHS = [OWN, *recorded_files("dev"), *recorded_files("long")]


def conversations(path: Path) -> Iterator[Any]:
    if path == OWN:
        yield small_talk() | {"id": "small talk", "system": None, "est_tokens": 1}
        return
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def as_request(record: Any, model: str) -> dict[str, Any]:
    messages = record["messages"]
    while messages[-1]["role"] == "assistant":
        messages = messages[:-1]
    body = {"model": model, "max_tokens": 64, "messages": messages, "tools": record["tools"] or []}
    return body | ({"system": record["system"]} if record["system"] else {})


@pytest.mark.parametrize("path", PATHS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_every_recorded_conversation_is_accepted_on_every_model(ask: Any, path: Path) -> None:
    for record in conversations(path):
        turn = crc32(str(record["id"]).encode()) % 4
        asked = MODELS if record["est_tokens"] < LONG else MODELS[turn::4]
        for model in (model.id for model in asked):
            answered = ask(as_request(record, model), path="/v1/messages", x_emulator_fault="empty")
            too_long = answered.status == 400 and answered.message.startswith("prompt is too long")
            assert answered.status == 200 or too_long, (record["id"], model, answered.body[:500])


def check_refusal(answered: Any, path: str, corruption: Corruption) -> None:
    """Check status, type, path and text of a refusal in its envelope."""
    assert answered.status == 400, corruption.name
    error = answered.json["error"]
    assert (answered.json["type"], error["type"]) == ("error", "invalid_request_error")
    assert answered.json["request_id"] == answered.headers["request-id"]
    begin = f"{path}: " if path else corruption.text
    assert error["message"].startswith(begin), (corruption.name, path, error["message"])
    assert corruption.text in error["message"], (corruption.name, error["message"])


@pytest.mark.parametrize("corruption", CORRUPTIONS, ids=lambda corruption: corruption.name)
def test_a_corrupted_conversation_is_refused_with_the_right_error(
    ask: Any, corruption: Corruption
) -> None:
    body = small_talk()
    assert ask(body).status == 200
    path = corruption.change(body, Random(corruption.name))
    assert path is not None
    check_refusal(ask(body), path, corruption)


@pytest.mark.parametrize("path", PATHS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_corrupted_recording_is_refused_with_the_right_error(ask: Any, path: Path) -> None:
    record = min(conversations(path), key=lambda record: record["est_tokens"])
    valid = as_request(record, "claude-sonnet-5-5")
    for corruption in CORRUPTIONS:
        body = copy.deepcopy(valid)
        where = corruption.change(body, Random(corruption.name))
        if where is not None:
            check_refusal(ask(body), where, corruption)


def test_there_are_enough_ways_to_be_wrong() -> None:
    names = {corruption.name for corruption in CORRUPTIONS}
    assert len(names) == len(CORRUPTIONS) >= 50
