"""The README's chapter about tools, and its example put where tools are found."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

import tools
from tools.framework.registry import TOOLS, discover

README = Path(__file__).parents[2].joinpath("README.md").read_text(encoding="utf-8")
CHAPTER = README.split("\n## Add a tool\n")[1].split("\n## ")[0]


def example() -> tuple[str, str]:
    """Give the file of the tool and the file of its test, to the letter."""
    source, test = re.findall(r"```python\n(.*?)```", CHAPTER, re.DOTALL)
    return source, test


def add(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the example's file into a folder of tools, and read the folder as a start does."""
    folder.joinpath("dice.py").write_text(example()[0], encoding="utf-8")
    monkeypatch.setattr(tools, "__path__", [*tools.__path__, str(folder)])
    monkeypatch.delitem(sys.modules, "tools.dice", raising=False)
    found = discover(tools.__path__)
    monkeypatch.delitem(sys.modules, "tools.dice")
    monkeypatch.setitem(TOOLS, "roll_dice", found["roll_dice"])
