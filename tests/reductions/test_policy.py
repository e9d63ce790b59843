"""The policy that counts: tools declare; site, person and conversation have the last word."""

from __future__ import annotations

from typing import Any

import pytest

from conversations.context.pipeline import Situation, prepare
from conversations.context.policy.policy import Policy, PolicyError, dump_policy
from conversations.context.view import wire
from conversations.context.view.view import Message, View
from conversations.models import ApiModel, Conversation, User
from conversations.reductions.conversation_settings import read_job_facts
from conversations.reductions.policy import (
    inherited_policy,
    list_numbers,
    list_tool_rules,
    policy_of,
)
from conversations.runtime.job import build_job
from tests.support import people_and_turns
from tools.framework.registry import TOOLS

pytestmark = pytest.mark.django_db
CRITERIA = "The rubric: remote first, 30 days, reference 4711-ÄÖ.\n" * 20
FILLER = "An offer that nobody needs any more.\n" * 400


def rules(policy: Policy) -> dict[str, str]:
    return dict(rule.split("=", 1) for rule in policy.tool_policies)


def policy_for(**fields: Any) -> Policy:
    turn = people_and_turns.queued(people_and_turns.person(**fields))
    return build_job(read_job_facts(turn.conversation_id)).policy


def test_each_tool_has_the_rule_that_it_declares() -> None:
    declared = {tool.name: tool.results for tool in TOOLS.values()}
    assert rules(policy_for()) == declared
    assert dict(rule.split("=") for rule in list_tool_rules()) == declared
    assert (declared["read_file"], declared["fetch_url"]) == ("verbatim", "json")


def test_each_tool_says_what_its_calls_did() -> None:
    rows = dict(row.split("=", 1) for row in policy_of().actions)
    assert rows["send_mail"] == "sent mail to {to}: {subject}"
    assert rows["web_search"] == rows["read_file"] == rows["recall"] == ""
    changing = {tool.name for tool in TOOLS.values() if tool.effect != "read"}
    assert all(rows[name] for name in changing)


def test_rules_of_site_person_and_conversation_replace_those_of_the_tools_one_by_one(
    settings: Any,
) -> None:
    settings.AGENTWEB_TOOL_POLICIES = ("read_file=keep", "list_files=json")
    user = people_and_turns.person(
        policy={"tool_policies": {"list_files": "cap 900", "other": "keep"}}
    )
    turn = people_and_turns.queued(user)
    Conversation.objects.update(policy={"tool_policies": ["other=verbatim"]})
    found = rules(build_job(read_job_facts(turn.conversation_id)).policy)
    assert found["read_file"] == "keep"
    assert found["list_files"] == "cap 900"
    assert found["other"] == "verbatim"
    assert found["fetch_url"] == "json"


def test_the_last_preset_named_is_where_the_numbers_start(settings: Any) -> None:
    settings.AGENTWEB_POLICY = "classic"
    settings.AGENTWEB_TOOL_RESULT_RETENTION_CHARS = 700
    assert policy_of().name == "classic"
    policy = policy_of({"preset": "rebuild"}, {"preset": "tool-budget", "summary_breaker": 7})
    assert (policy.name, policy.summary_breaker) == ("tool-budget", 7)
    assert policy.tool_result_retention_chars == 700
    assert policy_of({"preset": "rebuild"}, {}, preset="off").name == "off"
    assert policy_for(policy={"preset": "rebuild"}).name == "rebuild"


@pytest.mark.parametrize(
    ("overrides", "field"),
    [
        ({"preset": "nonsense"}, "preset"), ({"preset": ["classic"]}, "preset"),
        ({"tool_policies": ["x"]}, "tool_policies"), ({"nonsense": 1}, "nonsense"),
        (["no object"], "policy"), ({"input_token_budget": "1"}, "input_token_budget"),
    ],
)  # fmt: skip
def test_what_is_no_policy_is_refused_by_its_field(overrides: Any, field: str) -> None:
    with pytest.raises(PolicyError) as caught:
        policy_of(overrides)
    assert caught.value.field == field


def test_numbers_say_where_they_come_from(settings: Any) -> None:
    settings.AGENTWEB_SUMMARY_BREAKER = 4
    user = User(policy={"preset": "classic", "input_token_budget": 50_000})
    found = {number.name: number.source for number in list_numbers(user)}
    assert found["input_token_budget"] == "this user"
    assert found["summary_breaker"] == "the site, AGENTWEB_SUMMARY_BREAKER"
    assert found["tool_policies"] == "the tools"
    assert found["compaction_enabled"] == "All steps in order"


def test_what_a_conversation_inherits_is_without_its_own_numbers() -> None:
    conversation = people_and_turns.queued(
        people_and_turns.person(policy={"summary_breaker": 9})
    ).conversation
    conversation.policy = {"preset": "classic", "summary_breaker": 2}
    assert (
        inherited_policy(conversation).name,
        inherited_policy(conversation).summary_breaker,
    ) == ("classic", 9)
    for odd in (["x"], {"preset": "nonsense"}):
        conversation.policy = odd
        assert inherited_policy(conversation).name == "adaptive"


@pytest.mark.parametrize(
    "preset", ["classic", "tool-budget", "rebuild", "gated-trim", "structured"]
)
def test_a_fact_that_only_an_early_file_holds_stays_in_view(preset: str) -> None:
    policy = policy_for(policy={"preset": preset})
    view = early_file()
    situation = Situation("m", 40_000, 100, None, "", "", rejected=99)
    steps, made = prepare(view, situation, policy), None
    try:
        while True:
            next(steps)
    except StopIteration as stop:
        made = stop.value.view
    assert made is not None
    assert made.size < view.size
    assert wire.encode(CRITERIA)[1:-1] in made.body
    assert made.body.count(wire.encode(FILLER)[1:-1]) < 20


def early_file() -> View:
    """Read a file first, then fetch twenty pages."""
    view = View()
    said: list[tuple[Any, list[dict[str, Any]]]] = [("prompt", [text("Go")])]
    said += call("file", "read_file", CRITERIA)
    for at in range(20):
        said += call(f"page{at}", "fetch_url", FILLER)
        said += [("answer", [text(f"Page {at} is read.")]), ("prompt", [text("Go on")])]
    for seq, (kind, blocks) in enumerate(said, 1):
        view = view.append(Message.parse(seq, kind, wire.encode(blocks)))
    return view


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def call(id: str, name: str, content: str) -> list[tuple[Any, list[dict[str, Any]]]]:
    use = {"type": "tool_use", "id": id, "name": name, "input": {}}
    result = {"type": "tool_result", "tool_use_id": id, "content": content}
    return [("answer", [use]), ("results", [result])]


def test_a_chat_that_its_owner_contradicts_by_now_runs_by_what_its_owner_has() -> None:
    turn = people_and_turns.queued(people_and_turns.person())
    Conversation.objects.update(policy={"compaction_threshold_tokens": 30_000})
    assert read_job_facts(turn.conversation_id).policy.compaction_threshold_tokens == 30_000
    for limits in ({}, {"input_token_budget": [10_000, 90_000]}):
        User.objects.update(policy={"preset": "classic"}, policy_limits=limits)
        policy = build_job(read_job_facts(turn.conversation_id)).policy
        assert (policy.name, policy.compaction_threshold_tokens) == ("classic", 80_000)
        chat = Conversation.objects.get()
        assert inherited_policy(chat).compaction_threshold_tokens == 80_000
        assert dump_policy(policy)["name"] == "classic"


def test_the_thresholds_of_a_model_yield_to_what_people_set() -> None:
    user = people_and_turns.person(policy={"compaction_threshold_tokens": 90_000})
    turn = people_and_turns.queued(user)
    Conversation.objects.update(policy={"summary_breaker": 7})
    ApiModel.objects.update(thresholds={"input_token_budget": 120_000})
    policy = read_job_facts(turn.conversation_id).policy
    assert (policy.compaction_threshold_tokens, policy.input_token_budget) == (90_000, 0)
    assert policy.summary_breaker == 7
    User.objects.update(policy={})
    assert read_job_facts(turn.conversation_id).policy.input_token_budget == 120_000


def test_a_policy_of_a_person_that_the_site_contradicts_by_now_yields(settings: Any) -> None:
    turn = people_and_turns.queued(
        people_and_turns.person(policy={"compaction_threshold_tokens": 90_000})
    )
    settings.AGENTWEB_INPUT_TOKEN_BUDGET = 100_000
    policy = read_job_facts(turn.conversation_id).policy
    assert (policy.input_token_budget, policy.compaction_threshold_tokens) == (100_000, 10_000_000)


def test_what_is_no_number_does_not_yield() -> None:
    turn = people_and_turns.queued(people_and_turns.person())
    Conversation.objects.update(policy={"input_token_budget": "many"})
    with pytest.raises(PolicyError):
        read_job_facts(turn.conversation_id)
