"""Where a summary goes on from the last request, which is in the prompt cache, and where not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from conversations.context.policy.policy import build_policy
from conversations.context.steps.next_call import forecast_call
from conversations.context.steps.protocol import SummaryWanted
from conversations.context.steps.summary_call import (
    INSTRUCTION,
    THOUGHT,
    WRITTEN,
    LastRequest,
    SummaryOffer,
)
from conversations.context.view import wire
from conversations.context.view.cost_decision import Rates
from conversations.context.view.view import View
from tests.context.independent import violations
from tests.context.samples import (
    Shell,
    answer,
    keeping,
    prompt,
    result,
    results,
    round_of,
    situation,
    use,
    view_of,
    writing,
)
from tests.context.test_adaptive import HAIKU, PAGE, SONNET
from tests.context.test_defects import grown

POLICY = build_policy("adaptive", {"keep_below_tokens": 20_000})
#: Known of a conversation whose last request is in the cache.
WARM = {"rates": SONNET, "bound_to": "e", "cache_age": 10, "calls": 500, "window": 200_000}


def chat(rounds: int = 120) -> View:
    """Make a conversation of many pages; its last round came after the last request."""
    made = [m for n in range(rounds) for m in round_of(f"t{n}", PAGE[:2_000], url=f"u{n}")]
    return view_of(prompt("Read them all."), *made)


def run(view: View, shell: Shell | None = None, policy: Any = POLICY, **more: Any) -> Shell:
    shell = shell or Shell(writes=keeping)
    shell.prepare(view, situation(view, view.tokens, **(WARM | more)), policy)
    return shell


def sent(view: View | None) -> list[dict[str, Any]]:
    assert view is not None
    found: list[dict[str, Any]] = wire.decode(view.body)
    return found


def test_it_goes_on_from_the_last_request_and_is_priced_by_the_cache() -> None:
    view = chat()
    shell = run(view)
    [wanted] = shell.wanted
    messages = sent(wanted.continued)
    # All but the last answer and its results was sent before.
    assert messages[:-1] == wire.decode(view.body)[:-2]
    assert violations(wanted.continued.body if wanted.continued else "") == []
    order = messages[-1]["content"][0]["text"]
    assert order.startswith("Now compress the older part of the conversation above")
    gone = next(one for one in shell.applied if one.kind == "summary")
    left = gone.view_after.length
    assert f"its {left - 3} newest ones, which stay" in order
    assert all(f"- {name}" in order for name in wanted.keep)
    assert view.tokens * 9 // 10 < wanted.cached < view.tokens
    assert gone.decision is not None
    cost = SONNET.price_tokens(read=wanted.cached, written=INSTRUCTION, output=WRITTEN + THOUGHT)
    rest = (view.tokens - gone.decision.saved_tokens) * 24 // 10
    assert abs(gone.decision.cost - cost - rest) < 200


def test_the_forecast_says_what_the_cache_returns_for_it() -> None:
    view = chat()
    warm = forecast_call(view, situation(view, view.tokens, **WARM), POLICY)
    assert (warm.action, warm.summary_input) == ("summarise", 0)
    assert warm.summary_cached == run(view).wanted[0].cached
    cold = forecast_call(view, situation(view, view.tokens, **(WARM | {"cache_age": 300})), POLICY)
    assert (cold.action, cold.summary_cached) == ("summarise", 0)
    assert cold.summary_input > 10_000


_DEAR = replace(SONNET, cache_read=2_000_000)


@pytest.mark.parametrize(
    "known",
    [
        {"cache_age": 300},
        {"cache_age": None},
        {"bound_to": "another"},
        {"summary_rates": HAIKU},
        {"rates": _DEAR},
        {"rates": replace(SONNET, cliff=75_000)},
        {"window": 78_000},
    ],
)
def test_it_has_a_prompt_of_its_own_where_that_is_cheaper_or_nothing_is_cached(
    known: dict[str, Any],
) -> None:
    view = chat()
    assert 70_000 < view.tokens < 75_000
    wanted = run(view, **known).wanted
    assert wanted
    assert {one.continued for one in wanted} == {None}


def test_what_is_not_kept_for_the_hour_is_priced_as_written() -> None:
    view = chat()
    known = {"cache_age": 900, "cache_lifetime": 3_600}
    [all_kept] = run(view, **known, hour_tokens=view.tokens).wanted
    [most_kept] = run(view, **known, hour_tokens=view.tokens - 4_000).wanted
    [few_kept] = run(view, **known, hour_tokens=5_000).wanted
    assert all_kept.cached > most_kept.cached > view.tokens - 5_000
    assert few_kept.continued is None


def test_a_changed_view_has_nothing_to_go_on_from() -> None:
    view = chat()
    known = situation(view, view.tokens, **WARM)
    assert known.report is not None
    shell = Shell(writes=keeping)
    shell.prepare(view, replace(known, report=replace(known.report, edits=1)), POLICY)
    assert shell.wanted[0].continued is None
    # After an overflow the last request itself was too long.
    shell = Shell(writes=keeping)
    shell.prepare(view, known, POLICY, harder=1)
    assert shell.wanted[0].continued is None


def test_an_open_call_of_the_apis_own_tools_is_not_run_for_a_summary() -> None:
    search = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
    view = chat()
    for open_call, is_continued in ((), True), ((search,), False):
        asked = answer(*open_call, use("last"))
        more = grown(view, asked, results(result("last")))
        shell = run(grown(more, answer("x", use("z")), results(result("z"))))
        assert (shell.wanted[0].continued is not None) == is_continued


def test_an_open_call_at_the_end_of_the_last_request_leaves_it_its_own_prompt() -> None:
    search = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
    wanted = SummaryWanted("s", "t", 1_000, behind=2)
    for open_call, is_continued in ((), True), ((search,), False):
        view = grown(chat(), answer(*open_call, use("last")), results(result("last")))
        offer = SummaryOffer(SONNET, None, LastRequest(view.length, view.tokens))
        assert (offer.continue_view(view, wanted, 500_000) is not None) == is_continued


def test_a_summary_of_what_was_never_sent_has_a_prompt_of_its_own() -> None:
    view = chat()
    offer = SummaryOffer(SONNET, None, LastRequest(view.length - 2, view.tokens))
    wanted = SummaryWanted("s", "t", 1_000, behind=1)
    assert offer.continue_view(view, wanted, 50_000) is None
    found = offer.continue_view(view, replace(wanted, behind=2), 50_000)
    assert found is not None
    assert (
        "its first message and this one. Your text"
        in sent(found.continued)[-1]["content"][0]["text"]
    )


@pytest.mark.parametrize("preset", ["rebuild", "staged", "classic"])
def test_a_literal_preset_keeps_its_own_prompt(preset: str) -> None:
    small = {"compaction_threshold_tokens": 10_000, "input_token_budget": 0}
    wanted = run(chat(), policy=build_policy(preset, small)).wanted
    assert wanted
    assert wanted[0].continued is None


def test_a_failed_or_rejected_one_is_requested_on_a_prompt_of_its_own() -> None:
    for first in (None, ""):
        shell = run(chat(), Shell(writes=writing(first, "They read pages.")))
        assert [one.continued is None for one in shell.wanted][:2] == [False, True]
        assert "<transcript>" in shell.wanted[1].text
    rejected = run(chat(), Shell(writes=writing("")))
    assert rejected.kinds == ["summary rejected"]
    assert len(rejected.wanted) == 2


def test_what_frees_little_does_not_pay_just_because_the_cache_is_cold() -> None:
    rates = Rates(2_000_000, 10_000_000, 25_000_000, 100_000)
    numbers = {"compaction_threshold_tokens": 4_000, "summary_max_tokens": 256}
    for preset in ("rebuild", "staged", "classic"):
        policy = build_policy(preset, numbers | {"input_token_budget": 0})
        for rounds, is_asked in ((8, False), (30, True)):
            cold = {"rates": rates, "cache_age": 3_600, "calls": 1}
            assert bool(run(chat(rounds), policy=policy, **cold).wanted) == is_asked
