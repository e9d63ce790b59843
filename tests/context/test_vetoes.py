"""What a veto can prevent, and what it cannot: the API demands some changes."""

from __future__ import annotations

import pytest

from conversations.context.errors import RuleError
from conversations.context.policy.policy import PRESETS, build_policy
from tests.context.independent import violations
from tests.context.samples import (
    THOUGHT,
    Shell,
    answer,
    blocks,
    keeping,
    prompt,
    situation,
    view_of,
    writing,
)
from tests.context.test_pipeline import rounds

BLOCK = {"type": "compaction", "content": "w"}


@pytest.mark.parametrize("name", PRESETS)
def test_thinking_that_the_api_refuses_is_not_sent_for_a_veto(name: str) -> None:
    view = view_of(prompt("a"), answer(THOUGHT, "b"), prompt("c"))
    shell = Shell(vetoes=("rebind",))
    with pytest.raises(RuleError) as caught:
        shell.prepare(view, situation(bound_to="other"), build_policy(name))
    assert caught.value.rule == "thinking"
    assert shell.kinds == ["rebind vetoed"]
    assert Shell().prepare(view, situation(bound_to="other"), build_policy(name)).view.edits == 1


@pytest.mark.parametrize("words", ["w", "words " * 50, "[CONTEXT SUMMARY] of it", None])
def test_the_words_of_a_compaction_block_are_never_longer_than_the_block(words: str | None) -> None:
    view = view_of(answer(BLOCK | {"content": words}), prompt("c"))
    shell = Shell()
    done = shell.prepare(view, situation(), build_policy("classic")).view
    assert shell.kinds == ["summary applied"]
    assert done.size < view.size
    assert blocks(done, 0)[0]["type"] == "text"
    assert violations(done.body) == []
    with pytest.raises(RuleError):
        Shell(vetoes=("summary",)).prepare(view, situation(), build_policy("classic"))


def test_after_one_refusal_nothing_more_is_asked_of_the_model() -> None:
    policy = build_policy("rebuild", {"round_summary_every": 4, "max_conversation_messages": 0})
    view = view_of(prompt("a"), *rounds(12))
    shell = Shell(writes=writing(None))
    shell.prepare(view, situation(view, 90_000), policy)
    assert shell.kinds == ["rounds rejected"]
    assert len(shell.wanted) == 1
    both = Shell(writes=keeping)
    both.prepare(view, situation(view, 90_000), policy)
    assert both.kinds[0] == "rounds applied"
