"""The cost centre of a call: the chat's own, else its owner's, of those that are active.

It is stored with the call when the call is opened, and the call's link of the chain covers it. So a
later change moves nothing that was spent, and reports need no history. Ledger entries have that of
their call; a correction of a window has none.
"""

from __future__ import annotations

from conversations.log.settings_version import cached_by_settings_version
from conversations.models import Conversation, CostCentre


def find_cost_centre(conversation: Conversation) -> int | None:
    """Return the key of the cost centre that the next call of a conversation counts for."""
    active = _list_active()
    if not active:
        return None
    wanted = (conversation.cost_centre_id, conversation.owner.cost_centre_id)
    return next((key for key in wanted if key in active), None)


@cached_by_settings_version
def _list_active() -> frozenset[int]:
    return frozenset(CostCentre.objects.filter(is_active=True).values_list("pk", flat=True))


def list_choices() -> list[tuple[str, str]]:
    """Return the keys and names of those that take calls, by code."""
    return [(str(row.pk), str(row)) for row in CostCentre.objects.filter(is_active=True)]
