"""Figures of MCP servers, and their tools for an administrator to review, shown verbatim."""

from __future__ import annotations

import difflib
import json
import unicodedata
from collections import Counter
from dataclasses import dataclass
from statistics import median

from django.db.models import Max
from django.utils.translation import gettext as _

from conversations.models import McpServer, McpTool, ToolCall
from conversations.toolbox.mcp.approved_tools import Status, tool_status
from conversations.toolbox.mcp.server_identity import identify_server
from tools.mcp.rewritten_schemas import rewrite_schema

#: The newest calls of all tools that are searched; the newest of one server that count.
NEWEST, SAMPLE = 20_000, 1_000
#: Most pairs of lines for which two definitions are compared line by line.
MOST_MATCHED = 1_000_000
#: Tools that wait for a decision come first.
ORDER: tuple[Status, ...] = ("changed", "moved", "new", "flawed", "offered", "gone", "rejected")
#: Control characters that are shown as they are.
_PLAIN = "\n\t"
#: States of calls that the server did not answer, or with an error.
_FAILED = ("error", "unknown")
_UNSEEN = frozenset({"Cc", "Cf", "Co", "Cn", "Cs", "Zl", "Zp"})


@dataclass(frozen=True, slots=True)
class ServerHealth:
    server: McpServer
    offered: int
    pending: int
    refused: int
    calls: int
    failures: int
    #: Median duration of a call, in milliseconds.
    middle: int | None


@dataclass(frozen=True, slots=True)
class ToolReview:
    tool: McpTool
    status: Status
    #: The definition as listed, or as approved where it is no longer listed.
    words: str
    #: Lines of the difference to the approved definition: kind ("+", "-", " ", "@") and text.
    difference: tuple[tuple[str, str], ...]
    hint: str
    #: Differences between the server's input schema and the one for the model, a sentence each.
    changes: tuple[str, ...] = ()


def list_server_health() -> list[ServerHealth]:
    return [measure_server(row) for row in McpServer.objects.prefetch_related("tools")]


def measure_server(server: McpServer) -> ServerHealth:
    identity = identify_server(server)
    found = Counter(tool_status(tool, identity) for tool in server.tools.all())
    last = ToolCall.objects.aggregate(last=Max("pk"))["last"] or 0
    # What a person denied or stopped says nothing about the server.
    rows = ToolCall.objects.filter(
        pk__gt=last - NEWEST, name__startswith=f"mcp__{server.name}__",
        state__in=("ok", *_FAILED),
    )  # fmt: skip
    calls = list(rows.order_by("-pk").values_list("started_at", "ended_at", "state")[:SAMPLE])
    times = [(end - start).total_seconds() for start, end, _ in calls if start and end]
    return ServerHealth(
        server=server,
        offered=found["offered"],
        pending=found["new"] + found["changed"] + found["moved"],
        refused=found["flawed"] + found["rejected"],
        calls=len(calls),
        failures=sum(state in _FAILED for *_, state in calls),
        middle=round(median(times) * 1000) if times else None,
    )


def list_tool_reviews(server: McpServer) -> list[ToolReview]:
    """Return a server's tools, those that wait for a decision first."""
    identity = identify_server(server)
    found = [_build_review(tool, identity) for tool in server.tools.all()]
    return sorted(found, key=lambda each: (ORDER.index(each.status), each.tool.name))


def format_definition(definition: str) -> str:
    """Format a definition for people, with hidden characters made visible."""
    if not definition:
        return ""
    found = json.loads(definition)
    parts = [f"{name}: {found[name]}" for name in ("name", "title", "description") if name in found]
    rest = ("inputSchema", "outputSchema", "annotations")
    parts += [
        f"{name}: {json.dumps(found[name], ensure_ascii=False, indent=1, sort_keys=True)}"
        for name in rest
        if name in found
    ]
    return reveal_hidden("\n".join(parts))


def reveal_hidden(text: str) -> str:
    """Replace each character that is invisible, or changes how others appear, by its code."""
    return "".join(
        f"⟦U+{ord(each):04X}⟧"
        if each not in _PLAIN and unicodedata.category(each) in _UNSEEN
        else each
        for each in text
    )


def _build_review(tool: McpTool, identity: str) -> ToolReview:
    found = tool_status(tool, identity)
    difference: tuple[tuple[str, str], ...] = ()
    if found == "changed" and tool.listed:
        before, after = (
            format_definition(text).split("\n") for text in (tool.approved, tool.listed)
        )
        difference = diff_lines(before, after)
    words = format_definition(tool.listed or tool.approved)
    return ToolReview(tool, found, words, difference, _read_hints(tool), _list_changes(tool))


def _list_changes(tool: McpTool) -> tuple[str, ...]:
    text = tool.listed or tool.approved
    return rewrite_schema(json.loads(text).get("inputSchema")).changes if text else ()


def diff_lines(before: list[str], after: list[str]) -> tuple[tuple[str, str], ...]:
    """Return the lines that differ; all lines of very long texts, where matching takes hours."""
    if len(before) * len(after) <= MOST_MATCHED:
        lines = list(difflib.unified_diff(before, after, lineterm=""))[2:]
        return tuple((line[:1], line[1:] if line[:1] != "@" else line) for line in lines)
    return (*(("-", line) for line in before), *(("+", line) for line in after))


def _read_hints(tool: McpTool) -> str:
    """Return what the server claims about its tool; it is not verified."""
    hints = json.loads(tool.listed).get("annotations") if tool.listed else None
    if not isinstance(hints, dict):
        return ""
    hint_words = {
        "readOnlyHint": _("it only reads"),
        "idempotentHint": _("a repeat changes nothing more"),
    }
    return "; ".join(words for name, words in hint_words.items() if hints.get(name) is True)
