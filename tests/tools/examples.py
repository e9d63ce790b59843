"""The README of `tools/`, and its example put where tools are found."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

import tools
from tools.framework.registry import TOOLS, discover_tools

README = Path(tools.__file__).with_name("README.md").read_text(encoding="utf-8")


def read_example() -> tuple[str, str]:
    """Return the source of the tool and of its test, to the letter."""
    source, test = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    return source, test


def add_example(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write the example into a folder of tools, and discover the folder as a start does."""
    folder.joinpath("dice.py").write_text(read_example()[0], encoding="utf-8")
    monkeypatch.setattr(tools, "__path__", [*tools.__path__, str(folder)])
    monkeypatch.delitem(sys.modules, "tools.dice", raising=False)
    found = discover_tools(tools.__path__)
    monkeypatch.delitem(sys.modules, "tools.dice")
    monkeypatch.setitem(TOOLS, "roll_dice", found["roll_dice"])
