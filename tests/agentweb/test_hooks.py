"""Modules of a site's own code: imported at the start, and named when they cannot be."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from agentweb.apps import _import_hooks
from conversations import signals
from conversations.context.view.edits import SpliceBlocks, Trigger, build_transformation
from tests.context.samples import prompt, view_of

SOURCE = """
from django.dispatch import receiver
from conversations.signals import transformation_proposed

@receiver(transformation_proposed, dispatch_uid="a-site")
def keep(change, **kwargs):
    return "never on Fridays" if change.kind == "trim" else ""
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    signals.transformation_proposed.disconnect(dispatch_uid="a-site")


def test_a_module_that_is_named_can_veto(folder: Path) -> None:
    (folder / "a_site_hooks.py").write_text(SOURCE)
    _import_hooks("a_site_hooks")
    view, trigger = view_of(prompt("a", "b")), Trigger(2, 1, "counted")
    for kind, reason in (("trim", "never on Fridays"), ("compaction", "")):
        change = build_transformation(view, kind, trigger, [SpliceBlocks(1, 1, 1)], "x")
        assert signals.collect_vetoes(1, change) == reason


def test_a_check_that_fails_is_a_veto_and_ends_no_turn(folder: Path) -> None:
    failing = SOURCE.replace('"never on Fridays"', "1 / 0")
    (folder / "failing_hooks.py").write_text(failing)
    _import_hooks("failing_hooks")
    view, trigger = view_of(prompt("a", "b")), Trigger(2, 1, "counted")
    for kind, reason in (("trim", "the site's own check of it failed"), ("compaction", "")):
        change = build_transformation(view, kind, trigger, [SpliceBlocks(1, 1, 1)], "x")
        assert signals.collect_vetoes(1, change).partition(";")[0] == reason


@pytest.mark.parametrize(("name", "source"), [("no_such_hooks", None), ("bad_hooks", "1 / 0")])
def test_one_that_cannot_be_imported_ends_the_start_and_is_named(
    folder: Path, name: str, source: str | None
) -> None:
    if source:
        (folder / f"{name}.py").write_text(source)
    with pytest.raises(ImproperlyConfigured, match=f"AGENTWEB_HOOKS names {name}"):
        _import_hooks(name)
