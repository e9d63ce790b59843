"""The state of a job search as far as it is in view: prompt file, pages, notes, wishes."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from functools import cached_property
from urllib.parse import urljoin

from agentweb.emulator.scenes.jobs.notes import Note, find_notes, read_page
from agentweb.emulator.scenes.jobs.page import addresses, is_cut
from agentweb.emulator.scenes.jobs.rubric import Rubric, find_rubric, find_weights
from agentweb.emulator.scenes.view import Request, Use, blocks

PROMPT_FILE = "search-prompt.txt"
_LIST = re.compile(r"https?://[^\s\"'<>)\]\\]+/jobs\?page=\d+")
_JOB = re.compile(r"/jobs/p(\d+)-\d+$")
_ALERTS = re.compile(r"Alert mails: from ([\w.+-]+@[\w.-]+\w)")
_UID = re.compile(r"^uid (\d+)\b", re.MULTILINE)
_RATING = re.compile(r"\"rating\":\s*(\d)")
_STATUS = re.compile(r"\"status\":\s*\"(open|closed)\"")
_ID = re.compile(r"toolu_[\w-]+")
_AT_LEAST = re.compile(r"at least (\d{3,4})", re.IGNORECASE)
_REMOTE_ONLY = re.compile(
    (
        r"(?:drop|exclude|remove|without)[^.\n]{0,50}not fully remote|fully remote "
        r"only|only fully remote"
    ),
    re.IGNORECASE,
)


@dataclass(frozen=True)
class SearchState:
    request: Request

    @cached_property
    def words_in_view(self) -> str:
        """Return all text in view except the pages: messages, calls, summaries."""
        parts: list[str] = []
        for message in self.request.messages:
            for block in blocks(message):
                if block["type"] == "text":
                    parts.append(block["text"])
                elif block["type"] == "compaction":
                    parts.append(block.get("content") or "")
                elif block["type"] == "tool_use":
                    parts += [str(value) for value in block["input"].values()]
        return "\n".join(parts)

    @cached_property
    def prompt_texts(self) -> str:
        """Return what is in view of the prompt file: results of reads and recalls, summaries."""
        readings = [
            use.result
            for use in self.request.uses
            if use.result and not use.failed and self._concerns_prompt(use)
        ]
        return "\n".join([*readings, self.summaries])

    @cached_property
    def summaries(self) -> str:
        words = (
            block.get("text") or block.get("content") or ""
            for message in self.request.messages
            for block in blocks(message)
            if block["type"] in {"text", "compaction"}
        )
        return "\n".join(
            text for text in words if "SUMMARY" in text[:400] or text.startswith("## ")
        )

    @property
    def rubric(self) -> Rubric | None:
        return find_rubric(self.prompt_texts)

    @property
    def weights(self) -> tuple[int, ...] | None:
        return find_weights(self.prompt_texts)

    @property
    def list_address(self) -> str:
        """Return the list page named in the prompt file, or any other list page in view."""
        found = _LIST.search(self.prompt_texts) or _LIST.search(self.words_in_view)
        return found[0] if found else ""

    @property
    def alert_sender(self) -> str:
        """Return the sender of the alert mails, from the prompt file or an earlier search."""
        found = _ALERTS.search(self.prompt_texts)
        senders = (
            str(use.input.get("sender", "")) for use in reversed(self._called("search_mail"))
        )
        return found[1] if found else next(senders, "")

    def alerts(self) -> list[int]:
        """Return the uids of the alert mails that searches of the running turn found."""
        since = self.request.prompt_at
        results = [use.result or "" for use in self._called("search_mail") if use.message > since]
        return [int(uid) for text in results for uid in _UID.findall(text)]

    def tool(self, ending: str) -> str:
        """Return the full name of the MCP tool with this ending; empty if none is offered."""
        offered = (name for name in self.request.tools if name.startswith("mcp__"))
        return next((name for name in offered if name.endswith(ending)), "")

    def _called(self, name: str) -> list[Use]:
        return [use for use in self.request.uses if use.name == name]

    def jobs_on(self, pages: set[int]) -> list[str]:
        """Return the addresses of all jobs in view that belong to these list pages."""
        found: list[str] = addresses(self.words_in_view)
        for use in self.request.uses:
            base = str(use.input.get("url", ""))
            if use.name == "fetch_url" and use.result and "page=" in base:
                found += [urljoin(base, link) for link in addresses(use.result)]
            elif use.name == "read_mail" and use.result:
                found += addresses(use.result)
        absolute = dict.fromkeys(url for url in found if url.startswith("http"))
        return sorted(url for url in absolute if (job := _JOB.search(url)) and int(job[1]) in pages)

    @cached_property
    def notes(self) -> dict[str, Note]:
        """Return every job known in view: noted, or readable on its page."""
        known = find_notes(self.words_in_view)
        for use in self.request.uses:
            url = str(use.input.get("url", ""))
            if use.name == "fetch_url" and use.result and _JOB.search(url):
                note = read_page(url, use.result)
                if note is not None and url not in known:
                    known[url] = note
        return {url: self._checked(note) for url, note in known.items()}

    def _checked(self, note: Note) -> Note:
        """Add what the company register and the job board say, if it is in view."""
        if note.is_checked:
            return note
        rating = self._answer_of("__rating", note.company, _RATING)
        status = self._answer_of("__status", note.url, _STATUS)
        return replace(note, rating=int(rating), status=status) if rating and status else note

    def _answer_of(self, ending: str, about: str, pattern: re.Pattern[str]) -> str:
        for use in self.request.uses:
            is_meant = use.name.endswith(ending) and about in map(str, use.input.values())
            if is_meant and not use.failed and (found := pattern.search(use.result or "")):
                return str(found[1])
        return ""

    @property
    def least_pay(self) -> int:
        return max((int(found) for found in _AT_LEAST.findall(self.wishes)), default=0)

    @property
    def remote_only(self) -> bool:
        return bool(_REMOTE_ONLY.search(self.wishes))

    @cached_property
    def wishes(self) -> str:
        """Return the user's requests: own messages in view, and those in summaries."""
        return "\n".join([*self.request.prompts, self.summaries])

    def recallable(self, name: str) -> str:
        """Return the id that recalls the full text of a file or page; empty if none is in view."""
        for use in reversed(self.request.uses):
            cut = use.result is not None and is_cut(use.result)
            if cut and name in json.dumps(use.input) and use.name != "recall":
                return use.id
        for line in reversed(self.words_in_view.splitlines()):
            if name in line and (ids := _ID.findall(line)):
                return str(ids[-1])
        return ""

    def _concerns_prompt(self, use: Use) -> bool:
        if use.name == "read_file":
            return PROMPT_FILE in str(use.input.get("path", ""))
        return use.name == "recall" and find_weights(use.result or "") is not None
