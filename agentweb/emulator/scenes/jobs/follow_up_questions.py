"""Questions about a finished search, answered from what is in view or by recall."""

from __future__ import annotations

import re

from agentweb.emulator.scenes.jobs.notes import find_ranks
from agentweb.emulator.scenes.jobs.page import is_cut, passage, plain
from agentweb.emulator.scenes.jobs.search_state import PROMPT_FILE, SearchState
from agentweb.emulator.scenes.scene import Reply, ToolUse, call, say
from agentweb.emulator.scenes.view import Request, Use

GONE = "I can't see that any more"
_RUBRIC = re.compile(r"\brubric\b|\bweights?\b.*\bscor", re.IGNORECASE)
_BEST = re.compile(
    r"\b(?:best|top|first|highest)\b[^?\n]{0,30}\bjob\b|\bjob\b[^?\n]{0,30}\b(?:best|top|highest)\b",
    re.IGNORECASE,
)
_PAGE = re.compile(
    (
        r"what (?:did|does) the page (?:of|for|about) [\"“'*`]*(?P<title>.+?)[\"”'*`]* say "
        r"(?:about|on) (?P<detail>[^?\n]+)"
    ),
    re.IGNORECASE,
)


def answer_question(request: Request) -> Reply | None:
    """Answer a question about the search; None for any other prompt."""
    words = request.prompt
    if found := _PAGE.search(words):
        return _answer_page(request, found["title"].strip(), found["detail"].strip(" .\"'"))
    if "?" not in words and not re.match(
        r"\W*(?:what|which|tell|name|give)\b", words, re.IGNORECASE
    ):
        return None
    if _RUBRIC.search(words):
        return _answer_rubric(request)
    if _BEST.search(words):
        return _answer_best(request)
    return None


def _answer_rubric(request: Request) -> Reply:
    state = SearchState(request)
    weights = state.weights
    if weights is not None:
        parts = ", ".join(
            f"{name} {weight} %"
            for name, weight in zip(("stack", "remote", "pay", "growth"), weights, strict=True)
        )
        return say(f"The rubric is: {parts}.", thinking="The rubric is in view.")
    return _recall(request, state.recallable(PROMPT_FILE)) or say(
        f"{GONE}: the rubric was in `{PROMPT_FILE}`, and what I see of it does not "
        f"contain the weights."
    )


def _answer_best(request: Request) -> Reply:
    state = SearchState(request)
    files = [str(use.input.get("content", "")) for use in request.uses if use.name == "write_file"]
    ranks = next((found for text in reversed(files) if (found := find_ranks(text))), None)
    ranks = ranks or find_ranks(state.words_in_view)
    if not ranks:
        return say(f"{GONE}: no ranking is in view.")
    best = max(ranks, key=lambda rank: (rank.score, rank.rate))
    return say(f"The best job was **{best.title}** with a score of {best.score} points: {best.url}")


def _answer_page(request: Request, title: str, detail: str) -> Reply:
    state = SearchState(request)
    recalled = [use for use in request.turn_uses if use.name == "recall" and use.result]
    for use in reversed(recalled):
        if not use.failed and (words := passage(use.result or "", detail)):
            return _quote(title, words)
        if not use.failed and "matching" not in use.input:
            return say(f"I recalled the page of {title}, and it says nothing about {detail}.")
    url = _address(state, title)
    page = _page_use(request, url, title)
    if page is not None and page.result and (words := passage(page.result, detail)):
        return _quote(title, words)
    if page is not None and page.result and not is_cut(page.result):
        return say(f"The page of {title} is in view, and it says nothing about {detail}.")
    call_id = page.id if page is not None else state.recallable(url) if url else ""
    return _recall(request, call_id, detail) or say(f"{GONE}: the page of {title} is not in view.")


def _quote(title: str, words: str) -> Reply:
    return say(
        f"The page of {title} says: “{words}”", thinking="The words are in view; I quote them."
    )


def _recall(request: Request, id: str, detail: str = "") -> Reply | None:
    """Call `recall`: first for the matching lines, then for the full text, then return None."""
    before = [
        use for use in request.turn_uses if use.name == "recall" and use.input.get("id") == id
    ]
    if not id or "recall" not in request.tools or len(before) > bool(detail):
        return None
    matching = {"matching": detail} if detail and not before else {}
    return call(
        ToolUse("recall", {"id": id, **matching}),
        saying="That part was cut from view; I recall the original.",
        thinking="A stub in view names the id of the original, so I can get it back.",
    )


def _address(state: SearchState, title: str) -> str:
    """Return the address of a job by its title or a part of it."""
    wanted = title.lower()
    for note in state.notes.values():
        if wanted in note.title.lower():
            return note.url
    for rank in find_ranks(state.words_in_view):
        if wanted in rank.title.lower():
            return rank.url
    return ""


def _page_use(request: Request, url: str, title: str) -> Use | None:
    for use in reversed(request.uses):
        if use.name != "fetch_url":
            continue
        same = url and use.input.get("url") == url
        if same or (not url and use.result and title.lower() in plain(use.result)[:1_000].lower()):
            return use
    return None
