"""The label of each number of a policy; `policy.py` has its sentence."""

from __future__ import annotations

from conversations.context.translation import gettext_noop

NUMBER_LABELS: dict[str, str] = {
    "input_token_budget": gettext_noop("Shorten tool results above"),
    "tool_result_retention_chars": gettext_noop("Characters kept of a tool result"),
    "max_tool_result_chars": gettext_noop("Longest new tool result"),
    "compaction_enabled": gettext_noop("Summaries"),
    "compaction_threshold_tokens": gettext_noop("Summarise above"),
    "protected_tail_messages": gettext_noop("Newest messages kept"),
    "summary_input_chars": gettext_noop("Characters read for a summary"),
    "summary_max_tokens": gettext_noop("Longest summary"),
    "summary_least_tokens": gettext_noop("Least tokens to summarise"),
    "summary_staged": gettext_noop("Summarise in parts"),
    "summary_breaker": gettext_noop("Pause after rejected summaries"),
    "trim_threshold_percent": gettext_noop("Drop by size above"),
    "max_conversation_bytes": gettext_noop("Most bytes"),
    "max_conversation_messages": gettext_noop("Most messages"),
    "max_conversation_tokens": gettext_noop("Most tokens"),
    "round_summary_every": gettext_noop("Tool rounds before a summary"),
    "window_reserve_tokens": gettext_noop("Kept free for the answer"),
    "verbatim_tools": gettext_noop("Tools never shortened"),
    "tool_policies": gettext_noop("Rules by tool"),
    "verbatim_max_chars": gettext_noop("Longest result never shortened"),
    "structure_kept": gettext_noop("Keep structure"),
    "recall_list_chars": gettext_noop("Characters for the recall list"),
    "action_list_chars": gettext_noop("Characters for the record of what was done"),
    "name_list_chars": gettext_noop("Characters for the name list"),
    "keep_below_tokens": gettext_noop("Remove nothing below"),
    "keep_below_percent": gettext_noop("Remove nothing below, of the window"),
    "compact_above_percent": gettext_noop("Reduce in one go above"),
    "low_water_percent": gettext_noop("Reduce down to, of the room"),
    "low_water_tokens": gettext_noop("Reduce down to"),
    "minimum_gain_tokens": gettext_noop("Least tokens to free"),
    "server_side": gettext_noop("Let the API reduce"),
    "clear_keep_results": gettext_noop("Results the API keeps"),
}
