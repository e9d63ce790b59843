"""What people expect of the chat, and the tests in a real browser that show it.

A behaviour without a test, or a test that was renamed away, is found here.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

BROWSER = Path(__file__).parent / "e2e"

#: By behaviour: the module of tests/e2e, without `test_`, and the test, without it too.
BEHAVIOURS: dict[str, tuple[str, str]] = {
    # The chat.
    "a first run ends in an answer": ("chat", "a_first_run_ends_in_an_answered_message"),
    "an answer is shown as it is written": ("realtime", "two_tabs_end_with_what_is_stored"),
    "code is streamed as one block with its language and a button": (
        "streaming",
        "a_long_block_grows_as_one_and_stays_as_it_is",
    ),
    "a long table is streamed as one": (
        "streaming",
        "a_long_block_grows_as_one_and_stays_as_it_is",
    ),
    "bare web and mail addresses are links while they are streamed": (
        "streaming",
        "a_long_block_grows_as_one_and_stays_as_it_is",
    ),
    "nothing jumps at the end of an answer": (
        "streaming",
        "a_long_block_grows_as_one_and_stays_as_it_is",
    ),
    "a selection in an answer outlasts its end": (
        "streaming",
        "a_long_block_grows_as_one_and_stays_as_it_is",
    ),
    "a stop works before the first word and after a reload": (
        "realtime",
        "a_stop_before_the_first_token_and_one_after_a_reload",
    ),
    "what was shown of a stopped answer is kept": (
        "chat",
        "a_stopped_answer_is_kept_and_the_chat_goes_on",
    ),
    "another answer is a version beside the first": (
        "branches",
        "versions_are_made_and_chosen_by_keys_and_every_tab_follows",
    ),
    "a message is edited and sent again": (
        "branches",
        "versions_are_made_and_chosen_by_keys_and_every_tab_follows",
    ),
    "an earlier message is edited while an answer is streamed": (
        "ways_on",
        "other_words_for_an_earlier_message_stop_the_answer_and_go",
    ),
    "an open editor does not move with the stream": (
        "ways_on",
        "other_words_for_an_earlier_message_stop_the_answer_and_go",
    ),
    "versions are chosen by the keyboard": (
        "branches",
        "versions_are_made_and_chosen_by_keys_and_every_tab_follows",
    ),
    "a chat is forked": ("everyday", "a_cut_answer_goes_on_and_a_fork_says_that_it_is_one"),
    "a cut answer can be continued": (
        "everyday",
        "a_cut_answer_goes_on_and_a_fork_says_that_it_is_one",
    ),
    "thinking is folded and can be read": (
        "everyday",
        "a_cut_answer_goes_on_and_a_fork_says_that_it_is_one",
    ),
    "an empty answer says so": (
        "ways_on",
        "an_empty_answer_says_so_and_can_be_asked_for_again",
    ),
    "a failed answer keeps its text and can be tried again": (
        "faults",
        "a_cut_answer_keeps_its_text_and_can_be_tried_again",
    ),
    "an ending says what it means": (
        "states",
        "waiting_can_be_cancelled_and_endings_say_what_they_mean",
    ),
    "messages under a running answer wait their turn": (
        "branches",
        "messages_under_an_answer_wait_in_both_tabs_and_go_when_they_should",
    ),
    "answers and code are copied": ("reading", "an_answer_is_read_and_copied"),
    "formulas, tables, code and other scripts are drawn": (
        "reading",
        "an_answer_is_read_and_copied",
    ),
    "files come by button, drop and paste": (
        "attachments",
        "files_come_in_by_every_way_and_are_sent_and_stay",
    ),
    "a long paste becomes a file": (
        "attachments",
        "a_long_paste_becomes_a_file_and_can_be_text_again",
    ),
    "what the model gets of a document is shown": (
        "attachments",
        "what_the_model_reads_of_a_document_is_shown_before_and_after_it_is_sent",
    ),
    "a wrong or large file is refused before it is uploaded": (
        "attachments",
        "what_cannot_be_taken_is_said_before_it_is_uploaded",
    ),
    "tool calls show input, result and time": (
        "chat",
        "tools_show_their_input_their_result_and_their_time",
    ),
    "a failed tool call is red and says why": (
        "faults",
        "a_tool_call_that_cannot_run_is_red_and_says_why",
    ),
    "a long tool says how far it is": (
        "tools",
        "a_long_tool_says_how_far_it_is_and_can_be_switched_off",
    ),
    "a side effect is asked for first": (
        "approvals",
        "an_allowed_letter_is_sent_once_with_what_was_shown",
    ),
    "sources are footnotes": ("web_search", "what_an_answer_cites_of_any_kind_is_a_footnote"),
    "model and effort are chosen in mid-chat": (
        "model_choice",
        "what_is_chosen_is_what_the_next_request_asks_for",
    ),
    "the next message has a price before it is sent": (
        "next_message",
        "each_is_one_click_and_is_shown",
    ),
    "own instructions are kept for a chat": (
        "pins",
        "settings_are_chosen_and_refused_at_their_field",
    ),
    "prompts are kept, with variables": (
        "saved_prompts",
        "a_prompt_is_chosen_by_keyboard_filled_in_and_sent_by_its_person",
    ),
    "a temporary chat is in no list": ("everyday", "a_temporary_chat_is_in_no_list"),
    "a chat that is deleted elsewhere says so at once, and its draft has a way on": (
        "deleted",
        "a_page_says_at_once_that_its_chat_was_deleted_and_its_draft_has_a_way_on",
    ),
    "a table runs as its script does": (
        "reading",
        "a_table_begins_on_the_side_where_its_script_does",
    ),
    "what the composer opens is whole on every screen": (
        "next_message",
        "what_the_composer_opens_is_whole_on_every_screen",
    ),
    "a file that the assistant wrote is opened from its card": (
        "files_page",
        "a_file_the_assistant_wrote_is_opened_from_its_card",
    ),
    "a chat gets its title and its cost": (
        "states",
        "the_model_names_the_chat_and_its_cost_is_told",
    ),
    # The list of chats.
    "chats are renamed, starred, archived, deleted and brought back": (
        "history",
        "a_conversation_is_renamed_starred_archived_deleted_and_brought_back",
    ),
    "chats are kept in folders": (
        "folders",
        "chats_are_filed_by_keyboard_and_the_list_keeps_what_is_open",
    ),
    "a message is found while one types": (
        "history",
        "a_message_is_found_while_one_types_and_opened_in_its_place",
    ),
    "links and search results land in view in long chats": (
        "deep_links",
        "a_link_into_a_chat_of_10_000_entries_leads_to_what_it_names",
    ),
    "a link to another version shows it": (
        "deep_links",
        "a_link_to_what_an_edit_left_behind_leads_there",
    ),
    "everything is exported and imported again": (
        "history",
        "what_is_exported_can_be_imported_again",
    ),
    # Whatever happens to tabs, networks and servers.
    "an answer outlasts its tab": ("chat", "reloads_and_a_second_tab_end_with_the_same_transcript"),
    "fifty reloads lose and double nothing": (
        "realtime",
        "fifty_reloads_in_mid_answer_change_nothing",
    ),
    "a lost network costs nothing": (
        "realtime",
        "a_lost_network_in_mid_answer_and_around_a_send",
    ),
    "a killed server takes nothing along": (
        "connection",
        "a_killed_server_takes_nothing_along_that_it_had_taken",
    ),
    "each lost connection has words and a way on": (
        "connection",
        "every_way_to_lose_a_connection_has_words_and_a_way_on",
    ),
    "a message waits in the browser and goes once": (
        "states",
        "what_cannot_leave_waits_and_goes_once",
    ),
    "a draft outlasts the session": (
        "states",
        "a_session_that_ends_costs_nothing_that_was_written",
    ),
    "a reader who scrolled up is not moved": ("realtime", "a_reader_who_scrolled_up_is_not_moved"),
    "an answer that ends unseen marks its tab": (
        "states",
        "an_answer_that_ends_unseen_marks_its_tab",
    ),
    "a chat is shared by a link, read without a script and taken back": (
        "sharing",
        "a_link_is_made_read_by_a_stranger_and_revoked",
    ),
    # The context and the budget.
    "the gauge has colours from 70 and 90 percent": (
        "ways_on",
        "the_gauge_has_a_colour_from_70_and_from_90_percent",
    ),
    "people reduce the context and take it back": (
        "controls",
        "a_person_reduces_leaves_out_rewords_and_takes_back",
    ),
    "results are restored and pinned": ("pins", "a_result_is_restored_undone_and_pinned"),
    "what the model saw is shown call by call": (
        "inspector",
        "the_inspector_shows_what_the_model_saw_and_what_was_taken",
    ),
    "a used budget says when it comes back": (
        "states",
        "a_budget_that_is_used_up_says_when_it_comes_back",
    ),
    "costs are on the usage page": (
        "usage",
        "what_an_answer_cost_is_on_the_usage_page_and_in_the_overview",
    ),
    # For everybody, on every machine.
    "no mouse is needed": ("reading", "a_chat_needs_no_mouse_and_says_states_not_tokens"),
    "every page passes axe": ("access", "every_page_passes_axe"),
    "the chat fits a phone": ("scenario", "the_chat_fits_a_phone"),
    "the site is installed and has a page without a network": (
        "offline",
        "without_a_server_one_page_of_nobodys_is_shown_until_it_is_back",
    ),
}


@pytest.mark.parametrize("behaviour", BEHAVIOURS)
def test_every_behaviour_has_its_test(behaviour: str) -> None:
    module, test = BEHAVIOURS[behaviour]
    text = (BROWSER / f"test_{module}.py").read_text(encoding="utf-8")
    assert re.search(rf"^async def test_{test}\(", text, re.MULTILINE), f"{module}: {test}"
