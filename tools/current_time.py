"""The tool `current_time`: the time in a time zone; the clock comes from the context."""

from __future__ import annotations

from typing import Annotated
from zoneinfo import ZoneInfo

from tools.framework.clean_text import quote
from tools.framework.errors import UnknownZoneError
from tools.framework.tool import ToolContext, tool


@tool(icon="clock", effect="read", results="keep", timeout=5)
async def current_time(
    context: ToolContext,
    zone: Annotated[str, "IANA time zone such as Europe/Vienna or America/New_York"] = "UTC",
) -> str:
    """Tell the current date, time and weekday in a time zone."""
    now = context.now().astimezone(_find_zone(zone))
    return f"{now.isoformat(timespec='seconds')} ({now:%A}, {zone}, {now:%Z})"


def _find_zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (LookupError, ValueError, OSError) as error:  # no such zone, a path, a folder
        raise UnknownZoneError(
            f"There is no time zone {quote(name)}. Use an IANA name such as UTC, Europe/Vienna or"
            " America/New_York."
        ) from error
