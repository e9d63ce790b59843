"""No regular expression of ours can be made to work for long, whatever stands in the text.

They are found by introspection: compiled ones in the modules, and those written where they are
used.
"""

from __future__ import annotations

import ast
import importlib
import json
import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import agentweb
import conversations
import tools
from tests.attacks import probe

ROOTS = (agentweb, conversations, tools)
#: Started as a program, or only with other settings; and files that hold no code of ours.
NOT_IMPORTED = ("__main__", ".migrations", "agentweb.asgi")
WHOLE = {"match", "fullmatch", "search"}
FUNCTIONS = WHOLE | {"sub", "subn", "split", "findall", "finditer"}
#: Texts for these are short before they are tried: the pattern, and what bounds them.
BOUNDED: dict[str, str] = {}


def modules() -> Iterator[ModuleType]:
    for root in ROOTS:
        for found in pkgutil.walk_packages(root.__path__, f"{root.__name__}."):
            if not any(part in found.name for part in NOT_IMPORTED):
                yield importlib.import_module(found.name)


def within(value: Any, depth: int = 0) -> Iterator[re.Pattern[Any]]:
    """Give the patterns in a value of a module."""
    if isinstance(value, re.Pattern):
        yield value
    elif depth < 3 and isinstance(value, dict):
        for pair in value.items():
            yield from within(pair, depth + 1)
    elif depth < 3 and isinstance(value, tuple | list | set | frozenset):
        for each in value:
            yield from within(each, depth + 1)


def methods(name: str, module: str, texts: dict[str, str]) -> set[str]:
    """Say how a pattern is used, wherever it is imported to; anywhere in a text if nobody says."""
    places = [texts[module]] if name.startswith("_") else texts.values()
    used = {each for text in places for each in re.findall(rf"\b{name}\.(\w+)\b", text)}
    return {each if each in WHOLE else "search" for each in used & FUNCTIONS} or {"search"}


def written(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Give (function, pattern) of expressions written in their call."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="re"), attr=name),
                args=[ast.Constant(value=str(pattern)), *_],
            ) if name in FUNCTIONS:
                yield name if name in WHOLE else "search", pattern


def patterns() -> set[tuple[str, str, int, str]]:
    found: set[tuple[str, str, int, str]] = set()
    loaded = {each.__name__: each for each in modules()}
    texts = {name: Path(str(each.__file__)).read_text("utf-8") for name, each in loaded.items()}
    for name, module in loaded.items():
        for key, value in list(vars(module).items()):
            for each in within(value):
                if isinstance(each.pattern, str):
                    for method in methods(key, name, texts):
                        found.add((f"{name}.{key}", each.pattern, each.flags, method))
        for method, pattern in written(ast.parse(texts[name])):
            found.add((f"{name}: {pattern}", pattern, 0, method))
    # The same pattern of a module that only imports it is tried once.
    return {min(same) for same in _grouped(found)}


def _grouped(found: set[tuple[str, str, int, str]]) -> Iterator[list[tuple[str, str, int, str]]]:
    groups: dict[tuple[str, int, str], list[tuple[str, str, int, str]]] = {}
    for each in found:
        groups.setdefault(each[1:], []).append(each)
    yield from groups.values()


def test_the_probe_finds_what_is_slow() -> None:
    bad = [("nested", r"(a+)+$", 0, "match"), ("ends", r"\s+$", 0, "search"),
           ("pairs", r"(?:ab|a|b)*c", 0, "search"), ("good", r"[a-z]+\d", 0, "match")]  # fmt: skip
    assert set(tried(bad)) == {"nested.match", "ends.search", "pairs.search"}


def test_no_pattern_works_for_long() -> None:
    found = sorted(patterns())
    assert len(found) > 60
    bad = tried([each for each in found if each[0] not in BOUNDED])
    assert bad == {}
    assert set(BOUNDED) <= {name for name, *_ in found}


def tried(found: list[tuple[str, str, int, str]]) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, probe.__file__], input=json.dumps(found), capture_output=True, text=True,
        timeout=300, check=True,
    )  # fmt: skip
    return dict(json.loads(done.stdout))
