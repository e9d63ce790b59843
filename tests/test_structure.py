"""The packages of the code: imports point down, contracts catch what is new, names are single."""

from __future__ import annotations

import ast
import importlib
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import grimp
import pytest

from tests.shared_names import DJANGO, MEANINGS

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("agentweb", "conversations", "tools")
#: Modules that nobody has thought of, each with an import that its contract must refuse.
PLANTED = {
    "agentweb above conversations above tools": ("tools/planted.py", "conversations.conf"),
    "inside conversations imports point down": (
        "conversations/turns/planted.py",
        "conversations.web.chat",
    ),
    "inside agentweb imports point down: nothing in the product imports the instruments": (
        "agentweb/serving/planted.py",
        "agentweb.bench.load",
    ),
    "the core is pure": ("conversations/agent/planted.py", "markdown_it"),
    "one client of the API": ("conversations/runtime/planted.py", "anthropic"),
    "only domain packages read and write tables": (
        "conversations/live/planted.py",
        "conversations.models",
    ),
    "the emulator is an independent implementation": (
        "agentweb/emulator/planted.py",
        "agentweb.env",
    ),
    "the emulator is reached by its interface": (
        "agentweb/demo/planted.py",
        "agentweb.emulator.app",
    ),
    "the product starts the emulator and does no more with it": (
        "agentweb/edge/planted.py",
        "agentweb.emulator",
    ),
}
#: What Django, Channels and Celery look for beside the packages.
DJANGO_NAMES = {
    "__init__", "apps", "checks", "conf", "db", "routing", "signals", "tasks", "urls",
}  # fmt: skip


def contracts() -> list[dict[str, object]]:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    found: list[dict[str, object]] = tomllib.loads(text)["tool"]["importlinter"]["contracts"]
    return found


def sources() -> list[Path]:
    return [
        path.relative_to(ROOT)
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
        if "migrations" not in path.parts
    ]


@cache
def names_of_framework(package: str) -> frozenset[str]:
    """Return each `get_` name in the source of an installed package."""
    (folder,) = importlib.import_module(package).__path__
    texts = (path.read_text(encoding="utf-8") for path in Path(folder).rglob("*.py"))
    return frozenset(name for text in texts for name in re.findall(r"\b_*get_\w+", text))


def is_called_by_framework(path: Path, owner: str, name: str) -> bool:
    """Return whether a base of the class comes from a package whose source has the name."""
    module = importlib.import_module(".".join(path.with_suffix("").parts))
    bases = {base.__module__.partition(".")[0] for base in getattr(module, owner).__mro__}
    outside = bases - {*PACKAGES, "builtins", "typing", "abc"}
    return any(name in names_of_framework(package) for package in outside)


def lint(folder: Path) -> str:
    command = (
        sys.executable,
        "-c",
        "from importlinter.cli import lint_imports_command as run; run()",
    )
    done = subprocess.run(
        (*command, "--no-cache"),
        check=False,
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(folder), "COLUMNS": "200"},
        capture_output=True,
        text=True,
    )
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Check a copy of the code in which every contract is violated once, by something new."""
    folder = tmp_path_factory.mktemp("planted")
    shutil.copy(ROOT / "pyproject.toml", folder)
    for package in PACKAGES:
        ignored = shutil.ignore_patterns("__pycache__", "*.json", "results")
        shutil.copytree(ROOT / package, folder / package, ignore=ignored)
    for path, imported in PLANTED.values():
        (folder / path).write_text(f"import {imported}\n", encoding="ascii")
    for package in ("agentweb", "conversations"):
        (folder / package / "novelty").mkdir()
        (folder / package / "novelty" / "__init__.py").touch()
    return lint(folder)


def test_the_planted_violations_are_of_all_contracts() -> None:
    assert set(PLANTED) == {contract["name"] for contract in contracts()}


@pytest.mark.parametrize("name", PLANTED)
def test_a_contract_catches_a_module_that_is_new(report: str, name: str) -> None:
    assert f"{name} BROKEN" in report, report
    path, imported = PLANTED[name]
    assert path.removesuffix(".py").replace("/", ".") in report
    assert imported in report


@pytest.mark.parametrize("package", ["agentweb", "conversations"])
def test_a_new_package_must_choose_its_line(report: str, package: str) -> None:
    assert f"{package}.novelty" in report


def test_the_lines_are_few_and_name_packages_alone() -> None:
    (layers,) = (one["layers"] for one in contracts() if one.get("containers") == ["conversations"])
    assert isinstance(layers, list)
    assert len(layers) <= 12
    packages = {name.strip() for line in layers for name in line.split("|")}
    found = {
        path.parts[1].removesuffix(".py") for path in sources() if path.parts[0] == "conversations"
    }
    assert packages == found - {"__init__"} | {"migrations"}


def test_only_names_that_django_looks_for_stand_beside_the_packages() -> None:
    found = {path.stem for path in (ROOT / "conversations").glob("*.py")}
    assert found <= DJANGO_NAMES


def test_a_base_name_has_one_meaning() -> None:
    """The emulator stands alone, and a command is named for those who type it."""
    names = Counter(
        path.stem
        for path in sources()
        if path.parts[:2] != ("agentweb", "emulator") and path.parent.name != "commands"
    )
    del names["__init__"]
    several = {name for name, count in names.items() if count > 1} - DJANGO
    assert sorted(several - MEANINGS.keys()) == [], "rename, or say the one meaning"
    assert sorted(MEANINGS.keys() - several) == [], "stands once: remove it there"


def test_only_what_a_framework_calls_is_named_get() -> None:
    """Our own functions say what they do: load, read, list, find, require."""
    found = []
    for path in sources():
        tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
        owners = {
            child: node.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ClassDef)
            for child in node.body
        }
        for node in ast.walk(tree):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            if re.match(r"_*get_", node.name) and not (
                node in owners and is_called_by_framework(path, owners[node], node.name)
            ):
                found.append(f"{path}:{node.lineno} {node.name}")
    assert found == []


def test_no_modules_import_each_other_in_a_circle() -> None:
    graph = grimp.build_graph(*PACKAGES, exclude_type_checking_imports=True)
    imports = {name: graph.find_modules_directly_imported_by(name) for name in graph.modules}
    TopologicalSorter(imports).prepare()  # raises CycleError


def test_every_package_says_what_it_is_for() -> None:
    silent = [
        str(path)
        for path in sources()
        if path.name == "__init__.py" and len(path.parts) > 2
        if not (ROOT / path).read_text(encoding="utf-8").startswith('"""')
        and "management" not in path.parts
    ]
    assert silent == []


def test_each_context_of_a_browser_says_whether_it_moves() -> None:
    """Painting what moves takes a tenth of what a browser takes."""
    for path in (ROOT / "tests" / "e2e").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(".new_context"):
                assert "reduced_motion" in {each.arg for each in node.keywords}, path.name
