"""Each tool has an icon of the closed set, and each icon of the set is a symbol of the page."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tools.framework.icons import API_TOOL_ICONS, GENERAL_ICON, ICONS
from tools.framework.registry import TOOLS, icon_of
from tools.framework.schema import SignatureError
from tools.framework.tool import ToolContext, tool

SHEET = Path(__file__).parents[2] / "templates" / "_icons.html"


async def weigh(context: ToolContext) -> str:
    """Weigh a thing."""
    return ""


def test_every_icon_is_a_symbol_of_the_page() -> None:
    symbols = set(re.findall(r'id="i-([a-z-]+)"', SHEET.read_text(encoding="utf-8")))
    assert symbols >= ICONS


def test_a_card_has_the_icon_of_its_tool() -> None:
    assert {name: icon_of(name) for name in TOOLS} == {
        name: each.icon for name, each in TOOLS.items()
    }
    assert {icon_of(name) for name in API_TOOL_ICONS} <= ICONS
    assert (icon_of("web_search"), icon_of("list_files")) == ("find", "folder")
    assert icon_of("mcp__files__list") == icon_of("a tool of last year") == GENERAL_ICON


def test_a_tool_without_an_icon_is_refused_when_it_is_imported() -> None:
    with pytest.raises(TypeError, match="icon"):
        tool(effect="read")(weigh)  # type: ignore[call-arg]


@pytest.mark.parametrize("icon", ["", "i-file", "dragon"])
def test_an_icon_that_is_not_of_the_set_is_refused_when_it_is_imported(icon: Any) -> None:
    with pytest.raises(SignatureError, match="weigh: there is no icon"):
        tool(icon=icon, effect="read")(weigh)
