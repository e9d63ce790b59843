"""The job site as an ASGI app, and a way to serve it in this process."""

from __future__ import annotations

import re
from urllib.parse import parse_qs

from agentweb.demo.openings import PAGES, PER_PAGE, make_opening
from agentweb.demo.pages import render_job_page, render_list_page
from agentweb.emulator import Receive, Scope, Send, Server, respond

_JOB = re.compile(r"/jobs/p(\d+)-(\d+)$")


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] != "http":
        return
    page = find_page(str(scope["path"]), scope["query_string"].decode("latin-1"))
    body = (page or "<!doctype html><title>Not found</title><h1>No such page</h1>").encode()
    status = 200 if page else 404
    await respond(send, status, body, [("content-type", "text/html; charset=utf-8")])


def find_page(path: str, query: str) -> str | None:
    """Return the HTML of a path; None if there is none."""
    if path in {"/", "/jobs"}:
        number = parse_qs(query).get("page", ["1"])[0]
        return (
            render_list_page(int(number))
            if number.isdigit() and 1 <= int(number) <= PAGES
            else None
        )
    found = _JOB.match(path)
    if found is None:
        return None
    page, place = int(found[1]), int(found[2])
    if not (1 <= page <= PAGES and 1 <= place <= PER_PAGE):
        return None
    return render_job_page(make_opening(page, place))


def make_list_url(base: str, page: int = 1) -> str:
    return f"{base}/jobs?page={page}"


def start_site(port: int = 0) -> Server:
    """Serve the site on 127.0.0.1; `.url` is its base, `.stop()` ends it."""
    return Server(application, port=port).start()
