"""The tools of a conversation's agent, decided only here, and once for each run of a turn.

The built-in tools come first in the registry's order, then those of `SOURCES` sorted by name, then
the definitions of server tools, which the API itself runs. Tools that may not be used keep the
reason; the others run within the site's limits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from conversations.conf import conf
from conversations.models import Conversation
from conversations.toolbox.mail_accounts import has_mail_account
from conversations.toolbox.mcp.approved_tools import supply_approved_tools
from conversations.toolbox.tool_access import WORDS, Denial, read_access
from conversations.toolbox.web_search import (
    NAME,
    excludes_private,
    has_read_privately,
    list_search_tools,
)
from tools.framework.registry import TOOLS
from tools.framework.tool import Tool
from tools.framework.toolset import Supply, Toolset
from tools.mcp.schemas import find_known_flaw

#: Requirements that tools can declare (`@tool(needs=...)`), each with its check.
NEEDS: dict[str, Callable[[Conversation], bool]] = {"mail": has_mail_account}
#: Sources of tools that are not built in, such as MCP servers.
SOURCES: tuple[Callable[[Conversation], Supply], ...] = (supply_approved_tools,)
#: Sources of definitions of tools that the API itself runs.
SERVER_TOOLS: tuple[Callable[[Conversation], Iterable[Mapping[str, Any]]], ...] = (
    list_search_tools,
)


@dataclass(frozen=True, slots=True)
class ToolStatus:
    """One known tool, ours or the API's, and the reason against its use in this conversation."""

    name: str
    what: Tool | Mapping[str, Any]
    denial: Denial | None


def list_tool_statuses(conversation: Conversation, known: Supply | None = None) -> list[ToolStatus]:
    """Return every known tool for the conversation, in the order in which the model gets them.

    An unsaved conversation stands for a new one of its owner. `known` are the tools that run here,
    if they were already read.
    """
    access = read_access(conversation)
    had = {need for need, has in NEEDS.items() if has(conversation)}
    found = []
    for tool in (known or list_known_tools(conversation)).tools:
        has_needs = not tool.needs or tool.needs in had
        denial = access.denial(tool.name, has_needs=has_needs)
        # The schemas of built-in tools are checked by a test, not here.
        is_foreign = tool.name not in TOOLS
        if denial is None and is_foreign and find_known_flaw(tool.input_schema):
            denial = "schema"
        found.append(ToolStatus(tool.name, tool, denial))
    served = [each for source in SERVER_TOOLS for each in source(conversation)]
    found += [ToolStatus(each["name"], each, access.denial(each["name"])) for each in served]
    return _separate_search_and_private(conversation, found)


def build_toolset(conversation: Conversation, known: Supply | None = None) -> Toolset:
    """Return the tools that the agent has from its next turn on, or when one that waits goes on."""
    known = known or list_known_tools(conversation)
    tools: dict[str, Tool] = {}
    served: list[Mapping[str, Any]] = []
    refused = dict(known.missing)
    for each in list_tool_statuses(conversation, known):
        if each.denial is not None:
            refused[each.name] = WORDS[each.denial]
        elif isinstance(each.what, Tool):
            tools[each.name] = _limit_tool(each.what)
        else:
            served.append(each.what)
    return Toolset(tools, tuple(served), refused)


def offers_search(conversation: Conversation) -> bool:
    """Return whether the conversation's calls offer web search, as `list_tool_statuses` decides."""
    if not any(list_search_tools(conversation)) or read_access(conversation).denial(NAME):
        return False
    return not (excludes_private(conversation) and has_read_privately(conversation))


def _separate_search_and_private(
    conversation: Conversation, found: list[ToolStatus]
) -> list[ToolStatus]:
    """Deny search beside private tools or the reverse, unless the person allowed both."""
    searches = any(each.name == NAME and each.denial is None for each in found)
    if not searches or not excludes_private(conversation):
        return found
    if has_read_privately(conversation):
        return [_deny(each, "private") if each.name == NAME else each for each in found]
    return [_deny(each, "search") if _is_private(each) else each for each in found]


def _is_private(each: ToolStatus) -> bool:
    return isinstance(each.what, Tool) and each.what.is_private


def _deny(each: ToolStatus, denial: Denial) -> ToolStatus:
    return replace(each, denial=each.denial or denial)


def list_known_tools(conversation: Conversation) -> Supply:
    """Return the tools that run here, whether they may be used or not."""
    others = [source(conversation) for source in SOURCES]
    rest = {tool.name: tool for other in others for tool in other.tools if tool.name not in TOOLS}
    missing = {name: why for other in others for name, why in other.missing.items()}
    return Supply((*TOOLS.values(), *(rest[name] for name in sorted(rest))), missing)


def _limit_tool(tool: Tool) -> Tool:
    """Return the tool with its limits lowered to the site's."""
    return replace(
        tool,
        timeout=min(tool.timeout, conf.max_tool_seconds),
        max_bytes=min(tool.max_bytes, conf.max_tool_bytes),
    )
