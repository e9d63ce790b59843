"""The tools of a conversation for people: description, effects, whether each is on."""

from __future__ import annotations

from dataclasses import dataclass, field

from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from conversations.conf import conf
from conversations.models import Conversation, WebSearch
from conversations.toolbox.egress import asks_before_egress
from conversations.toolbox.tool_access import Denial, read_access
from conversations.toolbox.tool_labels import describe_tool, name_tool
from conversations.toolbox.toolset import ToolStatus, list_known_tools, list_tool_statuses
from conversations.toolbox.web_search import NAME, has_read_privately, is_search_possible
from tools.framework.tool import Tool

#: Reasons that the person cannot change on this page.
_FINAL: tuple[Denial, ...] = ("site", "rule", "need", "schema")
_WHY: dict[Denial, Promise] = {
    "site": _("Switched off on this site."),
    "rule": _("Not allowed for you; an administrator can change that."),
    "need": _("Needs an account or a setting that is missing."),
    "search": _("Not available while this chat searches the web."),
    "private": _("Not available: this chat has read private data."),
    "schema": _("Not available: the model does not accept the description of its inputs."),
}
_EGRESS = _("Not available while nothing leaves this chat without you.")
_EFFECTS: dict[str, Promise] = {
    "read": _("only reads"),
    "keyed": _("edits your files and drafts"),
    "write": _("acts outside once you allow it"),
    "api": _("run by the model's provider"),
}


@dataclass(frozen=True, slots=True)
class ToolRow:
    name: str
    description: str | Promise
    effect: str | Promise
    is_private: bool
    #: Whether it sends data to another party: a web site, the reader of a mail, a server.
    sends_out: bool
    is_on: bool
    can_switch: bool
    #: The reason why it is not offered although it is on.
    why: str | Promise

    @property
    def label(self) -> str | Promise:
        return name_tool(self.name)


@dataclass(frozen=True, slots=True)
class SearchChoice:
    """The choice about web search, and the reason why it is not offered although it is on."""

    chosen: str
    can_choose: bool
    why: str | Promise = ""
    choices: tuple[str, ...] = tuple(WebSearch.values)
    #: Most searches in one answer.
    most: int = field(default_factory=lambda: conf.web_search_uses)


def list_tools(conversation: Conversation) -> list[ToolRow]:
    """Return every tool but web search, in the order in which the model gets them.

    Last are those that an administrator approved and that are missing now.
    """
    known = list_known_tools(conversation)
    rows = [
        _build_row(each) for each in list_tool_statuses(conversation, known) if each.name != NAME
    ]
    return rows + [_build_missing(name, why) for name, why in sorted(known.missing.items())]


def read_search_choice(conversation: Conversation) -> SearchChoice:
    """Return the person's choice about web search, and whether there is one to make."""
    denial = read_access(conversation).denial(NAME)
    chosen = conversation.web_search
    if denial in _FINAL:
        return SearchChoice(chosen, can_choose=False, why=_WHY[denial])
    if not is_search_possible(conversation):
        return SearchChoice(chosen, can_choose=False, why=_("Not available with this model."))
    if asks_before_egress(conversation):
        return SearchChoice(chosen, can_choose=True, why=_EGRESS)
    is_apart = chosen == WebSearch.ALONE and has_read_privately(conversation)
    return SearchChoice(chosen, can_choose=True, why=_WHY["private"] if is_apart else "")


def list_usable_tools(owner_id: int) -> list[ToolRow]:
    """Return the tools that a new conversation of the person would be offered."""
    rows = list_tools(Conversation(owner_id=owner_id, model=conf.model))
    return [row for row in rows if row.is_on and not row.why]


def _build_missing(name: str, why: str) -> ToolRow:
    words = _("Not available: %(why)s") % {"why": gettext(why)}
    return ToolRow(name, "", _EFFECTS["write"], False, True, False, False, words)


def _build_row(each: ToolStatus) -> ToolRow:
    can_switch = each.denial not in _FINAL
    is_on = can_switch and each.denial != "chat"
    why = _WHY.get(each.denial, "") if each.denial else ""
    if isinstance(each.what, Tool):
        tool = each.what
        words = describe_tool(tool.name, tool.description)
        effect, is_private = _EFFECTS[tool.effect], tool.is_private
        sends_out = tool.destination is not None
        return ToolRow(each.name, words, effect, is_private, sends_out, is_on, can_switch, why)
    return ToolRow(each.name, "", _EFFECTS["api"], False, True, is_on, can_switch, why)
