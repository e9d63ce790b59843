"""Section 13: corrections of the sections before it; it takes precedence."""

from __future__ import annotations

from tests.emulator.sheet.statement import leaves_out, says

_FACT = "test_a_documented_fact_is_what_the_emulator_does"
_KNOWN = "test_what_is_known_to_be_refused_is_refused_in_the_same_words"
_RECORDED = "test_what_the_api_accepted_and_refused_is_accepted_and_refused_alike"
_APP = "how the application calls a model; tests/claude and tests/web hold it"

STATEMENTS = (
    says(13, "Found by playing 1,189 recorded exchanges", _RECORDED),
    says(
        13,
        "Opus 5, Sonnet 5, Sonnet 5.5 and Haiku 5.5 think when `thinking` is not given",
        _FACT,
        "test_some_models_think_when_nothing_is_said_of_it",
    ),
    says(13, "Opus 4.8, 4.7, Sonnet 4.6 do not", _FACT),
    says(13, "Opus 5.5 and Fable always may", _FACT),
    leaves_out(13, "every call has to say what it wants", _APP),
    says(13, "Sonnet 5.5: `disabled` is 400", "13 thinking off", _FACT),
    says(13, "`between_tools` is taken (not at xhigh)", "13 thinking between tools", _FACT),
    says(13, "Haiku 5.5: `disabled` taken, not at max", "13 thinking off at a high effort", _FACT),
    says(13, "Opus 5: `disabled` not at xhigh", "13 thinking off at a high effort", _FACT),
    says(
        13,
        "Adaptive thinking may give no thinking block at all",
        "test_some_models_think_when_nothing_is_said_of_it",
    ),
    says(13, "4.6 models have no xhigh", "13 effort xhigh", _FACT),
    says(13, "Opus 4.5 has high, low, medium", "13 effort max", _FACT),
    says(13, "This model does not support the effort parameter.", "13 no effort", _FACT),
    says(13, "Opus 5.5's only thinking control is effort", "13 thinking off", "13 a budget"),
    says(13, "The final block in an assistant message", "13 thinking at the end"),
    says(13, "When thinking is disabled, an", "13 thinking switched off before the end"),
    says(
        13,
        "text put into an omitted thinking block is ignored",
        "test_text_in_an_omitted_block_is_not_read",
    ),
    says(13, "Who reads Opus 5.5's thinking", _FACT),
    says(
        13,
        "Opus 5's is read by Opus 5.5; Fable 5.1's is not",
        "test_newer_models_read_older_thinking_and_drop_what_they_may_not_read",
    ),
    says(13, "Smallest cached prompt", _FACT),
    says(13, "`claude-mythos-5-2` exists", _FACT),
    says(13, "Sonnet 4.5 retires 2026-11-30", _FACT),
    says(
        13,
        "`pause_turn`: the next answer *begins* with the result",
        "test_a_paused_turn_goes_on_with_the_result_of_its_open_call",
        "13 a result at the beginning of the next answer",
    ),
    says(
        13,
        "`server_tool_use` without a result beside a `tool_use`",
        "13 a search that waits beside a tool",
        "test_a_search_waits_beside_a_call_of_the_client",
    ),
    says(
        13,
        "**sum over its rounds**",
        "test_each_search_is_a_round_that_reads_all_before_it",
        "test_the_summed_usage_is_not_the_size_of_the_context",
    ),
    says(
        13,
        "text blocks of whitespace alone",
        "test_cited_texts_are_kept_apart_by_whitespace",
        "13 whitespace by the assistant",
    ),
    says(
        13,
        "before thinking",
        "test_an_answer_may_begin_with_whitespace_before_it_thinks",
    ),
    says(13, "a first message by the assistant", "13 an assistant first"),
    says(13, "whitespace text in assistant messages", "13 whitespace by the assistant"),
    says(13, "one tool id in two different turns", "13 one id in two turns"),
    says(13, "two system messages in a row at the end", "13 two system messages at the end"),
    says(
        13,
        "stand whole in `message_start`",
        "test_a_message_may_stand_whole_in_its_start",
    ),
    says(
        13,
        "does not support oneOf, allOf, or anyOf at the top level",
        "13 oneOf at the top level",
        "13 allOf at the top level",
        "13 anyOf at the top level",
    ),
    says(13, "Property keys should match pattern", "13 the key of a property"),
    says(13, "A strict tool needs", "13 a strict tool with an open object inside"),
    says(
        13,
        "Structured output schemas (`output_config.format.schema: ` before each)",
        "13 a format with a choice of one",
        "13 a format with not",
        "13 a format with a tuple",
        "13 a format with a list of items",
        "13 a format with contains",
        "13 a format with if",
        "13 a format with dependentRequired",
        "13 a format with unevaluatedProperties",
        "13 a format with a least number",
        "13 a format with a longest list",
        "13 a format with an empty schema",
        "13 a format with an open object",
        "13 a format with a type beside a choice",
        "13 a format with a circle",
    ),
    says(13, "Forced tools on Fable 5.1/5.2", "13 a forced tool", _FACT),
    says(13, "(count_tokens too)", "test_a_count_is_judged_like_its_message"),
    says(13, "Tool types a model lacks", "13 a tool type it lacks", _FACT),
    says(
        13,
        "temperature, top_p, top_k are 400 on every model",
        "13 temperature",
        "13 top_p",
        "13 top_k",
    ),
    says(
        13,
        "documents in assistant messages and citations on a user's text are 400",
        "13 a document by the assistant",
        "13 citations by the user",
    ),
    says(13, "all content must be text (no image)", "13 an error with an image"),
    says(
        13,
        "Citations on some documents only, or with structured output",
        "13 citations on some documents",
        "13 citations and a format",
    ),
    says(13, "`inference_geo` on models before 4.6", "13 a place", _FACT),
    says(13, "an MCP server that no toolset names", "13 a server that no toolset names"),
    says(
        13, "`mcp_tool_result` may lack content", "13 a result of a server without content", _KNOWN
    ),
    says(
        13,
        "`usage.inference_geo`, `speed`, `service_tier` change the price",
        "test_the_answer_says_what_it_was_priced_by",
    ),
    leaves_out(13, "**Wanted by people", "what the application may use"),
)
