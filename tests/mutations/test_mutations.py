"""The list of mutations cannot rot, and a few of them are made for real in every run."""

from __future__ import annotations

from typing import Any

import pytest

from tests.mutations.data import ENGINE_MUTATIONS, Mutation
from tests.mutations.run import MUTATIONS, ROOT, list_survivors, main
from tests.mutations.services import SERVICE_MUTATIONS

#: A few that are noticed early; `manage.py test --mutations` makes all of them.
SLICE = ("view/edits.py", "view/rules.py", "conversations/log/leases.py")


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda one: f"{one.file} {one.law}")
def test_what_a_mutation_changes_is_there_exactly_once(mutation: Mutation) -> None:
    text = (ROOT / mutation.path).read_text(encoding="utf-8")
    assert text.count(mutation.old) == 1
    assert mutation.new != mutation.old
    compile(text.replace(mutation.old, mutation.new), mutation.file, "exec")


def test_there_are_many_and_no_two_are_the_same() -> None:
    assert len(ENGINE_MUTATIONS) >= 60
    assert len(SERVICE_MUTATIONS) >= 60
    assert len({(one.file, one.old, one.new) for one in MUTATIONS}) == len(MUTATIONS)
    assert len({one.law for one in MUTATIONS}) == len(MUTATIONS)


def test_mutations_are_noticed() -> None:
    chosen = [next(one for one in MUTATIONS if one.file == file) for file in SLICE]
    assert list_survivors(chosen) == []


def test_a_file_without_mutations_is_named_and_those_with_some_are_listed(capsys: Any) -> None:
    assert main("steps/none.py") == 2
    said = capsys.readouterr().out
    assert "No mutation is made in steps/none.py, but in\n" in said
    assert "  conversations/budgets/holds.py\n" in said
