"""Titles and summaries on every model of the catalogue: none is cut by what the model thinks."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

from agentweb.emulator.server import EmulatorServer
from conversations.agent import title
from conversations.agent.answer import Answer
from conversations.agent.thinking import (
    EFFORTS,
    FACTS,
    choose_effort,
    choose_quiet_call,
    find_thinking_facts,
)
from conversations.context.steps import summary_prompt
from conversations.context.view import wire
from conversations.context.view.envelope import Envelope, build_envelope, join_body
from conversations.runtime.job import build_quiet_envelope
from tests.claude.wire_server import PATIENT, ask

MODELS = [row[0] for row in import_module("conversations.migrations.0002_catalogue").MODELS]
TALK = "The user asked for a plan. The assistant wrote notes/plan.md and named INV-2231. " * 20


async def answer_of(url: str, envelope: Envelope, text: str) -> Answer:
    body = wire.encode([{"role": "user", "content": [{"type": "text", "text": text}]}])
    answer = Answer()
    heard = await ask(url, join_body(envelope.text, body), PATIENT)
    assert heard.failure is None, heard.failure
    for event in heard.events:
        answer.feed(event)
    return answer


@pytest.mark.asyncio
@pytest.mark.parametrize("model", MODELS)
async def test_a_title_and_a_summary_are_whole_on_every_model(
    model: str, emulator: EmulatorServer
) -> None:
    asked = build_quiet_envelope(model=model, max_tokens=title.MAX_TOKENS, system=title.SYSTEM)
    said = await answer_of(emulator.url, asked, title.quote_beginning("Bread?", "Flour, water."))
    assert said.stop_reason == "end_turn"
    assert title.read_title(said.text, said.stop_reason)
    asked = build_quiet_envelope(model=model, max_tokens=2_000, system=summary_prompt.SYSTEM)
    request = summary_prompt.write_request(TALK, ["INV-2231"], 200)
    said = await answer_of(emulator.url, asked, request)
    assert (said.stop_reason, bool(said.text.strip())) == ("end_turn", True)


@pytest.mark.asyncio
async def test_a_title_that_says_nothing_of_thinking_would_be_thought_about(
    emulator: EmulatorServer,
) -> None:
    asked = build_envelope(
        model="claude-haiku-5-5", max_tokens=2_000, system=title.SYSTEM, cached=False
    )
    quiet = build_quiet_envelope(model="claude-haiku-5-5", max_tokens=2_000, system=title.SYSTEM)
    for envelope, thinks in ((asked, True), (quiet, False)):
        said = await answer_of(emulator.url, envelope, title.quote_beginning("Bread?", "Flour."))
        assert ('"type":"thinking"' in "".join(said.blocks)) is thinks


def test_every_model_of_the_catalogue_has_its_facts() -> None:
    assert [name for name in MODELS if find_thinking_facts(name).efforts is None] == []
    known = {find_thinking_facts(name) for name in MODELS}
    assert find_thinking_facts("gpt-unknown") not in known
    assert find_thinking_facts("claude-haiku-4-5-20251001") is FACTS["claude-haiku-4-5"]


def test_what_is_not_known_has_room_to_think_and_no_parameter_that_could_be_refused() -> None:
    quiet = choose_quiet_call("claude-new-7")
    assert (quiet.thinking, quiet.effort, quiet.room > 1_000) == (None, "", True)


@pytest.mark.parametrize(
    ("model", "wanted", "level"),
    [
        ("claude-sonnet-5-5", "xhigh", "xhigh"),
        ("claude-opus-4-6", "xhigh", "high"),
        ("claude-opus-4-5", "max", "high"),
        ("claude-haiku-4-5", "low", ""),
        ("claude-sonnet-5-5", "", ""),
        ("claude-sonnet-5-5", "huge", ""),
    ],
)
def test_an_effort_becomes_the_nearest_level_of_the_model(
    model: str, wanted: str, level: str
) -> None:
    assert choose_effort(model, wanted) == level


@pytest.mark.parametrize("wanted", EFFORTS)
def test_every_effort_of_every_model_is_one_it_has(wanted: Any) -> None:
    for name, facts in FACTS.items():
        assert choose_effort(name, wanted) in (facts.efforts or ("",))
