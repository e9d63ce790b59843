"""Whether a tool may be used: by the site's setting, by rules, by what the person has, by the chat.

The first reason that speaks against it is the one that is said, to the model in these words and to
people on the page of the conversation's tools. What is switched off for one conversation the person
may switch on again; the other reasons are an administrator's, or something to set up.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from django.contrib.auth.models import Group
from django.db import transaction
from django.db.models import Q

from conversations.conf import conf
from conversations.log.chain import locked
from conversations.models import Conversation, ToolRule, ToolSwitch, WebSearch

#: site: no one has it; rule: not this person; need: something is not set up; chat: switched off;
#: search: it is private, and the web is searched here; private: the other way round.
Denial = Literal["site", "rule", "need", "chat", "search", "private"]
#: In a sentence after "cannot be used: ".
WORDS: dict[Denial, str] = {
    "site": "it is switched off on this site.",
    "rule": "it is not allowed for this person.",
    "need": "what it needs is not set up.",
    "chat": "the person has switched it off for this conversation.",
    "search": "the web is searched here, and what is private is not read beside that.",
    "private": "something private was read here before, and a search cannot be asked about.",
}


@dataclass(frozen=True, slots=True)
class Access:
    """What was said about tools, by name, read in two queries."""

    site: frozenset[str]
    rules: dict[str, bool]
    switched_off: frozenset[str]

    def bar(self, name: str, *, has_needs: bool = True) -> Denial | None:
        """Return what speaks against a tool, None when nothing does."""
        if name in self.site:
            return "site"
        if not self.rules.get(name, True):
            return "rule"
        if not has_needs:
            return "need"
        return "chat" if name in self.switched_off else None


def read_access(conversation: Conversation) -> Access:
    """Read what counts for the conversation; one that is not saved has no switches of its own."""
    groups = Group.objects.filter(user=conversation.owner_id)
    rows = ToolRule.objects.filter(Q(group=None) | Q(group__in=groups))
    site: dict[str, bool] = {}
    of_groups: dict[str, bool] = {}
    for row in rows:
        if row.group_id is None:
            site[row.tool] = row.is_allowed
        else:
            of_groups[row.tool] = of_groups.get(row.tool, False) or row.is_allowed
    switches = ToolSwitch.objects.filter(conversation=conversation.pk)
    off = frozenset(switches.values_list("tool", flat=True))
    return Access(frozenset(conf.disabled_tools), site | of_groups, off)


@transaction.atomic
def switch_tools(*, conversation_id: int, on: Collection[str], off: Collection[str]) -> None:
    """Switch these tools on and those off; what is in neither stays as it is.

    A turn that is on its way keeps the tools it began with.
    """
    conversation = locked(conversation_id)
    rows = ToolSwitch.objects.filter(conversation=conversation)
    rows.filter(tool__in=on).delete()
    known = set(rows.values_list("tool", flat=True))
    ToolSwitch.objects.bulk_create(
        ToolSwitch(conversation=conversation, tool=name) for name in sorted({*off} - known)
    )


@transaction.atomic
def choose_web_search(*, conversation_id: int, choice: str) -> None:
    """Take over what the person says of searching the web here; each call's envelope records it."""
    conversation = locked(conversation_id)
    chosen = WebSearch(choice)
    Conversation.objects.filter(pk=conversation.pk).update(web_search=chosen)
