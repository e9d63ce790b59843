"""The job site: always the same, long, and mostly markup around the text."""

from __future__ import annotations

import urllib.error
import urllib.request

import pytest

from agentweb.demo import job_site
from agentweb.demo.openings import PAGES, PER_PAGE, list_openings, make_opening
from agentweb.demo.pages import render_job_page
from agentweb.demo.workspace import make_search_prompt
from agentweb.emulator.scenes.jobs.notes import read_page
from tools.html.to_markdown import html_to_markdown

EVERY = [job for page in range(1, PAGES + 1) for job in list_openings(page)]


def test_every_page_is_long_as_html_and_as_text() -> None:
    for job in EVERY:
        page = render_job_page(job)
        text = html_to_markdown(page, f"http://jobs.test{job.path}")
        assert len(text) >= 14_000
        assert len(page) >= len(text) * 3 // 2


def test_the_facts_of_a_page_are_out_of_its_first_and_last_characters() -> None:
    text = html_to_markdown(render_job_page(EVERY[0]), "http://jobs.test/jobs/p1-01")
    assert 500 < text.index("Day rate") < len(text) - 500


@pytest.mark.parametrize("job", EVERY[::7])
def test_facts_can_be_read_from_html_and_from_text(job: object) -> None:
    assert isinstance(job, type(EVERY[0]))
    page, url = render_job_page(job), f"http://jobs.test{job.path}"
    for text in (page, html_to_markdown(page, url)):
        note = read_page(url, text)
        assert note is not None
        assert (note.title, note.rate, note.remote, note.stack, note.growth) == (
            job.title,
            job.rate,
            job.remote,
            job.stack,
            job.growth,
        )


def test_pages_are_the_same_every_time_and_titles_differ() -> None:
    assert render_job_page(make_opening(2, 3)) == render_job_page(make_opening(2, 3))
    assert len({job.title for job in EVERY}) == PAGES * PER_PAGE


def test_the_prompt_names_the_list_page_and_hides_the_rubric_from_its_first_characters() -> None:
    prompt = make_search_prompt(job_site.make_list_url("http://jobs.test"))
    assert "http://jobs.test/jobs?page=1" in prompt[:500]
    assert prompt.index("- stack 30 %") > 500


def test_the_served_site_has_lists_jobs_and_nothing_else() -> None:
    with job_site.start_site() as running:
        for path in ("/", "/jobs?page=2", "/jobs/p3-14"):
            with urllib.request.urlopen(running.url + path) as answer:
                assert answer.headers["content-type"].startswith("text/html")
        for path in ("/jobs?page=99", "/jobs/p9-01", "/admin", "/jobs?page=x"):
            with pytest.raises(urllib.error.HTTPError):
                urllib.request.urlopen(running.url + path)
