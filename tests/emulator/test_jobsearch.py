"""The job search: long, refined twice, questioned, and honest about what is out of view."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from agentweb.demo.openings import make_opening
from agentweb.demo.workspace import PROMPTS, QUESTIONS, RESULT_NAME
from agentweb.emulator.scenes.jobs.notes import find_ranks
from tests.emulator.agent import BASE, Agent, cut_results, summarise
from tests.support.job_ranking import expected
from tools.html.to_markdown import html_to_markdown

Shape = Callable[[str, str], str]


def as_html(page: str, url: str) -> str:
    return page


def written(agent: Agent) -> list[tuple[int, str]]:
    return [(rank.score, rank.url) for rank in find_ranks(agent.files[RESULT_NAME])]


REDUCTIONS = [lambda agent: None, cut_results, summarise]


@pytest.mark.parametrize("shape", [as_html, html_to_markdown])
@pytest.mark.parametrize("reduce", REDUCTIONS, ids=["whole", "cut", "summarised"])
def test_every_round_ranks_all_pages_by_the_rubric(
    ask: Any, shape: Shape, reduce: Callable[[Agent], None]
) -> None:
    agent = Agent(ask, shape, reduce)
    agent.say(PROMPTS[0])
    assert written(agent) == expected(1, BASE)
    agent.say(PROMPTS[1])
    assert written(agent) == expected(2, BASE, least=600)
    answer = agent.say(PROMPTS[2])
    assert written(agent) == expected(3, BASE, least=600, remote=True)
    best = expected(3, BASE, least=600, remote=True)[0]
    assert f"{best[0]} points" in answer
    assert best[1] in answer
    assert agent.peak > 80_000


@pytest.mark.parametrize("reduce", REDUCTIONS, ids=["whole", "cut", "summarised"])
def test_questions_are_answered_from_view_or_by_recall(
    ask: Any, reduce: Callable[[Agent], None]
) -> None:
    agent = Agent(ask, html_to_markdown, reduce)
    for prompt in PROMPTS[:2]:
        agent.say(prompt)
    rubric, best = (agent.say(question) for question in QUESTIONS)
    assert "stack 30 %, remote 20 %, pay 25 %, growth 25 %" in rubric
    points, url = expected(2, BASE, least=600)[0]
    assert url in best
    assert f"{points} points" in best
    job = make_opening(2, 4)
    told = agent.say(f"What did the page of {job.title} say about equipment budget?")
    assert f"Equipment budget: {job.equipment} EUR" in told
    process = agent.say(f"What did the page of {job.title} say about the interview process?")
    assert job.interview in process


def test_six_pages_are_opened_at_a_time(ask: Any) -> None:
    agent = Agent(ask, html_to_markdown)
    agent.say(PROMPTS[0])
    opened = [
        sum(block["type"] == "tool_use" for block in message["content"])
        for message in agent.messages
        if message["role"] == "assistant"
    ]
    assert opened == [1, 1, 6, 6, 2, 1, 0]


def test_without_recall_what_was_cut_cannot_be_seen_any_more(ask: Any) -> None:
    agent = Agent(ask, html_to_markdown, cut_results, recalls=False)
    agent.say(PROMPTS[0])
    agent.last_tokens = 50_000
    job = make_opening(1, 2)
    told = agent.say(f"What did the page of {job.title} say about on-call duty?")
    assert told.startswith("I can't see that any more")


def test_nothing_is_remembered_outside_of_the_view(ask: Any) -> None:
    agent = Agent(ask, html_to_markdown)
    agent.say(PROMPTS[0])
    agent.messages.clear()
    for question in (*QUESTIONS, f"What did the page of {make_opening(1, 2).title} say about pay?"):
        assert agent.say(question).startswith("I can't see that any more")
        agent.messages.clear()


def test_a_page_that_is_silent_is_said_to_be_silent(ask: Any) -> None:
    agent = Agent(ask, html_to_markdown)
    agent.say(PROMPTS[0])
    told = agent.say(f"What did the page of {make_opening(1, 2).title} say about unicorns?")
    assert "says nothing about unicorns" in told


def test_a_missing_prompt_file_ends_the_search(ask: Any, body: Any) -> None:
    use = {
        "type": "tool_use",
        "id": "a",
        "name": "read_file",
        "input": {"path": "search-prompt.txt"},
    }
    result = {
        "type": "tool_result",
        "tool_use_id": "a",
        "content": "no such file",
        "is_error": True,
    }
    tools = [
        {"name": n, "input_schema": {"type": "object"}}
        for n in ("read_file", "fetch_url", "write_file")
    ]
    messages = [
        {"role": "user", "content": PROMPTS[0]},
        {"role": "assistant", "content": [use]},
        {"role": "user", "content": [result]},
    ]
    message = ask(body(messages=messages, tools=tools)).json
    assert message["content"][0]["text"] == "I cannot read `search-prompt.txt`: no such file"


def test_without_tools_no_search_is_begun(ask: Any) -> None:
    assert "not offered" in ask.say(PROMPTS[0]).json["content"][0]["text"]
