"""The tools of a conversation for people: what each does, what it may do, and whether it is on."""

from __future__ import annotations

from dataclasses import dataclass, field

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from conversations.conf import conf
from conversations.models import Conversation, WebSearch
from conversations.toolbox.tool_access import Denial, read_access
from conversations.toolbox.toolset import Offered, list_offered
from conversations.toolbox.web_search import NAME, has_read_privately, is_search_possible
from tools.framework.tool import Tool

#: What a person can do about it: nothing here, where an administrator has decided or it is missing.
_FINAL: tuple[Denial, ...] = ("site", "rule", "need")
_WHY: dict[Denial, Promise] = {
    "site": _("Switched off on this site."),
    "rule": _("Not allowed for you; an administrator can change that."),
    "need": _("What it needs is not set up."),
    "search": _("Not beside the search of the web in one chat."),
    "private": _("Not in a chat in which something private was read."),
}
_EFFECTS: dict[str, Promise] = {
    "read": _("only reads"),
    "keyed": _("changes your own things"),
    "write": _("acts outside, when you allow it"),
    "api": _("run by the model's provider"),
}


@dataclass(frozen=True, slots=True)
class ToolRow:
    name: str
    description: str | Promise
    effect: str | Promise
    is_private: bool
    #: It tells somebody something: a web site, a mail's reader, a server.
    tells: bool
    is_on: bool
    can_switch: bool
    #: Why it is not there although it is on.
    why: str | Promise


@dataclass(frozen=True, slots=True)
class SearchChoice:
    """What is chosen about searching the web, and why it is not offered although it is."""

    chosen: str
    can_choose: bool
    why: str | Promise = ""
    choices: tuple[str, ...] = tuple(WebSearch.values)
    #: Searches of one answer.
    most: int = field(default_factory=lambda: conf.web_search_uses)


def list_tools(conversation: Conversation) -> list[ToolRow]:
    """Return every tool in the order the model is told of them; web search has words of its own."""
    return [_build_row(each) for each in list_offered(conversation) if each.name != NAME]


def read_search_choice(conversation: Conversation) -> SearchChoice:
    """Return what the person chose about searching the web, and whether it can be chosen."""
    bar = read_access(conversation).bar(NAME)
    chosen = conversation.web_search
    if bar in _FINAL:
        return SearchChoice(chosen, can_choose=False, why=_WHY[bar])
    if not is_search_possible(conversation):
        return SearchChoice(chosen, can_choose=False, why=_("Not here, or not by this model."))
    is_apart = chosen == WebSearch.ALONE and has_read_privately(conversation)
    return SearchChoice(chosen, can_choose=True, why=_WHY["private"] if is_apart else "")


def list_usable_tools(owner_id: int) -> list[tuple[str, str | Promise]]:
    """Return name and description of what a person has in a new conversation."""
    rows = list_tools(Conversation(owner_id=owner_id, model=conf.model))
    return [(row.name, row.description) for row in rows if row.is_on and not row.why]


def _build_row(each: Offered) -> ToolRow:
    can_switch = each.bar not in _FINAL
    is_on = can_switch and each.bar != "chat"
    why = _WHY.get(each.bar, "") if each.bar else ""
    if isinstance(each.what, Tool):
        tool = each.what
        words, effect, is_private = tool.description, _EFFECTS[tool.effect], tool.is_private
        tells = tool.destination is not None
        return ToolRow(each.name, words, effect, is_private, tells, is_on, can_switch, why)
    return ToolRow(each.name, "", _EFFECTS["api"], False, True, is_on, can_switch, why)
