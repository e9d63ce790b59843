"""A provider's report beside the record, by day and model: costs of one file, tokens of another."""

from __future__ import annotations

from datetime import UTC
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from conversations.budgets.usage.provider_report import (
    Comparison,
    Difference,
    ReportError,
    compare_with_record,
    read_report,
)
from conversations.models import ApiCall, ApiResult
from tests.support import stored_turns

LATER = "2999-12-31"
pytestmark = pytest.mark.django_db
COSTS = (
    "usage_date_utc,model,workspace,api_key,usage_type,context_window,token_type,cost_usd,"
    "list_price_usd,cost_type,inference_geo,speed,api_key_id,api_key_status"
)
TOKENS = (
    "usage_date_utc,model_version,api_key,workspace,usage_type,context_window,"
    "usage_input_tokens_no_cache,usage_input_tokens_cache_write_5m,"
    "usage_input_tokens_cache_write_1h,usage_input_tokens_cache_read,usage_output_tokens,"
    "web_search_count,inference_geo,speed"
)


def compare_report(lines: list[str]) -> Comparison:
    return compare_with_record(read_report(lines))


def cost(day: str, model: str, dollars: str) -> str:
    return f"{day},{model},Default,key,message,≤ 200k,output,{dollars},{dollars},token,,,id,active"


@pytest.fixture
def recorded() -> tuple[str, int, int]:
    """Return the day, what its calls cost, and their tokens."""
    stored_turns.played()
    (day,) = {
        str(at.astimezone(UTC).date()) for at in ApiCall.objects.values_list("sent_at", flat=True)
    }
    rows = ApiResult.objects.all()
    names = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
    tokens = sum(getattr(row, name) or 0 for row in rows for name in names)
    return day, sum(row.cost_micros for row in rows), tokens


def test_costs_are_compared_by_day_and_model(recorded: tuple[str, int, int]) -> None:
    day, micros, _ = recorded
    lines = [
        COSTS, cost(day, "Claude Sonnet 5.5", f"{micros / 1e6 - 0.000002:.6f}"),
        cost(day, "Claude Sonnet 5.5", "0.000009"), cost(LATER, "Claude Haiku 4.5", "1.5"),
    ]  # fmt: skip
    found = compare_report(lines)
    assert found.unit == "money"
    assert found.rows == (
        Difference(day, "Sonnet 5.5", micros + 7, micros),
        Difference(LATER, "Haiku 4.5", 1_500_000, 0),
    )
    assert [row.more for row in found.rows] == [7, 1_500_000]


def test_tokens_are_compared_where_the_report_says_no_costs(
    recorded: tuple[str, int, int],
) -> None:
    day, _, tokens = recorded
    line = f"{day},claude-sonnet-5-5-20260901,key,Default,message,,1,2,3,4,{tokens},0,,"
    found = compare_report([TOKENS, line])
    assert (found.unit, found.rows) == (
        "tokens", (Difference(day, "Sonnet 5.5", tokens + 10, tokens),)
    )  # fmt: skip


def test_a_short_line_costs_nothing() -> None:
    assert compare_report([COSTS, "2026-11-20"]).rows == (Difference("2026-11-20", "", 0, 0),)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["day,cost"], "needs the columns"),
        ([COSTS], "no lines"),
        ([COSTS, cost("yesterday", "x", "1")], "Line 2 cannot be read"),
        ([COSTS, cost("2026-11-20", "x", "much")], "Line 2 cannot be read"),
        ([COSTS, cost("2026-11-20", "x", "1e99")], "Line 2 cannot be read"),
        ([COSTS, cost("2026-11-20", "x", "NaN")], "Line 2 cannot be read"),
        ([COSTS, cost("2026-11-20", "x" * 140_000, "1")], "cannot be read"),
        ([TOKENS, f"2026-11-20,x,,,,,{'9' * 20},0,0,0,0,0,,"], "Line 2 cannot be read"),
    ],
)
def test_what_is_no_report_is_refused_with_its_line(lines: list[str], said: str) -> None:
    with pytest.raises(ReportError, match=said):
        compare_report(lines)


def test_the_command_prints_each_day_and_the_sum(
    recorded: tuple[str, int, int], tmp_path: Path
) -> None:
    path, out = tmp_path / "costs.csv", StringIO()
    path.write_text(f"\ufeff{COSTS}\n{cost(recorded[0], 'Claude Sonnet 5.5', '2')}\n")
    call_command("ledger", "compare", str(path), stdout=out)
    first, last = out.getvalue().splitlines()
    assert first.startswith(f"{recorded[0]} Sonnet 5.5: reported 2.00, recorded 0.")
    assert last.startswith("in all: reported 2.00, recorded 0.")


def test_a_report_that_cannot_be_read_is_named_with_the_reason(tmp_path: Path) -> None:
    file = tmp_path / "costs.csv"
    with pytest.raises(CommandError) as caught:
        call_command("ledger", "compare", str(file))
    assert str(caught.value) == f"{file} cannot be read: No such file or directory"
    assert caught.value.returncode == 2
    file.write_bytes(COSTS.encode("utf-16"))
    with pytest.raises(CommandError, match=r"costs\.csv cannot be read: it is not UTF-8"):
        call_command("ledger", "compare", str(file))
