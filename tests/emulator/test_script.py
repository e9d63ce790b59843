"""A scripted model in a file: readable, decides from what is in view, can order faults."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from agentweb import emulator
from agentweb.bench.emulator_throughput import measure
from agentweb.emulator.app import create_app
from agentweb.emulator.script import ScriptError, read_script
from tests.emulator.conftest import Asker, request
from tests.emulator.samples import TEXT, TOOL, assistant, user

SCENARIO = r'''
from agentweb.emulator.scenes.scene import Reply, Text
from agentweb.emulator.script import after, always, call, fail, say, stop, summary, think, when


def shout(request):
    """A plain function has the whole view."""
    return Reply((Text(request.prompt.upper()),)) if "shout" in request.prompt else None


SCRIPT = [
    shout,
    when(
        r"weather in (?P<city>\w+)",
        think("I look it up."),
        say("One moment."),
        call("read_file", path="{city}.txt", more={"days": 3, "list": ["{city}", "{unknown}"]}),
    ),
    after("read_file", say("In view is: {result}")),
    when("which code", say("The code was {code}."), seen={"code": r"[A-Z]{2}-\d+"}),
    when("which code", say("I can't see a code any more.")),
    when("pause", say("Still at it."), stop("pause_turn")),
    when("refuse", fail("overloaded:x1")),
    when("refuse", say("Better now.")),
    when("break", fail("cut_after:1")),
    when("hello", say("Hello.")),
    summary(bad="forgetful"),
    always(say("{count}: {prompt} (first: {first})")),
]
'''


@pytest.fixture
def scripted(tmp_path: Path) -> Asker:
    file = tmp_path / "scenario.py"
    file.write_text(SCENARIO, encoding="utf-8")
    return Asker(create_app(script=read_script(file)))


def words(answered: Any) -> str:
    assert answered.status == 200, answered.body
    return "".join(b["text"] for b in answered.json["content"] if b["type"] == "text")


def test_a_tool_is_called_with_what_is_in_view(scripted: Asker) -> None:
    message = scripted(request("weather in Lisbon?", tools=[TOOL])).json
    text, use = message["content"]
    assert (text["text"], message["stop_reason"]) == ("One moment.", "tool_use")
    assert use["input"] == {
        "path": "Lisbon.txt",
        "more": {"days": 3, "list": ["Lisbon", "{unknown}"]},
    }
    result = {"type": "tool_result", "tool_use_id": use["id"], "content": "sunny"}
    body = request(tools=[TOOL], messages=[user(TEXT), assistant(use), user(result)])
    assert words(scripted(body)) == "In view is: sunny"


def test_what_was_trimmed_away_is_gone(scripted: Asker) -> None:
    told = user({"type": "text", "text": "The code is AB-77."})
    asked = user({"type": "text", "text": "which code?"})
    seen = scripted(request(messages=[told, assistant(TEXT), asked]))
    assert words(seen) == "The code was AB-77."
    assert words(scripted(request(messages=[asked]))) == "I can't see a code any more."


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("shout this", "SHOUT THIS"),
        ("say it", "1: say it (first: say it)"),
        ("HELLO you", "Hello."),
    ],
)
def test_the_first_step_that_fits_answers(scripted: Asker, text: str, answer: str) -> None:
    assert words(scripted(request(text))) == answer


def test_a_step_can_stop_as_it_likes_and_think_first(scripted: Asker) -> None:
    assert scripted(request("pause")).json["stop_reason"] == "pause_turn"
    thinking = {"type": "adaptive", "display": "summarized"}
    content = scripted(request("weather in Rome", tools=[TOOL], thinking=thinking)).json["content"]
    assert content[0]["thinking"] == "I look it up."


def test_a_step_can_fail_so_often(scripted: Asker) -> None:
    assert [scripted(request("refuse")).status for _ in range(2)] == [529, 200]
    cut = scripted(request("break", stream=True))
    assert not cut.finished


def test_a_summary_is_the_scripts_and_a_title_is_not(scripted: Asker) -> None:
    bad = words(scripted(request("Hi", system="[CONTEXT SUMMARY]")))
    assert bad == "Something was discussed and some things were done."
    title = words(scripted(request("Plan a trip", system="A title for the conversation.")))
    assert title == "Plan a trip"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("SCRIPT = 3", "has no list SCRIPT"),
        ("SCRIPT = [1]", "has no list SCRIPT"),
        ("import nothing_of_that_name", "ModuleNotFoundError"),
        ("SCRIPT = [", "SyntaxError"),
    ],
)
def test_what_is_no_script_is_refused_with_a_reason(tmp_path: Path, text: str, why: str) -> None:
    file = tmp_path / "bad.py"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ScriptError, match=why):
        read_script(file)
    with pytest.raises(CommandError, match=why):
        call_command("emulator", script=file)


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(ScriptError, match="cannot be read: No such file"):
        read_script(tmp_path / "none.py")


def test_the_emulator_serves_a_script(tmp_path: Path) -> None:
    file = tmp_path / "scenario.py"
    file.write_text(SCENARIO, encoding="utf-8")
    command = [sys.executable, "-m", "agentweb.emulator", "--port", "0", "--script", str(file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().split()[-1]
            headers = {"x-api-key": "k", "anthropic-version": "2023-06-01"}
            data = json.dumps(request("hello")).encode()
            sent = urllib.request.Request(f"{url}/v1/messages", data, headers)
            opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
            answer = json.load(opener.open(sent, timeout=60))
        finally:
            process.terminate()
    assert answer["content"] == [{"type": "text", "text": "Hello."}]


def test_the_bench_reads_the_same_streams_on_both_sides() -> None:
    found = measure(streams=1, at_once=1, words=200)
    assert found.emulator.events == 5 * found.application.events > 500
    assert found.ratio > 0
    assert found.processor_ratio > 0
    out = StringIO()
    call_command("emulator", bench=True, streams=1, at_once=1, json=True, stdout=out)
    assert json.loads(out.getvalue())["application"]["streams"] == 1


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("which number?", "I can't see a booking any more; please tell me its number."),
        ("Which number has B-1234?", "Your booking is B-1234."),
        ("Good evening", "You said: Good evening"),
    ],
)
def test_the_example_is_a_script(text: str, answer: str) -> None:
    example = Asker(create_app(script=read_script(Path(emulator.__file__).parent / "example.py")))
    assert words(example(request(text))) == answer
    statuses = [example(request("hurry")).status for _ in range(3)]
    assert statuses == [529, 529, 200]
