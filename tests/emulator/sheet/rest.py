"""Sections 9 to 11: errors, what an emulator must do, the SDK."""

from __future__ import annotations

from tests.emulator.sheet.statement import leaves_out, says

STATEMENTS = (
    *(
        says(9, words, "test_a_refusal_has_its_status_and_type")
        for words in ("| 400 |", "| 401/402/403/404 |", "| 409 |", "| 500/504 |", "| 529 |")
    ),
    says(9, "| 413 |", "test_a_fault_that_is_too_large_has_no_json"),
    says(
        9,
        "| 429 |",
        "test_too_much_input_is_refused_until_the_bucket_is_full_again",
        "test_a_429_says_when_to_retry_or_that_there_is_no_use",
    ),
    says(9, "SDK: 2 retries", "test_the_retries_of_the_sdk_get_through"),
    says(10, "(1) validation order", "test_what_is_wrong_first_is_told_first"),
    says(10, "deterministic seed", "test_a_second_run_with_the_same_seed_gives_the_same_bytes"),
    says(10, "recording of request bytes", "test_requests_are_recorded_byte_for_byte"),
    says(
        10,
        "random chunking",
        "test_a_second_run_with_the_same_seed_gives_the_same_bytes",
        "test_deltas_are_of_uneven_size",
    ),
    says(10, "slow first byte", "test_a_response_that_has_not_begun_can_not_be_read"),
    says(10, "exact bill per request", "test_the_bill_is_in_the_header_and_in_the_books"),
    says(
        10,
        "**Do not over-reject**",
        "test_what_the_sheet_accepts_is_accepted",
        "test_every_recorded_conversation_is_accepted_on_every_model",
        "test_an_unknown_beta_is_ignored",
    ),
    leaves_out(10, "Caution: one widely copied", "a note about a measurement"),
    says(
        11,
        "anthropic-version: 2026-10-21",
        "test_both_versions_of_the_api_are_served",
        "test_the_streaming_helper",
    ),
    says(11, "puts exactly our bytes on the wire", "test_our_own_bytes_are_what_arrives"),
    says(11, "Total input tokens =", "test_every_split_sums_to_the_count"),
    says(11, "`ModelInfo` has", "test_the_models"),
    says(
        11,
        "Request `diagnostics:",
        "test_what_changed_first_is_the_reason",
        "test_other_parameters_are_no_text_and_unavailable",
        "test_an_answer_of_elsewhere_is_not_found",
    ),
    says(
        11,
        "Top-level `cache_control` marks the last cacheable block",
        "test_the_automatic_mark_moves_with_the_conversation",
    ),
    says(11, "`APIStatusError` has", "test_a_status_is_the_error_of_the_sdk"),
    says(
        11,
        "ends cleanly before `message_stop`",
        "test_a_clean_early_end_looks_like_an_answer_without_a_stop_reason",
    ),
    says(
        11,
        "A cut or reset mid-stream",
        "test_a_broken_stream_breaks_the_sdk_as_measured",
    ),
    says(11, "`max_tokens` inside a tool input", "test_a_cut_tool_input_is_not_json_on_the_wire"),
    says(11, "Bad tool JSON `ValueError`", "test_a_broken_stream_breaks_the_sdk_as_measured"),
    says(
        11,
        "A stream of pings never ends",
        "test_no_first_event_is_a_timeout_whatever_else_comes",
    ),
    says(11, "follows a 307", "test_a_redirect_names_another_host"),
    says(
        11,
        "NUL and lone surrogates come through",
        "test_control_characters_and_lone_surrogates_arrive_escaped",
    ),
)
