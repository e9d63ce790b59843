"""The tool `current_time`."""

from __future__ import annotations

import pytest

from tools.framework.registry import TOOLS
from tools.framework.tool import ToolContext
from tools.framework.toolset import Toolset

pytestmark = pytest.mark.asyncio

run = Toolset(TOOLS).run


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "2026-11-21T07:05:09+00:00 (Saturday, UTC, UTC)"),
        ({"zone": "Europe/Vienna"}, "2026-11-21T08:05:09+01:00 (Saturday, Europe/Vienna, CET)"),
        (
            {"zone": "Pacific/Kiritimati"},
            "2026-11-21T21:05:09+14:00 (Saturday, Pacific/Kiritimati, +14)",
        ),
        ({"zone": "Etc/GMT+12"}, "2026-11-20T19:05:09-12:00 (Friday, Etc/GMT+12, -12)"),
    ],
)
async def test_the_time_is_told_in_the_zone(
    arguments: dict[str, str], said: str, context: ToolContext
) -> None:
    assert (await run("current_time", arguments, context)).content == said


@pytest.mark.parametrize(
    "zone",
    [
        *("", "Nowhere", "Europe", "Europe/Nowhere", "../../etc/passwd", "/etc/passwd", "UTC\0"),
        *("Europe/../UTC", "x" * 500, "zone.tab", "tzdata.zi", "leapseconds", "a/b/c/d"),
    ],
)
async def test_an_unknown_zone_is_an_error_that_helps(zone: str, context: ToolContext) -> None:
    result = await run("current_time", {"zone": zone}, context)
    assert (result.is_error, result.details["code"]) == (True, "unknown_zone")
    assert "Europe/Vienna" in str(result.content)
