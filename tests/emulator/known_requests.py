"""The built-in set of requests, generated from the tables that the emulator is tested with.

`python3 -m tests.emulator.known_requests` writes it; a test fails when it is out of date.
"""

from __future__ import annotations

import json
from typing import Any

from agentweb.emulator.comparison.known_requests import BUILT_IN
from tests.emulator.known_refusals import KNOWN
from tests.emulator.samples import TEXT, TOOL, user
from tests.emulator.test_model_facts import DOCUMENTED

OLD = "2023-06-01"
#: Further requests for every documented model.
ASKED: dict[str, dict[str, Any]] = {
    "an answer": {},
    "a stream": {"stream": True},
    "a tool": {"tools": [TOOL]},
    "thinking switched off": {"thinking": {"type": "disabled"}},
    "little effort": {"output_config": {"effort": "low"}},
    "most effort": {"output_config": {"effort": "max"}},
    "a place": {"inference_geo": "us"},
    "a fast answer": {"speed": "fast"},
}


def row(name: str, body: dict[str, Any], **more: str) -> dict[str, Any]:
    found = {"path": "/v1/messages", "version": OLD, "beta": ""} | more
    return {"name": name} | found | {"body": body}


def make_rows() -> list[dict[str, Any]]:
    base = {"max_tokens": 2_000}
    known = [
        row(
            f"{one.rule.partition(' ')[2]}, {one.model}, {one.version}, {number}",
            {"model": one.model} | base | one.change,
            version=one.version,
            beta=one.beta,
        )
        for number, one in enumerate(KNOWN, 1)
    ]
    plain = {"messages": [user(TEXT)]}
    models = sorted({fact.model for fact in DOCUMENTED})
    asked = [
        row(f"{name}, {model}", {"model": model} | base | plain | change)
        for model in models
        for name, change in ASKED.items()
    ]
    counted = [
        row(f"a count, {model}", {"model": model, "tools": [TOOL]} | plain,
            path="/v1/messages/count_tokens")
        for model in models
    ]  # fmt: skip
    return [*known, *asked, *counted]


def dump() -> str:
    lines = ",\n".join(json.dumps(one) for one in make_rows())
    return f"[\n{lines}\n]\n"


if __name__ == "__main__":
    BUILT_IN.write_text(dump(), encoding="utf-8")
