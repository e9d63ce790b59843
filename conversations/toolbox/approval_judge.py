"""Which tool calls need a person's approval, by the path, the site's rules and past decisions.

A destination counts as named by the person when a URL of that host is in a message they wrote.
Pasted text cannot be distinguished from typed text, so a URL in a text that a third party made them
paste names its host too. Attached files name no host and do not count as private reads, because the
person gave them to this conversation. Private reads by the model count anywhere on the path,
including other calls of the same answer, before or after this one.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, cast

from django.db.models import Q

from conversations.agent.answer import ToolUse
from conversations.agent.approval_rules import ApprovalQuestion, CallFacts, Rule, find_question
from conversations.agent.ports import ToolDone
from conversations.context.view import wire
from conversations.context.view.stored_blocks import read_blocks
from conversations.models import Approval, ApprovalRule, Conversation, Decision, Message, Turn
from conversations.toolbox.tool_access import read_access
from conversations.toolbox.web_search import list_private_sources
from tools.framework.errors import AddressRefusedError, InputError
from tools.framework.execute import check_arguments
from tools.framework.tool import Tool
from tools.framework.toolset import Toolset
from tools.http.targets import format_host_port, parse_url

logger = logging.getLogger("agentweb.turns")
NEVER = "Not run: on this site this tool may not be used."
LOST = "Not run: this person may not use this tool any more."
DENIED = (
    "Not run: the person did not allow this call. Do not repeat it; ask what they want instead."
)
EXPIRED = "Not run: the person was asked to allow this call and did not answer in time."
CHANGED = "Not run: what the person allowed is not this call."
#: The text for a destination that cannot be determined; it never counts as named.
UNKNOWN = "an unknown destination"
_URL = re.compile(r"https?://[^\s<>\"'`\\]+", re.IGNORECASE)
_PORTS = ("80", "443")


def judge_calls(
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
    conversation = Turn.objects.select_related("conversation").get(pk=turn_id).conversation
    access = read_access(conversation)
    lost = {key for key, tool in present.items() if access.denial(tool.name) == "rule"}
    found: dict[str, ApprovalQuestion | ToolDone] = {key: _refuse(LOST, "lost") for key in lost}
    if calm:
        return found
    decisions, known = _read_decisions(turn_id), _read_known(conversation)
    for use in uses:
        if use.id not in present or use.id in lost:
            continue
        tool = present[use.id]
        verdict = _judge(use, tool, known, decisions.get(use.id), rules.get(tool.name, "ask"))
        if verdict is not None:
            found[use.id] = verdict
        if tool.is_private and tool.name not in known.private:
            known = replace(known, private=(*known.private, tool.name))
    return found


def _judge(
    use: ToolUse, tool: Tool, known: CallFacts, decision: Decision | None, rule: Rule
) -> ApprovalQuestion | ToolDone | None:
    if rule == "never":
        return _refuse(NEVER, "never")
    try:
        arguments = check_arguments(wire.decode(use.input), tool)
    except InputError:
        # Invalid arguments: the call cannot run, and its result says why.
        return None
    if decision is not None:
        return _apply_decision(use, decision)
    return find_question(
        use,
        known,
        writes=tool.effect == "write",
        destination=_find_destination(tool, arguments),
        rule=rule,
    )


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
    rows = ApprovalRule.objects.filter(tool__in=names).exclude(rule=ApprovalRule.Rule.ASK)
    return {tool: cast("Rule", rule) for tool, rule in rows.values_list("tool", "rule")}


def _read_decisions(turn_id: int) -> dict[str, Decision]:
    rows = Decision.objects.filter(approval__call__turn_id=turn_id)
    return {row.approval.call.tool_use_id: row for row in rows.select_related("approval__call")}


def _read_known(conversation: Conversation) -> CallFacts:
    allowed = Approval.objects.filter(
        conversation=conversation, decision__verdict=Decision.Verdict.CONVERSATION
    )
    private = list_private_sources(conversation)
    return CallFacts(
        private,
        frozenset(_list_named_hosts(conversation)) if private else frozenset(),
        frozenset(allowed.values_list("call__name", "destination")),
    )


def _list_named_hosts(conversation: Conversation) -> Iterator[str]:
    """Yield the hosts of the URLs in the person's own messages."""
    # The prompt of a turn that continues a cut answer is generated.
    theirs = Q(turn=None) | Q(turn__continues=None)
    prompts = Message.objects.filter(theirs, conversation=conversation, kind="prompt")
    for content in prompts.values_list("content", flat=True):
        for block in read_blocks(content):
            if block.get("type") == "text":
                for found in _URL.finditer(block["text"]):
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
