from __future__ import annotations

from conversations.context.native import Clearing, predict_cleared

from .talk import answer, prompt, result, results, round_of, use, view_of
from .test_pipeline import PAGE, rounds
from .test_steps import gauge_of


def test_the_oldest_results_are_cleared_but_the_newest_and_excluded_tools_stay() -> None:
    said = [*round_of("r", PAGE, name="read_file"), *rounds(4)]
    view = view_of(
        prompt("a"), *said, answer(use("x"), use("y")), results(result("y"), result("x"))
    )
    gauge = gauge_of(view, 100_001)
    assert predict_cleared(view, gauge, Clearing()) == ("r", "t0", "t1", "t2")
    kept = Clearing(exclude_tools=("read_file",), keep=2)
    assert predict_cleared(view, gauge, kept) == ("t0", "t1", "t2", "t3")
    assert predict_cleared(view, gauge, Clearing(keep=50)) == ()
    assert predict_cleared(view, gauge_of(view, 100_000), Clearing()) == ()
    assert predict_cleared(view, gauge, Clearing(at_least=50_000)) == ()


def test_the_envelope_asks_for_what_the_numbers_say() -> None:
    full = Clearing(trigger=80_000, at_least=9_000, exclude_tools=("recall",)).parameters
    assert full == {
        "edits": [
            {
                "type": "clear_tool_uses_20250919",
                "trigger": {"type": "input_tokens", "value": 80_000},
                "keep": {"type": "tool_uses", "value": 3},
                "clear_at_least": {"type": "input_tokens", "value": 9_000},
                "exclude_tools": ["recall"],
            }
        ]
    }
    assert set(Clearing().parameters["edits"][0]) == {"type", "trigger", "keep"}
