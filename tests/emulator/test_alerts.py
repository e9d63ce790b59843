"""The job search from alert mails, checked with two MCP servers."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from agentweb.demo.openings import list_openings
from agentweb.demo.workspace import PROMPT_NAME, PROMPTS, RESULT_NAME
from agentweb.emulator.scenes.jobs.notes import find_ranks
from tests.emulator.agent import BASE, Agent, cut_results, summarise
from tests.support.job_alerts import SENDER, is_open, make_alerts_prompt, rate_company, render_alert
from tests.support.job_ranking import expected
from tools.html.to_markdown import html_to_markdown

REDUCTIONS = [lambda agent: None, cut_results, summarise]
PAGES = {f"{BASE}{job.path}": job for page in range(1, 4) for job in list_openings(page)}


def search_mail(given: dict[str, Any]) -> str:
    assert given["sender"] == SENDER
    page = int(given["subject"].removeprefix("page "))
    return (
        f"[1 found in INBOX of work, newest first, 1 to 1]\nuid {page + 40} | alerts | page {page}"
    )


def read_mail(given: dict[str, Any]) -> str:
    mail = render_alert(given["uid"] - 40, BASE, "ada@example.org")
    text = html_to_markdown(mail.get_content(), "")
    assert len(text) > 10_000
    return f"[uid {given['uid']}]\n{text}"


def rated(given: dict[str, Any]) -> str:
    return json.dumps({"company": given["company"], "rating": rate_company(given["company"])})


def status(given: dict[str, Any]) -> str:
    return json.dumps({"status": "open" if is_open(PAGES[given["url"]]) else "closed"})


def make(ask: Any, reduce: Callable[[Agent], None]) -> Agent:
    more = {
        "search_mail": search_mail,
        "read_mail": read_mail,
        "mcp__companies__rating": rated,
        "mcp__board__status": status,
    }
    return Agent(
        ask, html_to_markdown, reduce, files={PROMPT_NAME: make_alerts_prompt(SENDER)}, more=more
    )


@pytest.mark.parametrize("reduce", REDUCTIONS, ids=["whole", "cut", "summarised"])
def test_every_round_ranks_the_openings_of_all_alerts_that_are_open(
    ask: Any, reduce: Callable[[Agent], None]
) -> None:
    agent = make(ask, reduce)
    for number, prompt in enumerate(PROMPTS, 1):
        agent.say(prompt)
        written = [(rank.score, rank.url) for rank in find_ranks(agent.files[RESULT_NAME])]
        least, remote = 600 * (number > 1), number > 2
        assert written == expected(number, BASE, least=least, remote=remote, is_rated=True)
    assert agent.peak > 80_000
