"""What holds for every conversation, policy and caller.

A slice of the stories runs each time; `manage.py test --thorough` runs all 100,000 of them.
"""

from __future__ import annotations

import json
from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings

from conversations.context.errors import RuleError, WindowError
from conversations.context.view import rules, wire
from conversations.context.view.view import View
from tests.context.independent import violations
from tests.context.samples import Shell
from tests.context.story import live
from tests.context.strategies import (
    Maker,
    policy_from_seed,
    seeds,
    situation_from_seed,
    view_from,
    writer_from_seed,
)
from tests.context.thorough import PARTS, SLICE, part

many = settings(
    max_examples=150, deadline=None, suppress_health_check=list(HealthCheck), database=None,
    derandomize=True,
)  # fmt: skip
REDUCING = ("ingest", "compaction", "rounds", "summary", "trim", "shrink")
#: What the stories of the slice must have met, so that no law holds for want of a case.
MET = {
    *(f"{kind} applied" for kind in REDUCING),
    *(f"{kind} vetoed" for kind in ("compaction", "summary", "trim")),
    "clearing expected", "compaction call",
    "rebind applied", "summary rejected", "window error", "overflow", "undo", "regenerate",
    "restore", "switch",
}  # fmt: skip


@pytest.fixture(scope="module")
def met() -> Counter[str]:
    return Counter()


@pytest.mark.parametrize("number", range(PARTS))
def test_every_request_of_a_story_is_legal_and_every_law_holds(
    number: int, met: Counter[str]
) -> None:
    for seed in part(number, PARTS, SLICE):
        met += live(seed)


def test_the_stories_have_met_everything(met: Counter[str]) -> None:
    for seed in () if met else range(SLICE):
        met += live(seed)
    assert met.keys() >= MET


def test_a_story_is_the_same_whenever_it_is_told() -> None:
    assert live(3) == live(3)


@many
@given(seed=seeds)
def test_a_veto_leaves_the_view_as_it_was(seed: int) -> None:
    view = view_from(Maker(seed).conversation())
    every = ("ingest", "compaction", "rounds", "summary", "trim", "shrink", "rebind")
    shell = Shell(writes=writer_from_seed(seed), vetoes=every)
    known, policy = situation_from_seed(seed, view), policy_from_seed(seed)
    try:
        prepared = shell.prepare(view, known, policy)
    except WindowError:
        return
    except RuleError:
        # What the API refuses to take back cannot be kept by a veto, only the turn ended by it.
        assert {"rebind vetoed", "summary vetoed"} & {*shell.kinds[-1:]}
        return
    assert prepared.view == view
    assert all(record.outcome != "applied" for record in shell.records)
    assert {record.reason for record in shell.records if record.outcome == "vetoed"} <= {"not now"}


@many
@given(seed=seeds)
def test_cutting_at_a_cut_is_legal_and_elsewhere_is_not(seed: int) -> None:
    messages = Maker(seed).conversation()
    positions = rules.find_cuts(view_from(messages))
    assert positions[0] == 0
    for at in range(1, len(messages)):
        rest = view_from([messages[0], *messages[at:]]) if at > 1 else view_from(messages)
        assert (violations(rest.body) == []) == (at in positions or at == 1)


@many
@given(seed=seeds)
def test_the_rules_agree_with_the_second_opinion_on_damaged_lists(seed: int) -> None:
    maker = Maker(seed)
    messages = maker.conversation()
    del messages[maker.chance.randrange(len(messages))]
    if len(messages) > 2 and maker.chance.random() < 0.5:
        at = maker.chance.randrange(len(messages) - 1)
        messages[at], messages[at + 1] = messages[at + 1], messages[at]
    view = view_from(messages)
    try:
        rules.check_rules(view)
    except RuleError:
        assert violations(view.body) != []
    else:
        assert violations(view.body) == []


@many
@given(seed=seeds)
def test_checking_a_grown_view_equals_checking_it_whole(seed: int) -> None:
    view = View()
    for message in Maker(seed).conversation():
        view = view.append(message)
        fresh = view_from(list(view.messages))
        assert _verdict(view) == _verdict(fresh)
        assert fresh == view


def _verdict(view: View) -> str:
    try:
        rules.check_rules(view)
    except RuleError as error:
        return str(error)
    return ""


@many
@given(seed=seeds)
def test_split_and_join_are_inverse_on_what_is_stored(seed: int) -> None:
    for message in Maker(seed).conversation():
        assert wire.join(wire.split(message.content)) == message.content
        assert json.loads(message.content) == [block.value for block in message.blocks]
