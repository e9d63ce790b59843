"""Synthetic tasks of much that looks alike: what left the context is found again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from conversations.context.policy.policy import PRESETS
from conversations.lab.made_tasks import NEEDED, make_tasks
from conversations.lab.records import Record
from conversations.lab.report import Report, simulate_record
from tests.lab.samples import world

TASKS = tuple(make_tasks())


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.id)
def test_each_fact_stands_in_one_original_only(task: Record) -> None:
    assert len(task.facts) == NEEDED
    texts = [message.content for message in task.messages]
    for fact in task.facts:
        places = [at for at, text in enumerate(texts) if fact.text in text]
        assert places == [fact.first_seen, fact.used_at]


def test_the_tasks_are_the_same_every_time() -> None:
    assert [task.messages for task in make_tasks()] == [task.messages for task in TASKS]


@pytest.mark.parametrize("policy", ["adaptive", "rebuild"])
def test_nearly_all_that_left_the_context_is_found_by_the_search_or_the_index(policy: str) -> None:
    report = Report(policy)
    # Without the name list, which has nearly all of these facts in view.
    chosen = replace(PRESETS[policy], name_list_chars=0)
    for task in TASKS:
        report.merge(simulate_record(task, world(chosen, window=32_000, bills_recalls=True)))
    facts = report.sole
    assert facts.needed == len(TASKS) * NEEDED
    assert facts.in_view * 3 < facts.needed
    assert facts.lost == report.own.lost == 0
    assert (facts.usable - facts.in_view) * 100 >= (facts.needed - facts.in_view) * 95
