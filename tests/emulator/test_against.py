"""The emulator compared with another address of the API: equal, or a file per difference."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentweb.emulator import create_app, server
from agentweb.emulator.asgi import App, Message, Receive, Scope, Send
from agentweb.emulator.comparison.against import AgainstError, compare_with_api
from agentweb.emulator.comparison.api_exchange import Address
from agentweb.emulator.comparison.known_requests import BUILT_IN, KnownRequest, read_built_in
from agentweb.emulator.recording import RecordingError
from tests.emulator.conftest import request
from tests.emulator.known_requests import dump

KEY = "sk-secret-of-a-holder"


class Changing:
    """A service whose response bodies have some bytes replaced."""

    def __init__(self, app: App, old: bytes, new: bytes) -> None:
        self._app, self._old, self._new = app, old, new

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def tell(message: Message) -> None:
            if "headers" in message:
                kept = [pair for pair in message["headers"] if pair[0] != b"content-length"]
                message = message | {"headers": kept}
            if "body" in message:
                message = message | {"body": message["body"].replace(self._old, self._new)}
            await send(message)

        await self._app(scope, receive, tell)


@pytest.fixture
def other() -> Iterator[Any]:
    """Return the function that starts another service, changed or not."""
    running: list[server.Server] = []

    def begin(old: bytes = b"", new: bytes = b"") -> str:
        app: App = create_app(pace=0)
        begun = server.Server(Changing(app, old, new) if old else app).start()
        running.append(begun)
        return begun.url

    yield begin
    for one in running:
        one.stop()


def compare(url: str, cases: Path, requests: Path | None = None) -> tuple[bool, str]:
    told: list[str] = []
    alike = compare_with_api(
        url=url,
        requests=requests,
        cases=cases,
        environment={"ANTHROPIC_API_KEY": KEY},
        tell=told.append,
    )
    return alike, "\n".join(told)


def test_two_equal_services_have_no_difference(other: Any, tmp_path: Path) -> None:
    alike, told = compare(other(), tmp_path / "cases")
    assert alike, told
    assert told == f"{len(read_built_in())} requests, no difference"
    assert list((tmp_path / "cases").iterdir()) == []


def test_each_difference_is_a_case_with_its_request(other: Any, tmp_path: Path) -> None:
    url = other(b"does not support inference_geo", f"{KEY} knows no places".encode())
    alike, told = compare(url, tmp_path / "cases")
    assert not alike
    cases = [json.loads(path.read_text("utf-8")) for path in (tmp_path / "cases").iterdir()]
    assert {case["part"] for case in cases} == {"error_text"}
    assert all(case["request"]["body"]["inference_geo"] for case in cases)
    assert all("does not support inference_geo" in case["emulator"] for case in cases)
    assert all("[key] knows no places" in case["api"] for case in cases)
    assert len(cases) == told.count("\n  api ") > 3
    everything = told + "".join(p.read_text("utf-8") for p in (tmp_path / "cases").iterdir())
    assert KEY not in everything


@pytest.mark.parametrize(
    ("old", "new", "part"),
    [
        (b'"type":"invalid_request_error"', b'"type":"api_error"', "error_type"),
        (b'"input_tokens":', b'"input_tokens":1', "usage.input_tokens"),
        (b'"inference_geo":"global"', b'"inference_geo":null', "usage.inference_geo"),
        (b'"stop_reason":"end_turn"', b'"stop_reason":"stop_sequence"', "stop_reason"),
        (b'"type":"text"', b'"type":"verse"', "blocks"),
    ],
)
def test_each_part_of_an_outcome_is_compared(
    other: Any, tmp_path: Path, old: bytes, new: bytes, part: str
) -> None:
    recorded = tmp_path / "kept.jsonl"
    bodies = [request("Hello"), request("Hello", stream=True), request("Hello", max_tokens=0.5)]
    lines = [{"url": "https://api.example/v1/messages", "request": body} for body in bodies]
    recorded.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    alike, _ = compare(other(old, new), tmp_path / "cases", tmp_path)
    assert not alike
    written = [json.loads(path.read_text("utf-8")) for path in (tmp_path / "cases").iterdir()]
    assert {case["part"] for case in written} == {part}


def test_a_service_that_is_busy_is_asked_again() -> None:
    waits: list[float] = []
    with server.start(pace=0) as running:
        running.emulator.ordered_faults[:] = ["overloaded", "overloaded"]
        address = Address(url=running.url, key=KEY, is_patient=True, pause=waits.append)
        asked = KnownRequest(
            name="a", path="/v1/messages", version="2023-06-01", beta="", body=request("Hello")
        )
        assert address.ask(asked).status == 200
    assert len(waits) == 2
    assert KEY not in repr(address)


@pytest.mark.parametrize(
    ("url", "environment", "words"),
    [
        ("api.example", {"ANTHROPIC_API_KEY": KEY}, "no address"),
        ("https://api.example", {}, "ANTHROPIC_API_KEY is not set"),
        ("http://127.0.0.1:9", {"ANTHROPIC_API_KEY": KEY}, "does not answer"),
    ],
)
def test_what_cannot_be_compared_is_said(
    tmp_path: Path, url: str, environment: dict[str, str], words: str
) -> None:
    with pytest.raises(AgainstError, match=words):
        compare_with_api(
            url=url, requests=None, cases=tmp_path, environment=environment, tell=print
        )


def test_a_folder_without_recordings_is_refused(tmp_path: Path, other: Any) -> None:
    with pytest.raises(RecordingError, match="holds no recorded requests"):
        compare(other(), tmp_path / "cases", tmp_path)


@pytest.mark.parametrize("command", [("-m", "agentweb.emulator"), ("manage.py", "emulator")])
@pytest.mark.parametrize("words", [b"", b"Field required"])
def test_the_command_tells_by_its_exit_code(
    other: Any, tmp_path: Path, command: tuple[str, ...], words: bytes
) -> None:
    recorded = tmp_path / "kept.jsonl"
    body = {"model": "claude-haiku-5-5", "messages": []}
    recorded.write_text(json.dumps({"url": "/v1/messages", "request": body}), encoding="utf-8")
    arguments = ("--against", other(words, b"Feld fehlt"), "--requests", str(recorded))
    done = subprocess.run(
        (sys.executable, *command, *arguments, "--cases", str(tmp_path / "cases")),
        cwd=Path(__file__).resolve().parents[2],
        env=os.environ | {"ANTHROPIC_API_KEY": KEY},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == (1 if words else 0), done.stderr
    assert ("1 differences in 1" if words else "no difference") in done.stdout
    assert KEY not in done.stdout + done.stderr


def test_the_built_in_set_is_made_of_the_known_facts_and_refusals() -> None:
    """`python3 -m tests.emulator.known_requests` writes the set."""
    assert BUILT_IN.read_text("utf-8") == dump()
