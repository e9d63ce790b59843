"""Sections 5 and 6: tools, messages and thinking."""

from __future__ import annotations

from tests.emulator.sheet.statement import says

_FAMILY = "test_a_model_family_refuses_what_it_does_not_take"
_BROKEN = "test_a_broken_rule_is_refused_with_its_text"

STATEMENTS = (
    says(5, "All 400s:", _BROKEN),
    says(
        5,
        "Every tool_use answered in the *next* message, results first",
        "5 result missing",
        "5 result missing at the end",
        "5 one of two results missing",
        "5 results come first",
    ),
    says(
        5,
        "unexpected `tool_use_id` found in `tool_result` blocks",
        "5 result without use",
        "5 result a message late",
        "5 result of another id",
    ),
    says(
        5, "`tool_use` ids must be unique", "5 ids unique in a message", "5 ids unique in a request"
    ),
    says(5, "each tool_use must have a single result", "5 single result"),
    says(5, "Ids match", "5 tool id pattern", "5 an id of any letters"),
    says(5, "tool names `^", "5 tool name pattern", "5 tool name length"),
    says(5, "`input` an object", "5 tool input an object", "5 an empty input"),
    says(5, '`input_schema.type` "object"', "5 schema type", "5 schema type missing"),
    says(5, "Empty-string tool_result content is accepted", "5 an empty result"),
    says(5, "content may be absent", "5 a result without content"),
    says(
        5,
        "allowed nested: text, image, document, search_result",
        "5 nested blocks",
        "5 nested result block",
    ),
    says(5, "`is_error`", "5 a failed result"),
    says(
        5,
        "was found without a corresponding `web_search_tool_result` block",
        "5 server tool without result",
        "5 tool search without result",
        "test_a_wrong_tool_of_the_api_is_refused_with_its_text",
        "test_the_fields_of_every_tool_are_those_the_sdk_knows",
    ),
    says(
        5,
        "All tools have defer_loading: true",
        "5 all tools deferred",
        "5 all tools deferred, the API's own too",
        "5 a search besides deferred tools",
    ),
    says(5, "Consecutive same-role messages are merged", "5 one role twice in a row"),
    says(
        5,
        "First message must be user",
        "13 an assistant first",
        "test_the_kept_tail_stays_valid_with_its_thinking",
    ),
    says(
        5,
        '`role:"system"` in messages (Opus 4.8+, Fable 5+, not Sonnet 5)',
        "5 system message",
        "5 system message elsewhere",
        "test_a_system_message_may_stand_behind_the_user",
    ),
    says(5, "not first;", "5 system message first"),
    says(
        5,
        "must follow a user turn (tool_result turns count)",
        "5 system message after words",
        "test_a_system_message_may_follow_a_server_tool_result",
    ),
    says(5, "last or followed by assistant", "5 system message before the user"),
    says(5, "does not support assistant message prefill", "5 prefill"),
    says(5, "`messages: at least one message is required`", "5 no message"),
    says(5, "must have non-empty content except for", "5 empty string", "5 empty list"),
    says(5, "text content blocks must be non-empty", "5 empty text", "5 empty system text"),
    says(
        5,
        "text content blocks must contain non-whitespace text",
        "5 blank text",
        "5 blank system text",
    ),
    says(5, "Extra inputs are not permitted", "5 unknown field", "8 dumped nulls"),
    says(5, "is deprecated for this model", "5 temperature", "5 top_p", "5 top_k", "5 sampling"),
    says(
        5,
        "tool_choice any/tool → 400 on Fable 5.1/5.2, Opus 5.5, Sonnet 5.5",
        "5 forced tool",
        _FAMILY,
    ),
    says(5, "which is the maximum allowed number of output tokens", "5 max_tokens"),
    says(
        5,
        "`max_tokens:0` = pre-warm",
        "5 pre-warming",
        "5 pre-warm with stream",
        "5 pre-warm with thinking",
        "5 pre-warm with a format",
        "5 pre-warm with a forced tool",
        "test_pre_warming_writes_without_answering",
    ),
    says(
        5,
        "Over the window: `prompt is too long",
        "test_a_prompt_beyond_the_window_is_refused_with_its_figures",
    ),
    says(
        5,
        "4.5+ accept and may stop with `model_context_window_exceeded`",
        "test_a_full_window_stops_the_answer",
    ),
    says(6, '"thinking.type.enabled" is not supported', "6 enabled is gone"),
    says(6, "adaptive thinking is not supported on this model", "6 adaptive is not yet"),
    says(6, '"thinking.type.disabled" is not supported', "6 always thinking"),
    says(
        6,
        "blocks in the latest assistant message cannot be modified",
        "test_edited_thinking_is_refused_by_where_it_stands",
    ),
    says(6, "Invalid `signature` in `thinking` block``", "6 forged signature"),
    says(6, "each thinking block must contain thinking", "6 thinking without text"),
    says(
        6,
        "a final `assistant` message must start with a thinking block",
        "6 thinking starts a tool turn",
        "6 thinking starts a final assistant turn",
    ),
    says(
        6,
        "Default retention",
        "test_older_models_read_only_the_thinking_of_the_running_turn",
    ),
    says(
        6,
        "removing from the front is fine, a middle removal breaks all later ones",
        "test_a_changed_prefix_breaks_the_thinking_behind_it",
        "test_what_changes_no_meaning_before_it_leaves_thinking_valid",
    ),
    says(
        6,
        "Valid: append, cache_control",
        "test_what_changes_no_meaning_before_it_leaves_thinking_valid",
        "test_clearing_on_the_server_leaves_signatures_valid",
    ),
    says(
        6,
        "Invalid: edit/reorder/delete/insert earlier",
        "test_a_changed_prefix_breaks_the_thinking_behind_it",
    ),
    says(
        6,
        "The `system` prompt differs from the one",
        "test_a_changed_prefix_breaks_the_thinking_behind_it",
    ),
    says(
        6,
        '"error" is the default for accounts created from 2026-08-31',
        "test_an_account_from_before_the_rule_drops_without_being_asked",
        "test_the_newest_model_is_strict_with_every_account",
    ),
    says(
        6,
        'input_transformations:[{type:"thinking_dropped"',
        "test_drop_block_takes_the_broken_thinking_out_and_says_so",
    ),
    says(
        6,
        "thinking is also account-bound",
        "test_thinking_of_an_account_bound_model_stays_in_its_organization",
    ),
    says(
        6,
        "newer reads older",
        "test_newer_models_read_older_thinking_and_drop_what_they_may_not_read",
    ),
    says(
        6,
        "Recovery: retry once with drop_block",
        "test_drop_block_takes_the_broken_thinking_out_and_says_so",
    ),
)
