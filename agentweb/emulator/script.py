r"""A scripted model in a Python file: steps, of which the first that fits the view answers.

    from agentweb.emulator.script import after, always, call, fail, say, summary, when

    SCRIPT = [
        when(r"weather in (?P<city>\w+)", call("fetch_url", url="https://weather.example/{city}")),
        after("fetch_url", say("It says: {result}")),
        when("which code", say("The code was {code}."), seen={"code": r"[A-Z]{2}-\d+"}),
        when("which code", say("I can't see a code any more.")),
        when("break", fail("cut_after:3:x1")),
        summary(say("We spoke about {first}.")),
        always(say("You said {prompt}, the {count}th time.")),
    ]

`when` fits the latest words of the user, `after` a request that brings results of that tool,
`summary` an order for a context summary (`summary(bad="empty")` gives one that is bad, see
`scenes.summary`), `always` everything else. A step with `seen` fits only while each pattern is in
view, so what was trimmed away is really gone; nothing is kept between requests. In texts and tool
inputs `{name}` is filled in: the groups of the pattern, what was `seen`, `prompt`, `first` (the
first words of the user in view), `count` (of their messages) and `result`. `say` and `call` in one
step make one answer; `think` and `stop` shape it; `fail` names a fault as `faults.fault` does. A
plain function from a `Request` to a `Reply` or None may stand in place of a step. What fits no step
goes to the built-in scenes.

`manage.py emulator --script FILE` serves it, `create_app(script=read_script(path))` in a test; the
module `example` is one to start from.
"""

from __future__ import annotations

import re
import runpy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from agentweb.emulator import json_codec
from agentweb.emulator.scenes.background import is_background, wants_summary
from agentweb.emulator.scenes.scene import Block, Reply, Scene, Text, ToolUse
from agentweb.emulator.scenes.summary import bad_summary
from agentweb.emulator.scenes.view import Request

Fields: TypeAlias = dict[str, str]
_FIELD = re.compile(r"\{(\w+)\}")


class ScriptError(Exception):
    """The file is not a valid script; the text says why."""


@dataclass(frozen=True, slots=True)
class Think:
    text: str


@dataclass(frozen=True, slots=True)
class Stop:
    reason: str


@dataclass(frozen=True, slots=True)
class Fail:
    fault: str


Act: TypeAlias = Text | ToolUse | Think | Stop | Fail


@dataclass(frozen=True, slots=True)
class Step:
    """Acts and their condition: `fits` returns a matching request's fields, None for others."""

    fits: Callable[[Request], Fields | None]
    acts: tuple[Act, ...]
    bad: str = ""

    def reply(self, request: Request, fields: Fields) -> Reply | None:
        if self.bad:
            return bad_summary(self.bad, request)
        blocks: list[Block] = []
        for act in self.acts:
            match act:
                case Text(text):
                    blocks.append(Text(str(_fill(text, fields))))
                case ToolUse(name, given):
                    blocks.append(ToolUse(name, _fill(given, fields)))
                case _:
                    continue
        reason = next((act.reason for act in self.acts if isinstance(act, Stop)), "")
        thought = next((act.text for act in self.acts if isinstance(act, Think)), "")
        return Reply(tuple(blocks), reason, thinking=str(_fill(thought, fields)))


class Script:
    """A scene made of steps; it also chooses the fault of a request."""

    def __init__(self, steps: Sequence[Step | Scene]) -> None:
        self._steps = tuple(steps)

    def __call__(self, request: Request) -> Reply | None:
        for step in self._steps:
            if not isinstance(step, Step):
                reply = step(request)
                if reply is not None:
                    return reply
            elif (fields := step.fits(request)) is not None and not _fault(step):
                return step.reply(request, fields)
            elif fields is not None:
                return None
        return None

    def fault(self, request: Request) -> str:
        """Return the fault of the matching step; empty if it has none."""
        for step in self._steps:
            if isinstance(step, Step) and step.fits(request) is not None:
                return _fault(step)
            if not isinstance(step, Step) and step(request) is not None:
                return ""
        return ""


def say(text: str) -> Text:
    return Text(text)


def call(tool: str, /, **given: json_codec.Value) -> ToolUse:
    return ToolUse(tool, given)


def think(text: str) -> Think:
    return Think(text)


def stop(reason: str) -> Stop:
    return Stop(reason)


def fail(fault: str) -> Fail:
    return Fail(fault)


def when(pattern: str, *acts: Act, seen: Mapping[str, str] | None = None) -> Step:
    wanted = re.compile(pattern, re.IGNORECASE)

    def fits(request: Request) -> Fields | None:
        found = wanted.search(request.prompt)
        if request.after_results or is_background(request) or found is None:
            return None
        return _fields(request, seen or {}, found.groupdict(""))

    return Step(fits, acts)


def after(tool: str, *acts: Act, seen: Mapping[str, str] | None = None) -> Step:
    def fits(request: Request) -> Fields | None:
        results = [use.result or "" for use in request.last_results if use.name == tool]
        if not results:
            return None
        return _fields(request, seen or {}, {"result": "\n".join(results)})

    return Step(fits, acts)


def summary(*acts: Act, bad: str = "") -> Step:
    return Step(lambda r: _fields(r, {}, {}) if wants_summary(r) else None, acts, bad)


def always(*acts: Act, seen: Mapping[str, str] | None = None) -> Step:
    return Step(lambda r: None if is_background(r) else _fields(r, seen or {}, {}), acts)


def read_script(path: Path) -> Script:
    """Read a script from a file; raises ScriptError."""
    try:
        steps = runpy.run_path(str(path)).get("SCRIPT")
    except OSError as error:
        raise ScriptError(f"{path} cannot be read: {error.strerror}") from error
    except Exception as error:
        raise ScriptError(f"{path}: {type(error).__name__}: {error}") from error
    if not isinstance(steps, list) or not all(callable(s) or isinstance(s, Step) for s in steps):
        raise ScriptError(f"{path} has no list SCRIPT of steps")
    return Script(steps)


def _fault(step: Step) -> str:
    return next((act.fault for act in step.acts if isinstance(act, Fail)), "")


def _fields(request: Request, seen: Mapping[str, str], more: Fields) -> Fields | None:
    known = {"prompt": request.prompt, "count": str(len(request.prompts))}
    known["first"] = request.prompts[0] if request.prompts else ""
    for name, pattern in seen.items():
        found = re.search(pattern, request.visible)
        if found is None:
            return None
        known[name] = found[0]
    return known | more


def _fill(value: json_codec.Value, fields: Fields) -> json_codec.Value:
    """Insert the fields into every text of a value; unknown placeholders stay."""
    match value:
        case str():
            return _FIELD.sub(lambda found: fields.get(found[1], found[0]), value)
        case list():
            return [_fill(item, fields) for item in value]
        case dict():
            return {name: _fill(item, fields) for name, item in value.items()}
        case _:
            return value
