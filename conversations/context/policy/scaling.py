"""The numbers of a policy that reduces in one go, in proportion to what the messages may fill.

Lengths that suit a large window fill a small one: a list of what can be recalled, the words of a
summary or one long result would each take most of it, and every reduction would free too little to
be worth its break of the prompt cache. So each has a share of the low-water mark or of the room,
and the policy's own number is the most it may have.
"""

from __future__ import annotations

from dataclasses import replace

from conversations.context.policy.policy import Policy

#: Percent of the low-water mark that a summary may write.
_WORDS = 25
#: Characters for each token of room that one result may have: a quarter of the room, about.
_RESULT = 75
#: The messages' room is at least so much of a request's, whatever system prompt and tools take.
_LEAST_ROOM = 25
_LEAST_WORDS, _LEAST_LIST = 256, 500


def scale_policy(policy: Policy, room: int, overhead: int) -> Policy:
    """Give the policy for messages beside so many tokens of system prompt and tools."""
    free = max(room - overhead, room * _LEAST_ROOM // 100)
    share = free * policy.low_water_percent // 100
    mark = min(policy.low_water_tokens, share)
    # A token is about three characters, so the list has a third of the mark.
    listed = max(_LEAST_LIST, mark)
    words = max(_LEAST_WORDS, mark * _WORDS // 100)
    longest = max(2 * policy.tool_result_retention_chars, free * _RESULT // 100)
    return replace(
        policy,
        low_water_tokens=mark,
        minimum_gain_tokens=min(policy.minimum_gain_tokens, share),
        recall_list_chars=min(policy.recall_list_chars, listed),
        summary_max_tokens=min(policy.summary_max_tokens, words),
        max_tool_result_chars=min(policy.max_tool_result_chars, longest),
    )
