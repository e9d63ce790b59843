"""Tool calls on request: the prompt says which tool to call with what."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from zoneinfo import available_timezones

from agentweb.emulator import json_codec
from agentweb.emulator.scenes.scene import Reply, ToolUse, call, say
from agentweb.emulator.scenes.view import Request

_MANY = re.compile(r"\buse (\d+) tools?\b", re.IGNORECASE)
_UNKNOWN = re.compile(r"\bcall (?:an? )?unknown tool\b", re.IGNORECASE)
_CALL = re.compile(
    r"\bcall (?:the )?tool `?([\w-]+)`?(?:\s+with\s+(\{.*\}))?", re.IGNORECASE | re.DOTALL
)
_LIST = re.compile(
    r"\blist (?:the |all |my )*files\b"
    r"(?: in (?!(?:my |the )?workspace\b)(?:my |the )?(?:folder )?`?([\w./-]+)`?)?",
    re.IGNORECASE,
)
_READ = re.compile(
    r"\bread (?:the )?(?:file )?`?([\w./-]*\w\.\w+|[\w-]+/[\w./-]+)`?", re.IGNORECASE
)
_WRITE = re.compile(
    r"\bwrite (?:to )?(?:the |a )?(?:file )?`?([\w./-]+\.\w+)`?"
    r"(?:\s*(?:with(?: content)?|:)\s*(.+))?",
    re.IGNORECASE | re.DOTALL,
)
_IDEAS = re.compile(r"three ideas (.+)", re.IGNORECASE)
_FETCH = re.compile(
    r"\b(?:fetch|open|load|get)\b[^\n]{0,40}?(https?://[^\s<>\"')\]]+)", re.IGNORECASE
)
_TIME = re.compile(r"\bwhat(?:'s| is)? (?:the )?time\b|\bcurrent time\b", re.IGNORECASE)
_PLACE = re.compile(r"\b(?:in|for) ([A-Z][A-Za-z]+(?:[/ _][A-Z][A-Za-z]+)*)")
_RECALL = re.compile(r"\brecall\b\W*(toolu_[\w-]+)(?:.*?\bmatching\b\W*([\w .-]+))?", re.IGNORECASE)


def use_tools(request: Request) -> Reply | None:
    if request.after_results:
        return None
    words = request.prompt
    for wanted in _WANTED:
        uses = wanted(words)
        if uses:
            missing = [use.name for use in uses if use.name not in request.tools]
            if missing and missing[0] != "launch_rocket":
                return say(
                    f"I would call `{missing[0]}`, but that tool is not offered to me "
                    f"in this request."
                )
            return call(
                *uses, saying=_announce(uses), thinking=f"The user wants me to use {uses[0].name}."
            )
    return None


def _announce(uses: list[ToolUse]) -> str:
    if len(uses) == 1:
        return f"I'll use `{uses[0].name}` for that."
    return f"I'll use {len(uses)} tools at once."


def _many(words: str) -> list[ToolUse]:
    found = _MANY.search(words)
    if not found:
        return []
    kinds = (("current_time", {"zone": "UTC"}), ("list_files", {"path": ""}))
    return [ToolUse(*kinds[at % 2]) for at in range(min(int(found[1]), 200))]


def _unknown(words: str) -> list[ToolUse]:
    return [ToolUse("launch_rocket", {"when": "now"})] if _UNKNOWN.search(words) else []


def _named(words: str) -> list[ToolUse]:
    found = _CALL.search(words)
    if not found:
        return []
    try:
        arguments = json_codec.decode((found[2] or "{}").encode())
    except json_codec.NotJson:
        arguments = {}
    return [ToolUse(found[1], arguments if isinstance(arguments, dict) else {})]


def _recall(words: str) -> list[ToolUse]:
    found = _RECALL.search(words)
    if not found:
        return []
    more = {"matching": found[2].strip()} if found[2] else {}
    return [ToolUse("recall", {"id": found[1], **more})]


def _fetch(words: str) -> list[ToolUse]:
    return [
        ToolUse("fetch_url", {"url": found[1].rstrip(".,;")}) for found in _FETCH.finditer(words)
    ]


def _write(words: str) -> list[ToolUse]:
    found = _WRITE.search(words)
    if not found:
        return []
    content = (found[2] or "Written by the emulator.").strip().strip('"“”')
    ideas = _IDEAS.fullmatch(content)
    if ideas:
        content = "\n".join(f"{n}. Idea {n} {ideas[1]}" for n in (1, 2, 3))
    return [ToolUse("write_file", {"path": found[1], "content": f"{content}\n"})]


def _list(words: str) -> list[ToolUse]:
    found = _LIST.search(words)
    return [ToolUse("list_files", {"path": found[1]} if found[1] else {})] if found else []


def _read(words: str) -> list[ToolUse]:
    return [ToolUse("read_file", {"path": found[1]}) for found in _READ.finditer(words)]


def _time(words: str) -> list[ToolUse]:
    if not _TIME.search(words):
        return []
    place = _PLACE.search(words)
    zone = _zones().get(place[1].replace(" ", "_").rpartition("/")[2]) if place else None
    return [ToolUse("current_time", {"zone": zone} if zone else {})]


@cache
def _zones() -> dict[str, str]:
    """Return the time zones by the city that each is named after."""
    return {zone.rpartition("/")[2]: zone for zone in sorted(available_timezones())}


_WANTED: tuple[Callable[[str], list[ToolUse]], ...] = (
    _many,
    _unknown,
    _named,
    _recall,
    _write,
    _fetch,
    _list,
    _read,
    _time,
)
