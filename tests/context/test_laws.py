"""What holds for every conversation, policy and shell."""

from __future__ import annotations

import json
import os
from dataclasses import replace

from hypothesis import HealthCheck, given, settings

from conversations.context import edits, rules, wire
from conversations.context.edits import SpliceBlocks, Transformation
from conversations.context.errors import RuleError, WindowError
from conversations.context.pipeline import Situation
from conversations.context.policy import Policy
from conversations.context.replay import Entry, replay
from conversations.context.view import THINKING, View
from conversations.context.zone import OURS

from .independent import violations
from .strategies import (
    Maker,
    policy_from_seed,
    seeds,
    situation_from_seed,
    view_from,
    writer_from_seed,
)
from .talk import Shell

#: A slice in CI; CONTEXT_EXAMPLES=100000 runs the whole.
SLICE = 200
EXAMPLES = int(os.environ.get("CONTEXT_EXAMPLES", SLICE))
many = settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    database=None,
    derandomize=EXAMPLES == SLICE,
)


@many
@given(seed=seeds)
def test_a_generated_conversation_is_valid(seed: int) -> None:
    view = view_from(Maker(seed).conversation())
    assert violations(view.body) == []
    rules.check(view)


@many
@given(seed=seeds)
def test_what_is_prepared_is_legal_smaller_replayable_and_final(seed: int) -> None:
    maker = Maker(seed)
    messages = maker.conversation()
    view = view_from(messages)
    policy = policy_from_seed(seed + 1)
    log: list[Entry] = list(messages)
    for turn in range(3):
        shell = Shell(writes=writer_from_seed(seed + turn))
        known = situation_from_seed(seed + 2 + turn, view)
        before = view
        try:
            prepared = shell.prepare(view, known, policy, harder=(seed >> 3) % 4 if turn else 0)
        except WindowError:
            assert all(_is_smaller(record) for record in shell.applied)
            return
        view = prepared.view
        assert violations(view.body) == []
        assert all(_is_smaller(record) for record in shell.applied)
        assert prepared.recall == view.reduced
        log += [(record.kind, edits.load(edits.dump(record.edits))) for record in shell.applied]
        assert replay(log) == view
        if not shell.applied:
            assert view.body == before.body
        if policy.name == "off":
            assert {record.kind for record in shell.applied} <= {"rebind"}
        _assert_final(view, known, policy, turn, shell)
        _assert_first_message(before, view, shell.applied)
        assert _texts(before, known.pins) == _texts(view, known.pins)
        grown = maker.round()
        log += grown
        view = replay(grown, view)


def _texts(view: View, pins: frozenset[str | int]) -> list[str]:
    """Give what is pinned, but for what the engine adds and for thinking."""
    return [
        block.text
        for message in view.messages
        for block in message.blocks
        if (message.seq in pins or block.id in pins)
        and block.by not in OURS
        and block.type not in THINKING
    ]


def _is_smaller(record: Transformation) -> bool:
    return record.bytes_after < record.bytes_before and record.tokens_after <= record.tokens_before


def _assert_final(view: View, known: Situation, policy: Policy, turn: int, shell: Shell) -> None:
    """A second prepare at once proposes nothing; only a failed summary may be tried again."""
    if turn and any(record.outcome != "applied" for record in shell.records):
        return
    again = Shell(writes=lambda wanted: None)
    bound = known.binding(view.reduced) if known.bound_to else ""
    settled = replace(known, bound_to=bound, rejected=99)
    again.prepare(view, settled, policy)
    assert again.applied == []


def _assert_first_message(before: View, after: View, applied: list[Transformation]) -> None:
    """The first message's own blocks stay byte-identical unless its text alone was too large."""
    shrunk = {edit.seq for record in applied if record.kind == "shrink" for edit in record.edits
              if isinstance(edit, SpliceBlocks)}  # fmt: skip
    first, now = before.messages[0], after.messages[0]
    if first.seq in shrunk:
        return
    own = [block.text for block in first.blocks if block.by not in OURS]
    assert [block.text for block in now.blocks if block.by not in OURS] == own


@many
@given(seed=seeds)
def test_a_veto_leaves_the_view_as_it_was(seed: int) -> None:
    view = view_from(Maker(seed).conversation())
    every = ("ingest", "compaction", "rounds", "summary", "trim", "shrink", "rebind")
    shell = Shell(writes=writer_from_seed(seed), vetoes=every)
    try:
        prepared = shell.prepare(view, situation_from_seed(seed, view), policy_from_seed(seed))
    except WindowError:
        return
    assert prepared.view == view
    assert all(record.outcome != "applied" for record in shell.records)
    assert {record.reason for record in shell.records if record.outcome == "vetoed"} <= {"not now"}


@many
@given(seed=seeds)
def test_cutting_at_a_cut_is_legal_and_elsewhere_is_not(seed: int) -> None:
    messages = Maker(seed).conversation()
    positions = rules.cuts(view_from(messages))
    assert positions[0] == 0
    assert positions[-1] == len(messages)
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
        rules.check(view)
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
        rules.check(view)
    except RuleError as error:
        return str(error)
    return ""


@many
@given(seed=seeds)
def test_split_and_join_are_inverse_on_what_is_stored(seed: int) -> None:
    for message in Maker(seed).conversation():
        assert wire.join(wire.split(message.content)) == message.content
        assert json.loads(message.content) == [block.value for block in message.blocks]
