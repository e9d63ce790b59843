"""*Nothing leaves without me*: a switch of a conversation, of groups, and of the whole site.

Where it is on, every tool that reaches outside asks first, also for sites that the person named and
for tools that the site always allows; only what a person allowed for the whole conversation goes.
The search by the API cannot be asked about, so it is not offered there.
"""

from __future__ import annotations

from typing import Literal

from conversations.conf import conf
from conversations.db import transact
from conversations.log.chain import lock_conversation
from conversations.log.page_version import raise_version
from conversations.log.settings_version import cached_by_settings_version, may_have_rows
from conversations.models import Conversation, EgressRule

#: Who has it on: the site and groups take precedence, because a person cannot switch those off.
By = Literal["", "site", "group", "chat"]


def asks_before_egress(conversation: Conversation) -> bool:
    """Return whether nothing leaves this conversation unasked."""
    owner, asks = conversation.owner_id, conversation.asks_before_egress
    return bool(find_egress_rule(owner, asks=asks))


def find_egress_rule(owner_id: int, *, asks: bool = False) -> By:
    """Return who has it on for a conversation of a person; "": nobody. One query at most.

    `asks`: the conversation's own switch.
    """
    if conf.ask_before_egress:
        return "site"
    if _is_asked_by_group(owner_id):
        return "group"
    return "chat" if asks else ""


@cached_by_settings_version
def _is_asked_by_group(owner_id: int) -> bool:
    rules = EgressRule.objects.filter(group__user=owner_id)
    return may_have_rows(EgressRule) and rules.exists()


def read_egress_rule(owner_id: int, conversation: Conversation | None) -> By:
    """Return who has it on for a conversation; None stands for a new one."""
    asks = conversation is not None and conversation.asks_before_egress
    return find_egress_rule(owner_id, asks=asks)


@transact
def switch_egress(*, conversation_id: int, asks: bool) -> None:
    """Switch it on or off for one conversation; it counts from the next call of a tool."""
    conversation = lock_conversation(conversation_id)
    Conversation.objects.filter(pk=conversation.pk).update(asks_before_egress=asks)
    raise_version(conversation.pk)
