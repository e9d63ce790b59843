"""Exchanges recorded and replayed over HTTP, and what the command refuses."""

from __future__ import annotations

import argparse
import json
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import anthropic
import pytest

from agentweb.emulator import CommandError, add_options, server, start_from
from agentweb.emulator.recording import RecordingError
from tests.emulator.conftest import HEADERS, request

KEY = "sk-secret-of-somebody"


def send(url: str, body: Any) -> tuple[int, bytes]:
    headers = HEADERS | {"x-api-key": KEY, "anthropic-beta": "one-2026-01-01"}
    asked = urllib.request.Request(f"{url}/v1/messages", json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(asked, timeout=60) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


BODIES = [request("Hello"), request("Hello", stream=True), request("Hello", max_tokens=0.5)]


def record(path: Path) -> list[tuple[int, bytes]]:
    with server.start(pace=0, recording=path) as running:
        return [send(running.url, body) for body in BODIES]


def test_every_exchange_is_a_line_without_its_key(tmp_path: Path) -> None:
    path = tmp_path / "kept.jsonl"
    answers = record(path)
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert [(line["status"], line["response"].encode()) for line in lines] == answers
    assert [line["request"] for line in lines] == BODIES
    assert {(one["method"], one["url"], one["version"], one["beta"]) for one in lines} == {
        ("POST", "/v1/messages", "2023-06-01", "one-2026-01-01")
    }
    assert lines[1]["ctype"].startswith("text/event-stream")
    assert KEY not in path.read_text(encoding="utf-8")


def test_a_recorded_request_gets_its_recorded_bytes(tmp_path: Path) -> None:
    path = tmp_path / "kept.jsonl"
    answers = record(path)
    with server.start(pace=0, seed=9, replayed=path) as running:
        assert [send(running.url, body) for body in BODIES] == answers
        turned = dict(reversed(BODIES[0].items()))
        assert send(running.url, turned) == answers[0]
        status, other = send(running.url, request("Another"))
        assert status == 200
        assert b"Another" in other


def test_a_request_that_is_not_recorded_can_be_refused(tmp_path: Path) -> None:
    path = tmp_path / "kept.jsonl"
    answers = record(path)
    with server.start(pace=0, replayed=path, is_strict=True) as running:
        assert send(running.url, BODIES[1]) == answers[1]
        status, body = send(running.url, request("Another"))
    assert status == 400
    assert json.loads(body)["error"]["message"].endswith("this request is not recorded")


def test_a_replayed_stream_is_read_by_the_sdk(tmp_path: Path) -> None:
    path = tmp_path / "kept.jsonl"
    text = request("Hello")["messages"]
    made: Any = {"model": "claude-sonnet-5-5", "max_tokens": 300, "messages": text}
    texts = []
    for settings in ({"recording": path}, {"replayed": path, "is_strict": True}):
        with server.start(pace=0, **settings) as running:
            client = anthropic.Anthropic(base_url=running.url, api_key=KEY, max_retries=0)
            with client, client.messages.stream(**made) as stream:
                texts.append(stream.get_final_text())
    assert texts[0] == texts[1] != ""


def test_repeated_requests_get_their_answers_in_order_and_then_the_last(tmp_path: Path) -> None:
    path = tmp_path / "kept.jsonl"
    row = {"url": "https://api.example/v1/messages?beta=true", "request": request("Hi")}
    rows = [row | {"status": 200, "response": f'{{"n":{number}}}'} for number in (1, 2)]
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    with server.start(pace=0, replayed=path) as running:
        found = [send(running.url, request("Hi"))[1] for _ in range(3)]
    assert found == [b'{"n":1}', b'{"n":2}', b'{"n":2}']


@pytest.mark.parametrize("text", ["no json", "[]", '{"url": "/v1/messages"}'])
def test_a_file_that_is_no_recording_is_refused_by_its_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "kept.jsonl"
    path.write_text(f"\n{text}\n", encoding="utf-8")
    with pytest.raises(RecordingError, match="line 2"):
        server.start(pace=0, replayed=path)


def options(*words: str) -> dict[str, Any]:
    parser = argparse.ArgumentParser()
    add_options(parser, port=0, pace=0.0)
    return vars(parser.parse_args(words))


def test_an_address_that_others_reach_has_to_be_chosen() -> None:
    with pytest.raises(CommandError, match="--public"):
        start_from(options("--host", "0.0.0.0"))
    with start_from(options("--host", "0.0.0.0", "--public")) as running:
        assert send(f"http://127.0.0.1:{running.port}", request("Hello"))[0] == 200


def test_what_cannot_be_done_is_said(tmp_path: Path) -> None:
    running = start_from(options())
    with running, pytest.raises(CommandError, match=r"port \d+: Address already in use"):
        start_from(options("--port", str(running.port)))
    for words, why in (
        (("--only-recorded",), "goes with --replay"),
        (("--pace", "-1"), "at least 0"),
        (("--replay", str(tmp_path / "none")), "cannot be read"),
        (("--record", str(tmp_path)), "cannot be written"),
        (("--script", str(tmp_path / "none.py")), "cannot be read"),
    ):
        with pytest.raises(CommandError, match=why):
            start_from(options(*words))
