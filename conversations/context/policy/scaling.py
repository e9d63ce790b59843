"""Scale the numbers of a policy that reduces rarely and deeply to the room of the messages.

Lengths that suit a large window fill a small one: the recall list, a summary or one long result
would each take most of it, and every reduction would free too little to be worth a break of the
prompt cache. So each is limited to a share of the low-water mark or of the room, and to the
policy's own number.
"""

from __future__ import annotations

from dataclasses import replace

from conversations.context.policy.policy import Policy

#: Percent of the low-water mark that a summary may fill.
_SUMMARY = 25
#: Characters of one result per hundred tokens of the room, which is about a quarter of the room.
_RESULT = 75
#: Percent of a request's room that messages get at least, whatever system prompt and tools take.
_LEAST_ROOM = 25
_LEAST_SUMMARY, _LEAST_LIST, _LEAST_RECORD = 256, 500, 300


def scale_policy(policy: Policy, room: int, overhead: int) -> Policy:
    """Return the policy for messages beside `overhead` tokens of system prompt and tools."""
    free = max(room - overhead, room * _LEAST_ROOM // 100)
    share = free * policy.low_water_percent // 100
    mark = min(policy.low_water_tokens, share)
    # A token is about three characters, so the lists may take a sixth and two thirds of the mark.
    listed = max(_LEAST_LIST, mark // 2)
    summary = max(_LEAST_SUMMARY, mark * _SUMMARY // 100)
    longest = max(2 * policy.tool_result_retention_chars, free * _RESULT // 100)
    return replace(
        policy,
        low_water_tokens=mark,
        minimum_gain_tokens=min(policy.minimum_gain_tokens, share),
        recall_list_chars=min(policy.recall_list_chars, listed),
        action_list_chars=min(policy.action_list_chars, max(_LEAST_RECORD, mark // 10)),
        name_list_chars=min(policy.name_list_chars, 2 * mark),
        summary_max_tokens=min(policy.summary_max_tokens, summary),
        max_tool_result_chars=min(policy.max_tool_result_chars, longest),
    )
