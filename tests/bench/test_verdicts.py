"""What the long subjects of `bench` say of their bounds."""

from __future__ import annotations

from typing import Any

import pytest

from agentweb.bench import hostile, long_blocks, readme_figures, renderer_time, soak


def soaked(minutes: int, growth: float = 0.0) -> dict[str, Any]:
    """Give a run: its caches fill for ten minutes, then it grows by so many megabytes an hour."""
    samples = [
        {"seconds": at, "megabytes": 200.0 + min(at, 600) / 12 + growth * at / 3600, "turns": at}
        for at in range(20, 60 * minutes, 20)
    ]
    return {"minutes": minutes, "samples": samples} | soak.judge(samples)


@pytest.mark.parametrize(("added", "said"), [(60.0, "within the bound of 60"), (60.1, "above the")])
def test_a_soak_says_what_answers_at_once_may_add_and_the_load(added: float, said: str) -> None:
    burst = {"answers": 200, "before": 200.0, "most": 200.0 + added, "added": added, "after": 210.0}
    machine = {"date": "2026-11-24 17:11", "load": 3.5}
    text = soak.render(soaked(120) | {"burst": burst, "machine": machine})
    assert said in text
    assert "load 3.5 before" in text
    assert "flat" in text


@pytest.mark.parametrize(
    ("minutes", "growth", "said"),
    [(20, 0.0, "No slope"), (119, 30.0, "No slope"), (120, 0.0, "flat"), (120, 30.0, "growing")],
)
def test_a_soak_is_judged_when_its_caches_are_full(minutes: int, growth: float, said: str) -> None:
    assert said in soak.format_slope(soaked(minutes, growth))


def test_the_readme_quotes_the_newest_soak() -> None:
    path = readme_figures.list_runs(readme_figures.RESULTS / soak.MARKS)[-1]
    run = readme_figures.read_run(path)
    quoted = soak.render(run | soak.judge(run["samples"]))
    assert quoted in readme_figures.README.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("late", "said"), [(200.0, "within the bound"), (200.1, "above the bound")]
)
def test_a_hostile_run_says_whether_a_visitor_was_disturbed(late: float, said: str) -> None:
    times: dict[str, Any] = {
        what: {"page": {"p99": 50.0}, "ack": {"p99": 50.0}} for what in ("alone", "harmless")
    }
    beside = {"page": {"p99": 50.0 + late}, "ack": {"p99": 50.0}}
    row = hostile.judge({"calls": 30, "blocks": 0, "beside": beside} | times)
    assert said in hostile.format_line(row)


@pytest.mark.parametrize(
    ("long", "said"), [(200.0, "within the bound"), (202.0, "above the bound")]
)
def test_a_long_block_is_judged_by_plain_words_of_as_many_bytes(long: float, said: str) -> None:
    side = {"script": 1.0, "style": 1.0, "layout": 1.0, "frames": 9}
    row = {"kind": "code", "plain": side | {"total": 100.0}, "long": side | {"total": long}}
    assert said in renderer_time.format_line(renderer_time.judge(row))
    for text in long_blocks.ANSWERS.values():
        assert abs(len(long_blocks.make_plain(text)) - len(text.encode())) < 3
