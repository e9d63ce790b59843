"""Every known defect of the designs this engine unites, and the tests that it would fail.

A defect without a test, or a test that was renamed away, is found here.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
ENGINE, RUNNER = "context/test_defects.py", "agent/test_defects.py"
STEPS, SUMMARY = "context/test_steps.py", "context/test_summary.py"
SHORTENED, ADAPTIVE = "context/test_shortened.py", "context/test_adaptive.py"

DEFECTS: dict[str, tuple[tuple[str, str], ...]] = {
    "compaction inside a turn while the loop goes on sending the old list": (
        (ENGINE, "test_compaction_inside_a_turn_changes_the_very_list_that_is_sent"),
        (RUNNER, "test_a_turn_that_compacts_sends_the_compacted_list_from_then_on"),
    ),
    "results that are never sent": (
        (ENGINE, "test_every_result_that_was_appended_is_sent"),
        (RUNNER, "test_every_result_of_a_turn_is_sent_whole_in_the_very_next_request"),
    ),
    "a trigger blind to cached tokens": (
        (RUNNER, "test_the_trigger_counts_what_the_cache_holds_and_the_last_call_alone"),
        ("log/test_path.py", "test_the_report_is_that_of_the_last_whole_reply"),
    ),
    "a trigger that sums the calls of a turn": (
        (ENGINE, "test_the_trigger_counts_cached_tokens_and_one_call_only"),
        (RUNNER, "test_the_trigger_counts_what_the_cache_holds_and_the_last_call_alone"),
    ),
    "a stale figure that fires twice": ((ENGINE, "test_a_stale_figure_does_not_fire_twice"),),
    "a zone of exactly one assistant message leaving an orphan tool_result": (
        (ENGINE, "test_a_zone_of_any_size_leaves_no_orphan_in_either_direction"),
        (ENGINE, "test_a_zone_of_one_message_is_left_alone_however_large"),
        (SUMMARY, "test_a_zone_of_fewer_than_two_messages_or_of_few_words_is_left_alone"),
    ),
    "a trim that deletes the first request": (
        (ENGINE, "test_a_trim_keeps_the_first_request_and_every_pair"),
    ),
    "a trim that splits a pair": ((ENGINE, "test_a_trim_keeps_the_first_request_and_every_pair"),),
    "views that start with a tool_result": (
        (ENGINE, "test_a_view_never_starts_with_a_tool_result"),
    ),
    "summaries stacking up": (
        (ENGINE, "test_summaries_do_not_stack_up_and_the_first_message_does_not_grow"),
        (SUMMARY, "test_a_summary_is_distilled_again_together_with_the_new_zone"),
    ),
    "a summary longer than its zone": (
        (ENGINE, "test_a_summary_longer_than_its_zone_is_rejected"),
    ),
    "an empty, cut, refused or error text taken as a summary": (
        (ENGINE, "test_an_empty_cut_refused_or_error_text_is_no_summary"),
        ("agent/test_reductions.py", "test_a_summary_that_fails_never_fails_the_turn"),
    ),
    "a conversation locked by a failed summary": (
        (ENGINE, "test_a_failed_summary_does_not_lock_the_conversation"),
        (RUNNER, "test_a_failed_summary_locks_no_conversation"),
    ),
    "the first message's images lost": (
        (ENGINE, "test_the_first_messages_images_are_not_lost"),
        (SUMMARY, "test_an_edit_of_the_first_message_never_reaches_its_own_blocks"),
    ),
    "list-shaped tool results skipped": (
        (ENGINE, "test_list_shaped_results_are_not_skipped"),
        (ENGINE, "test_a_result_that_is_only_a_picture_becomes_a_stub"),
        (STEPS, "test_a_list_keeps_its_first_texts_and_stubs_for_what_is_no_text"),
    ),
    "the newest real result cut because a later user upload looked like one": (
        (ENGINE, "test_a_later_upload_does_not_make_the_newest_results_old"),
    ),
    "510 characters growing to 536": ((ENGINE, "test_510_characters_do_not_grow_to_536"),),
    "JSON cut mid-object": (
        (ENGINE, "test_json_is_not_cut_in_the_middle_of_an_object"),
        (SHORTENED, "test_json_is_json_with_nothing_in_it_that_was_not_there"),
    ),
    "[first, ... (n items omitted), last] that is not JSON": (
        ("context/test_shorten.py", "test_json_stays_json_at_every_limit"),
        ("context/test_shorten.py", "test_arrays_keep_their_ends_and_objects_their_keys_in_order"),
    ),
    "a fact that lives only in an early tool result summarised away": (
        (ENGINE, "test_criteria_read_from_a_file_stay_in_view_or_can_be_recalled"),
        (SUMMARY, "test_the_latest_prompt_and_verbatim_results_stay_word_for_word"),
    ),
    "transformations that run on every turn and break the prompt cache each time": (
        (ENGINE, "test_the_cached_prefix_is_not_broken_on_every_turn"),
        (RUNNER, "test_the_cached_prefix_is_not_broken_turn_after_turn"),
        (ADAPTIVE, "test_thirty_growing_turns_break_the_prefix_at_most_three_times"),
    ),
    "limits fixed at 200,000 while models have 1,000,000": (
        (RUNNER, "test_a_window_of_a_million_is_used_and_a_smaller_one_is_checked_again"),
        (ENGINE, "test_a_window_of_a_million_is_not_cut_down_to_less"),
    ),
    "a model switch to a smaller window not re-checked": (
        (ENGINE, "test_a_switch_to_a_smaller_window_is_checked_again"),
        (RUNNER, "test_a_window_of_a_million_is_used_and_a_smaller_one_is_checked_again"),
    ),
    "short conversations touched at all": (
        (ENGINE, "test_short_conversations_are_sent_byte_for_byte"),
    ),
}


@pytest.mark.parametrize("defect", DEFECTS)
def test_every_defect_has_its_tests(defect: str) -> None:
    assert DEFECTS[defect]
    for file, test in DEFECTS[defect]:
        text = (TESTS / file).read_text(encoding="utf-8")
        assert re.search(rf"^(?:async )?def {test}\(", text, re.MULTILINE), f"{file}: {test}"


def test_every_test_of_a_defect_is_listed() -> None:
    listed = {found for tests in DEFECTS.values() for found in tests}
    for file in (ENGINE, RUNNER):
        text = (TESTS / file).read_text(encoding="utf-8")
        named = re.findall(r"^(?:async )?def (test_\w+)\(", text, re.MULTILINE)
        assert {(file, name) for name in named} - listed <= EXTRA


#: Laws beside the list: what the same designs would also have got wrong.
EXTRA = {
    (ENGINE, "test_a_printed_marker_does_not_stop_compaction_and_adds_none"),
    (ENGINE, "test_three_fresh_results_of_a_megabyte_are_caught_before_sending"),
}
