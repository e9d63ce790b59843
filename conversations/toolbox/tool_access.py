"""Whether a tool may be used: by the site's setting, rules, the person's set-up, the chat.

The first reason against a tool is reported: to the model with the text below, to people on the page
of the conversation's tools. A person can turn a tool that was switched off for one conversation on
again; other reasons need an administrator or some set-up.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from django.contrib.auth.models import Group
from django.db.models import Q

from conversations.conf import conf
from conversations.db import transact
from conversations.log.chain import lock_conversation
from conversations.log.contents import read_contents
from conversations.log.settings_version import cached_by_settings_version, may_have_rows
from conversations.models import Conversation, ToolRule, ToolSwitch, WebSearch

#: site: disabled for all; rule: not for this person; need: a requirement is not set up; chat:
#: switched off; search: it is private, and this conversation searches the web; private: the
#: reverse; schema: the API would refuse its description, and with it every request.
Denial = Literal["site", "rule", "need", "chat", "search", "private", "schema"]
#: Completes the sentence "cannot be used: ".
WORDS: dict[Denial, str] = {
    "site": "it is switched off on this site.",
    "rule": "it is not allowed for this person.",
    "need": "what it needs is not set up.",
    "chat": "the person has switched it off for this conversation.",
    "search": "the web is searched here, and what is private is not read beside that.",
    "private": "something private was read here before, and a search cannot be asked about.",
    "schema": "the description of its inputs is not one that the model takes.",
}


@dataclass(frozen=True, slots=True)
class Access:
    """The settings and rules about tools that apply to one conversation; two queries."""

    site: frozenset[str]
    rules: dict[str, bool]
    switched_off: frozenset[str]

    def denial(self, name: str, *, has_needs: bool = True) -> Denial | None:
        """Return the reason against a tool, None when there is none."""
        if name in self.site:
            return "site"
        if not self.rules.get(name, True):
            return "rule"
        if not has_needs:
            return "need"
        return "chat" if name in self.switched_off else None


def read_access(conversation: Conversation) -> Access:
    """Read the access rules of a conversation; an unsaved one has no switches of its own."""
    rows = _list_rules(conversation.owner_id)
    site: dict[str, bool] = {}
    of_groups: dict[str, bool] = {}
    for row in rows:
        if row.group_id is None:
            site[row.tool] = row.is_allowed
        else:
            of_groups[row.tool] = of_groups.get(row.tool, False) or row.is_allowed
    off = frozenset[str]()
    if read_contents(conversation).switches:
        switches = ToolSwitch.objects.filter(conversation=conversation.pk)
        off = frozenset(switches.values_list("tool", flat=True))
    return Access(frozenset(conf.disabled_tools), site | of_groups, off)


@cached_by_settings_version
def _list_rules(owner_id: int) -> tuple[ToolRule, ...]:
    if not may_have_rows(ToolRule):
        return ()
    groups = Group.objects.filter(user=owner_id)
    return tuple(ToolRule.objects.filter(Q(group=None) | Q(group__in=groups)))


@transact
def switch_tools(*, conversation_id: int, on: Collection[str], off: Collection[str]) -> None:
    """Switch these tools on and those off; others stay unchanged.

    A running turn keeps its tools; one that waits for a person goes on with those of then.
    """
    conversation = lock_conversation(conversation_id)
    rows = ToolSwitch.objects.filter(conversation=conversation)
    rows.filter(tool__in=on).delete()
    known = set(rows.values_list("tool", flat=True))
    ToolSwitch.objects.bulk_create(
        ToolSwitch(conversation=conversation, tool=name) for name in sorted({*off} - known)
    )


@transact
def choose_web_search(*, conversation_id: int, choice: str) -> None:
    """Store the person's choice about web search; the envelope of each call records its effect."""
    conversation = lock_conversation(conversation_id)
    chosen = WebSearch(choice)
    Conversation.objects.filter(pk=conversation.pk).update(web_search=chosen)
