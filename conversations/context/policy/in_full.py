"""The policy for a context that a person wants sent in full."""

from __future__ import annotations

from dataclasses import replace

from conversations.context.policy.policy import BOUNDS, Policy, change_numbers


def build_full_policy(policy: Policy) -> Policy:
    """Return the policy with which a context is sent in full.

    Only what the window has no room for is reduced, by the policy's steps.
    """
    return change_numbers(
        replace(policy, is_in_full=True),
        input_token_budget=0,
        max_tool_result_chars=0,
        compaction_threshold_tokens=BOUNDS["compaction_threshold_tokens"][1],
        max_conversation_bytes=0,
        max_conversation_messages=0,
        max_conversation_tokens=0,
        round_summary_every=0,
        server_side=False,
    )
