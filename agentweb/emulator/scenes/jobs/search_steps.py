"""The steps of a job search, one for each request."""

from __future__ import annotations

import re
from dataclasses import replace

from agentweb.emulator.scenes.jobs.notes import Rank, find_ranks, table
from agentweb.emulator.scenes.jobs.rubric import Rubric
from agentweb.emulator.scenes.jobs.search_state import PROMPT_FILE, SearchState
from agentweb.emulator.scenes.scene import Reply, Text, ToolUse, call, say
from agentweb.emulator.scenes.view import Request

RESULT_FILE = "todays-jobs.md"
_BATCH = 6
_BEST = 5
_NEEDED = ("read_file", "fetch_url", "write_file")


def search(request: Request, *, first: bool) -> Reply:
    missing = [name for name in _NEEDED if name not in request.tools]
    if missing:
        return say(
            f"I would need the tool `{missing[0]}` for the job search, and it is not offered to me."
        )
    state = SearchState(request)
    step = (
        _read_prompt(request, state, first=first)
        or (_read_alerts if state.alert_sender else _open_lists)(request, state)
        or _open_jobs(request, state)
        or _check_jobs(request, state)
        or _write(request, state)
    )
    return _noting(request, state, step) if step is not None else _answer(request, state)


def _noting(request: Request, state: SearchState, step: Reply) -> Reply:
    """Note the facts of the last pages before the next step: they may be shortened soon."""
    notes = _fresh_notes(request, state)
    return replace(step, blocks=(Text(notes), *step.blocks)) if notes else step


def wanted_pages(prompt: str, *, first: bool) -> set[int]:
    return {int(number) for number in re.findall(r"\bpage (\d+)", prompt, re.IGNORECASE)} | (
        {1} if first else set()
    )


def _pages(request: Request) -> set[int]:
    return wanted_pages(request.prompt, first=PROMPT_FILE in request.prompt)


def _called(request: Request, name: str, value: str) -> bool:
    return any(
        use.name == name and value in map(str, use.input.values()) for use in request.turn_uses
    )


def _read_prompt(request: Request, state: SearchState, *, first: bool) -> Reply | None:
    tried = [use for use in request.turn_uses if PROMPT_FILE in map(str, use.input.values())]
    if tried and tried[-1].failed:
        return say(f"I cannot read `{PROMPT_FILE}`: {tried[-1].result}")
    has_place = state.alert_sender or state.list_address
    if tried or (has_place and (not first or request.is_resumed)):
        return None
    return call(
        ToolUse("read_file", {"path": PROMPT_FILE}),
        saying=f"I'll read `{PROMPT_FILE}` first.",
        thinking="The instructions are in a file, so I read it before anything else.",
    )


def _open_lists(request: Request, state: SearchState) -> Reply | None:
    if not state.list_address:
        return say(
            f"I can't see the address of a list page in `{PROMPT_FILE}`, so I cannot search."
        )
    pages = sorted(_pages(request))
    urls = [re.sub(r"page=\d+", f"page={page}", state.list_address) for page in pages]
    due = [url for url in urls if not _called(request, "fetch_url", url)]
    if not due:
        return None
    uses = [ToolUse("fetch_url", {"url": url}) for url in due]
    return call(*uses, saying="Now the list of openings.", thinking="Next comes the list page.")


def _read_alerts(request: Request, state: SearchState) -> Reply | None:
    if "search_mail" not in request.tools:
        return say("I would need a mailbox for the alerts, and none is offered to me.")
    subjects = [f"page {page}" for page in sorted(_pages(request))]
    due = [words for words in subjects if not _called(request, "search_mail", words)]
    if due:
        sender = {"sender": state.alert_sender}
        uses = [ToolUse("search_mail", {**sender, "subject": words}) for words in due]
        return call(*uses, saying="I look for the alerts in the mailbox.")
    read = {use.input.get("uid") for use in request.turn_uses if use.name == "read_mail"}
    fresh = [uid for uid in state.alerts() if uid not in read]
    if not fresh:
        return None
    return call(
        *(ToolUse("read_mail", {"uid": uid, "length": 50_000}) for uid in fresh),
        saying="Now the alerts themselves.",
        thinking="Each alert lists the addresses of the openings.",
    )


def _check_jobs(request: Request, state: SearchState) -> Reply | None:
    """Query the company register and the job board about the jobs that were read."""
    rating, status = state.tool("__rating"), state.tool("__status")
    if not (rating and status):
        return None
    notes = [note for url, note in sorted(state.notes.items()) if not note.is_checked]
    pending = [note for note in notes if not _called(request, status, note.url)][:_BATCH]
    if not pending:
        return None
    companies = dict.fromkeys(note.company for note in pending)
    uses = [ToolUse(rating, {"company": name}) for name in companies]
    uses += [ToolUse(status, {"url": note.url}) for note in pending]
    return call(*uses, saying=f"I check {len(pending)} of {len(notes)} openings.")


def _open_jobs(request: Request, state: SearchState) -> Reply | None:
    jobs = state.jobs_on(_pages(request))
    due = [url for url in jobs if url not in state.notes and not _called(request, "fetch_url", url)]
    if not due:
        return None
    batch = due if "check" in request.prompt.lower() else due[:_BATCH]
    plan = "To open:\n" + "\n".join(f"- {url}" for url in jobs)
    is_planned = any(url in _join_answers(request) for url in jobs)
    return call(
        *(ToolUse("fetch_url", {"url": url}) for url in batch),
        saying=f"Opening {len(batch)} of {len(due)} pages that are left.",
        noting="" if is_planned else plan,
        thinking=(
            "I note what the last pages said before they get too far away, then open the next ones."
        ),
    )


def _join_answers(request: Request) -> str:
    later = request.messages[request.prompt_at + 1 :]
    return "\n".join(
        block["text"]
        for message in later
        if message["role"] == "assistant" and isinstance(message["content"], list)
        for block in message["content"]
        if block["type"] == "text"
    )


def _fresh_notes(request: Request, state: SearchState) -> str:
    checked = state.tool("__status")
    urls = [
        str(use.input.get("url", ""))
        for use in request.last_results
        if use.name == "fetch_url" or (checked and use.name == checked)
    ]
    return "\n".join(state.notes[url].line() for url in urls if url in state.notes)


def _write(request: Request, state: SearchState) -> Reply | None:
    if any(use.name == "write_file" for use in request.turn_uses):
        return None
    rubric = state.rubric
    if rubric is None:
        return _look_up_rubric(request, state)
    ranks = ranked(state, rubric)
    if not ranks:
        return say("None of the jobs I can see meets your wishes, so I wrote nothing.")
    content = f"# Today's jobs\n\n{table(ranks)}\nScored by: {rubric.words()}.\n"
    return call(
        ToolUse("write_file", {"path": RESULT_FILE, "content": content}),
        saying=f"All pages are read; I write `{RESULT_FILE}`.",
        thinking="Every page is noted. I score with the rubric and write the table.",
    )


def _look_up_rubric(request: Request, state: SearchState) -> Reply | None:
    """Recall the rubric that is no longer in view, or read the file again."""
    call_id = state.recallable(PROMPT_FILE)
    if call_id and "recall" in request.tools and not _called(request, "recall", call_id):
        use = ToolUse("recall", {"id": call_id})
    elif sum(use.name == "read_file" for use in request.turn_uses) < 2:
        use = ToolUse("read_file", {"path": PROMPT_FILE})
    else:
        return say("I can't see the rubric any more, so I cannot score the jobs.")
    return call(use, saying="The rubric is out of view; I look it up again.")


def ranked(state: SearchState, rubric: Rubric) -> list[Rank]:
    """Return the jobs in view that meet the wishes, best first; old scores where notes are gone."""
    ranks = {rank.url: rank for rank in find_ranks(state.words_in_view)}
    for note in state.notes.values():
        ranks[note.url] = Rank(rubric.score(note), note.title, note.url, note.rate, note.remote)
    closed = {url for url, note in state.notes.items() if note.status == "closed"}
    kept = (
        rank
        for rank in ranks.values()
        if rank.rate >= state.least_pay
        and rank.url not in closed
        and (rank.remote.startswith("fully remote") or not state.remote_only)
    )
    return sorted(kept, key=lambda rank: (-rank.score, -rank.rate, rank.url))


def _answer(request: Request, state: SearchState) -> Reply:
    written = [use for use in request.turn_uses if use.name == "write_file"][-1]
    if written.failed:
        return say(f"I could not write `{RESULT_FILE}`: {written.result}")
    ranks = find_ranks(str(written.input.get("content", "")))
    lines = "\n".join(f"{place}. {rank.sentence()}" for place, rank in enumerate(ranks[:_BEST], 1))
    filters = [f"at least {state.least_pay} a day"] if state.least_pay else []
    filters += ["fully remote only"] if state.remote_only else []
    shown = f" Filters: {', '.join(filters)}." if filters else ""
    return say(
        f"## Best jobs\n\n{lines}\n\n{len(ranks)} jobs are in `{RESULT_FILE}`, best first.{shown}",
        thinking="The file is written; the user wants a short ranking.",
    )
