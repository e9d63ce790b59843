"""Which tool calls need a person's approval, by the path, the site's rules and past decisions.

A destination counts as named by the person when a URL of that host is in a message they wrote.
Pasted text cannot be distinguished from typed text, so a URL in a text that a third party made them
paste names its host too. Attached files and imported messages name no host. What is private counts
anywhere on the path, including earlier calls of the same answer.

Words of what is not private itself (typed, read on a page, got from another server) need approval
too when a call carries them by no accident, unless they go back to where they came from, or they
stand in a URL of that very host on a page that was read: then its author knows it already, unless
an earlier call may have told them.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, cast

from django.db import connection

from conversations.agent.answer import ToolUse
from conversations.agent.approval_rules import (
    ApprovalQuestion,
    CallFacts,
    Rule,
    find_question,
)
from conversations.agent.ports import ToolDone
from conversations.context.errors import WireError
from conversations.context.view import wire
from conversations.log.contents import note_contents
from conversations.log.findings import read_leniently
from conversations.log.prepared_rows import read_rows, shape_of
from conversations.log.settings_version import reading_settings
from conversations.models import Approval, Conversation, Decision
from conversations.toolbox.egress import asks_before_egress
from conversations.toolbox.information_flow import InformationFlow
from conversations.toolbox.sources import (
    list_private_sources,
    list_typed,
    name_source,
    read_arguments,
)
from conversations.toolbox.tool_access import read_access
from conversations.toolbox.toolset import list_known_tools
from tools.framework.errors import AddressRefusedError, InputError
from tools.framework.execute import check_arguments
from tools.framework.registry import TOOLS
from tools.framework.tool import Tool
from tools.framework.toolset import Toolset
from tools.http.targets import format_host_port, parse_url

logger = logging.getLogger("agentweb.turns")
NEVER = "Not run: on this site this tool may not be used."
LOST = "Not run: this person may not use this tool any more."
TAKEN_BACK = "an administrator has taken this tool back."
DENIED = (
    "Not run: the person did not allow this call. Do not repeat it; ask what they want instead."
)
EXPIRED = "Not run: the person was asked to allow this call and did not answer in time."
CHANGED = "Not run: what the person allowed is not this call."
#: The text for a destination that cannot be determined; it never counts as named.
UNKNOWN = "an unknown destination"
_URL = re.compile(r"https?://[^\s<>\"'`\\]+", re.IGNORECASE)
_PORTS = ("80", "443")


@reading_settings()
def check_calls(
    turn_id: int, uses: Sequence[ToolUse], tools: Toolset
) -> dict[str, ApprovalQuestion | ToolDone]:
    """Return the question or the refusal for each call that may not run without one.

    Calls of a tool that the user has lost since the turn began are refused, too.
    """
    present = {use.id: tools.tools[use.name] for use in uses if use.name in tools.tools}
    rules = _read_rules({tool.name for tool in present.values()})
    calm = all(
        tool.effect != "write" and tool.destination is None and tool.name not in rules
        for tool in present.values()
    )
    conversation = _load_conversation(turn_id)
    lost = _list_lost(conversation, present.values())
    found: dict[str, ApprovalQuestion | ToolDone] = {
        key: _refuse(lost[tool.name], "lost") for key, tool in present.items() if tool.name in lost
    }
    if calm:
        return found
    decisions, known = _read_decisions(turn_id), _read_known(conversation)
    flow = InformationFlow(conversation)
    for use in uses:
        if use.id not in present or use.id in found:
            continue
        tool = present[use.id]
        rule = rules.get(tool.name)
        verdict = _check_call(use, tool, known, decisions.get(use.id), rule, flow)
        if verdict is not None:
            found[use.id] = verdict
        if tool.is_private:
            given = read_arguments(use.input)
            source = name_source(tool.name, tool.origin, given, is_private=True).key
            known = replace(known, private=tuple(dict.fromkeys((*known.private, source))))
    return found


def _load_conversation(turn_id: int) -> Conversation:
    """Return the conversation of a turn, with what it contains."""
    shape = shape_of(Conversation)
    statement = f"""
        SELECT {shape.columns("c")} FROM conversations_conversation c
        JOIN conversations_turn t ON t.conversation_id = c.id WHERE t.id = %s"""  # noqa: S608
    [found] = read_rows(shape, statement, [turn_id])
    note_contents(found)
    return found


def _list_lost(conversation: Conversation, present: Iterable[Tool]) -> dict[str, str]:
    """Return the tools that may not be used any more, with the text for the model.

    A rule may have been made since the turn began, or the approval of a server's tool taken back.
    """
    access, names = read_access(conversation), {tool.name for tool in present}
    lost = {name: LOST for name in names if access.denial(name) == "rule"}
    if foreign := names - TOOLS.keys():
        known = list_known_tools(conversation)
        for name in foreign - {tool.name for tool in known.tools}:
            lost[name] = f"Not run: {known.missing.get(name, TAKEN_BACK)}"
    return lost


def must_stay_at_host(conversation: Conversation, use: ToolUse, tool: Tool) -> bool:
    """Return whether a call may follow no redirect to a host that nobody was asked about."""
    if asks_before_egress(conversation) or list_private_sources(conversation):
        return True
    given = read_arguments(use.input)
    return tool.destination is not None and bool(InformationFlow(conversation).list_telling(given))


def _check_call(
    use: ToolUse,
    tool: Tool,
    known: CallFacts,
    decision: Decision | None,
    rule: Rule | None,
    flow: InformationFlow,
) -> ApprovalQuestion | ToolDone | None:
    if rule == "never":
        return _refuse(NEVER, "never")
    if decision is not None:
        return _apply_decision(use, decision)
    try:
        arguments = check_arguments(wire.decode(use.input), tool)
    except (InputError, WireError):
        # Invalid or damaged arguments: the call cannot run, and its result says why.
        return None
    destination = _find_destination(tool, arguments)
    question = find_question(
        use,
        known,
        writes=tool.effect == "write",
        destination=destination,
        rule=rule,
        telling=lambda: flow.list_telling(arguments, destination or ""),
    )
    if question is None or not destination:
        return question
    return replace(question, words=flow.list_words(arguments, destination))


def _apply_decision(use: ToolUse, decision: Decision) -> ToolDone | None:
    if decision.verdict == Decision.Verdict.EXPIRED:
        return _refuse(EXPIRED, "expired")
    if not decision.allows:
        return _refuse(DENIED, "denied")
    is_same = decision.approval.arguments_digest == wire.digest(use.input)
    return None if is_same else _refuse(CHANGED, "changed")


def _refuse(text: str, code: str) -> ToolDone:
    return ToolDone(wire.encode(text), "denied", {"code": code})


def _find_destination(tool: Tool, arguments: dict[str, Any]) -> str | None:
    if tool.destination is None:
        return None
    try:
        return tool.destination(arguments) or None
    except Exception:
        logger.exception("the destination of %s is not known", tool.name)
        return UNKNOWN


def _read_rules(names: set[str]) -> dict[str, Rule]:
    with connection.cursor() as cursor:
        # A few rows at most, one for each tool that has a rule.
        cursor.execute("SELECT tool, rule FROM conversations_approvalrule")
        rows = cursor.fetchall()
    return {tool: cast("Rule", rule) for tool, rule in rows if tool in names}


def _read_decisions(turn_id: int) -> dict[str, Decision]:
    rows = Decision.objects.filter(approval__call__turn_id=turn_id)
    rows = rows.select_related("approval__call")
    return {row.approval.call.tool_use_id: row for row in read_leniently(lambda: list(rows))}


def _read_known(conversation: Conversation) -> CallFacts:
    allowed = Approval.objects.filter(
        conversation=conversation, decision__verdict=Decision.Verdict.CONVERSATION
    )
    places = allowed.values_list("call__name", "destination")
    return CallFacts(
        tuple(source.key for source in list_private_sources(conversation)),
        frozenset(_list_named_hosts(conversation)),
        # Read so, what is damaged allows nothing.
        frozenset(read_leniently(lambda: list(places))),
        asks_before_egress(conversation),
    )


def _list_named_hosts(conversation: Conversation) -> Iterator[str]:
    """Yield the hosts of the URLs in the person's own messages."""
    for text in list_typed(conversation, has_run=True):
        for found in _URL.finditer(text):
            yield from _list_destinations(found[0])


def _list_destinations(url: str) -> Iterator[str]:
    """Yield the hosts of a URL, parsed as the tools do: another parser may see another host."""
    try:
        place = format_host_port(parse_url(url.rstrip(".,;:!?)]}")))
    except AddressRefusedError:
        return
    host, _, port = place.rpartition(":")
    if host:
        yield place
        if port in _PORTS:
            yield host
        if port == "80":
            # The same site, encrypted.
            yield f"{host}:443"
