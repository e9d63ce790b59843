"""The engine's own blocks stay until they are written again: no step shortens them."""

from __future__ import annotations

import pytest

from conversations.context.errors import WindowError
from conversations.context.policy.policy import build_policy
from conversations.context.steps.summary_zone import OURS
from conversations.context.view import edits, wire
from conversations.context.view.edits import SpliceBlocks
from tests.context.samples import Shell, answer, prompt, situation, text, view_of

WORDS = wire.encode(text("what was decided and why " * 800))


@pytest.mark.parametrize("kind", OURS)
@pytest.mark.parametrize("harder", [0, 1, 3])
def test_a_summary_and_a_notice_are_not_shortened_as_a_large_block(kind: str, harder: int) -> None:
    view = view_of(prompt("a"), answer("b"), prompt("c"))
    view = edits.apply(view, kind, [SpliceBlocks(1, 1, 0, (WORDS,))])  # type: ignore[arg-type]
    policy = build_policy("classic", {"compaction_enabled": False})
    shell = Shell()
    with pytest.raises(WindowError):
        shell.prepare(view, situation(view, 40_000, window=16_000), policy, harder=harder)
    assert "shrink applied" not in shell.kinds
