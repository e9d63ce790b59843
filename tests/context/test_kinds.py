"""The registry of transformation kinds: complete, in force, and the only list of them."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest

from conversations.context import pipeline
from conversations.context.policy.number_labels import NUMBER_LABELS
from conversations.context.policy.policy import BOUNDS, POLICY_FIELDS, POLICY_WORDS, Policy
from conversations.context.steps import kinds
from conversations.context.steps.kinds import KINDS, ROWS, RegisteredKind, TransformationKind
from conversations.context.view.edits import (
    SpliceBlocks,
    Transformation,
    Trigger,
    build_transformation,
)
from conversations.context.view.view import View
from tests.context.samples import prompt, situation, view_of


def test_every_kind_has_one_row() -> None:
    assert sorted(KINDS) == sorted(get_args(TransformationKind))


def test_a_kind_without_a_row_fails() -> None:
    with pytest.raises(ValueError, match="exactly one row: clearing"):
        kinds.check_rows(ROWS[:-1])


def test_a_kind_with_two_rows_fails() -> None:
    with pytest.raises(ValueError, match="exactly one row: ingest"):
        kinds.check_rows([*ROWS, ROWS[0]])


@pytest.mark.parametrize("missing", ["label", "words", "step"])
def test_an_incomplete_row_fails(missing: str) -> None:
    row: RegisteredKind = replace(ROWS[0], **{missing: ""})  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="ingest: a row needs"):
        kinds.check_rows([row, *ROWS[1:]])


def test_a_step_that_asks_the_model_cannot_be_a_limit() -> None:
    rows = [replace(row, asks_model=True) if row.phase == "limit" else row for row in ROWS]
    with pytest.raises(ValueError, match="trim: a step of the phase limit"):
        kinds.check_rows(rows)


@pytest.mark.parametrize("name", ["nothing:here", "trim:nothing_here"])
def test_a_step_that_does_not_exist_fails(name: str) -> None:
    with pytest.raises((ImportError, AttributeError)):
        kinds.load_step(name)


def test_every_text_for_people_is_marked_for_translation() -> None:
    tree = ast.parse(Path(kinds.__file__).read_text(encoding="utf-8"))
    marked = {
        ast.literal_eval(node.args[0])
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "gettext_noop"
    }
    texts = {
        text for row in ROWS for text in (row.label, row.words, row.block, row.instead) if text
    }
    assert texts == marked


def test_the_steps_of_a_phase_run_in_the_order_of_the_rows() -> None:
    for phase, rows in pipeline._PHASES.items():
        assert list(rows) == [row for row in ROWS if row.phase == phase]
    reducing = [row.name for row in pipeline._PHASES["reduce"]]
    assert [name for name in reducing if name in ("compaction", "rounds", "summary")] == [
        "compaction", "rounds", "summary"
    ]  # fmt: skip
    limiting = [step.__name__ for step in pipeline._LIMITING]
    assert limiting[:2] == ["drop_exchanges", "shrink_blocks"]
    assert limiting[-2:] == ["drop_exchanges", "drop_rounds"]


def shout(view: View, _gauge: object, _policy: object) -> Transformation | None:
    """Shorten each prompt of many exclamation marks: a step as a newcomer would write it."""
    long = [message for message in view.messages if "!!!" in message.content]
    if not long:
        return None
    edits = [SpliceBlocks(one.seq, 0, 1, ('{"type":"text","text":"!"}',)) for one in long]
    trigger = Trigger(len(long), 0, "counted")
    return build_transformation(view, "shout", trigger, edits, "Calmed")  # type: ignore[arg-type]


def test_a_registered_step_runs_without_any_other_change(monkeypatch: Any) -> None:
    row: RegisteredKind = replace(ROWS[0], name="shout", step="shout:shout")  # type: ignore[arg-type]
    monkeypatch.setitem(pipeline._STEPS, row.step, shout)
    monkeypatch.setitem(pipeline._PHASES, "reduce", (*pipeline._PHASES["reduce"], row))
    view = view_of(prompt("Now!!!" * 9))
    steps = pipeline.prepare(view, situation(), Policy())
    change = steps.send(None)
    assert isinstance(change, Transformation)
    assert (change.kind, change.note) == ("shout", "Calmed")
    with pytest.raises(StopIteration) as stop:
        steps.send(None)
    assert stop.value.value.view.messages[0].content == '[{"type":"text","text":"!"}]'


def test_every_number_of_a_policy_says_what_it_does() -> None:
    assert all(POLICY_WORDS[name].endswith(".") for name in POLICY_FIELDS)
    assert set(NUMBER_LABELS) == set(POLICY_FIELDS)
    assert set(BOUNDS) < set(POLICY_FIELDS)
    lists_and_flags = {name for name in POLICY_FIELDS if name not in BOUNDS}
    assert {type(getattr(Policy(), name)) for name in lists_and_flags} == {bool, tuple}
