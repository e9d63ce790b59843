"""Laws of the tree: what may be where, how large, and which words never appear."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib import metadata
from importlib.metadata import packages_distributions
from itertools import chain
from pathlib import Path
from statistics import mean

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import manage
from agentweb.doctor.locked_packages import find_complaints
from agentweb.lock_files import read_pins
from agentweb.management.readme_tables import (
    TABLES,
    Table,
    read_settings,
    render_commands,
    render_layers,
)
from conversations.conf import PREFIX, list_defaults

ROOT = Path(__file__).resolve().parents[1]
TOP_LEVEL = {
    "Dockerfile", "LICENSE", "README.md", "manage.py", "pyproject.toml",
    "requirements.lock", "requirements-dev.lock",
    "agentweb", "conversations", "static", "templates", "tests", "tools",
}  # fmt: skip
#: What may be imported and is no package of another.
OURS = {"agentweb", "conversations", "manage", "tests", "tools"}
#: Written in halves, so that this file passes its own law.
MACHINE_PATHS = ("/" + "work/", "/" + "root/", "/" + "Users/", "bash" + "_jobs")
REGISTRY_HOSTS = (
    "pypi" + ".org", "python" + "hosted", "npm" + "js.", "debian" + ".org", "pypi" + ".python",
)  # fmt: skip
#: Elements that begin a line of their own on a page.
BLOCK = re.compile(
    r"<(?:address|article|aside|blockquote|body|dd|details|dialog|div|dl|dt|fieldset|figcaption"
    r"|figure|footer|form|h[1-6]|head|header|hr|html|legend|li|link|main|meta|nav|ol|optgroup"
    r"|option|p|pre|section|summary|table|tbody|td|tfoot|th|thead|title|tr|ul)\b"
)
BINARY = {".gz", ".png", ".ico", ".woff2", ".pdf", ".pptx", ".mo"}


@cache
def tracked() -> tuple[Path, ...]:
    """Give the files of the project: those git knows or would add, or all of a plain copy."""
    if not (ROOT / ".git").exists():
        tops = [top for top in ROOT.iterdir() if top.name in TOP_LEVEL]
        found_below = [path for top in tops for path in (top.rglob("*") if top.is_dir() else [top])]
        return tuple(one for one in found_below if one.is_file() and one.suffix != ".pyc")
    listing = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    found = subprocess.run(
        ["git", "-c", "safe.directory=*", *listing], check=True, cwd=ROOT, capture_output=True
    )
    names = found.stdout.decode().split("\0")
    return tuple(path for name in names if name and (path := ROOT / name).is_file())


def of_python(*, tests: bool) -> list[Path]:
    return [
        path
        for path in tracked()
        if path.suffix == ".py" and "migrations" not in path.parts and is_test(path) is tests
    ]


def of_templates() -> list[Path]:
    return [path for path in tracked() if path.relative_to(ROOT).parts[0] == "templates"]


def is_test(path: Path) -> bool:
    return path.relative_to(ROOT).parts[0] == "tests"


def lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def texts() -> Iterator[tuple[str, str]]:
    for path in tracked():
        if path.suffix not in BINARY:
            yield str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def test_the_top_level_holds_only_what_is_allowed() -> None:
    names = {path.relative_to(ROOT).parts[0] for path in tracked()}
    assert {name for name in names if not name.startswith(".")} <= TOP_LEVEL


@pytest.mark.parametrize("tests", [False, True], ids=["code", "tests"])
def test_no_file_is_long(tests: bool) -> None:
    sizes = {str(path.relative_to(ROOT)): lines(path) for path in of_python(tests=tests)}
    assert {name: size for name, size in sizes.items() if size > 400} == {}


def test_no_function_is_long() -> None:
    long = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"
        for path in of_python(tests=False)
        for node in ast.walk(tree(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or 0) - node.lineno + 1 > 40
    ]
    assert long == []


def test_templates_are_in_plain_form() -> None:
    """One tag a line, as the formatter leaves them; attributes and words stay beside their tag."""
    found = {path: path.read_text(encoding="utf-8").splitlines() for path in of_templates()}
    every = [line for listed in found.values() for line in listed]
    assert mean(map(len, every)) < 60
    places = [(path, n, line) for path, listed in found.items() for n, line in enumerate(listed, 1)]
    assert [f"{path.name}:{n}" for path, n, line in places if len(line) > 120] == []
    assert [f"{path.name}:{n}" for path, n, line in places if len(BLOCK.findall(line)) > 1] == []


def test_every_module_of_code_says_its_idea() -> None:
    silent = [
        str(path.relative_to(ROOT))
        for path in of_python(tests=False)
        if tree(path).body and not ast.get_docstring(tree(path))
    ]
    assert silent == []


@pytest.mark.parametrize("words", [MACHINE_PATHS, REGISTRY_HOSTS], ids=["paths", "registries"])
def test_no_file_names_a_machine_or_a_registry(words: tuple[str, ...]) -> None:
    found = [f"{name}: {word}" for name, text in texts() for word in words if word in text]
    assert found == []


@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-dev.lock"])
def test_a_lock_has_digests_and_no_address(lock: str) -> None:
    text = (ROOT / lock).read_text(encoding="utf-8")
    assert not re.search(r"://|--index|--find-links|^-e|@ ", text, re.MULTILINE)
    entries = re.split(r"\n(?=[a-z0-9])", text.strip())
    assert len(entries) >= len(read_pins(ROOT / lock))
    assert [entry.split()[0] for entry in entries if "--hash=sha256:" not in entry] == []


def test_the_locks_hold_what_pyproject_asks_for() -> None:
    assert find_complaints(ROOT) == []


@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-dev.lock"])
def test_a_lock_needs_nothing_beside_itself(lock: str) -> None:
    """So it is installed without a look at what its packages ask for."""
    pins = read_pins(ROOT / lock)
    todo, seen = [(name, "") for name in pins], set[tuple[str, str]]()
    while todo:
        name, extra = found = todo.pop()
        if found in seen or not _is_installed(name):
            continue
        seen.add(found)
        for one in map(Requirement, metadata.requires(name) or []):
            if one.marker is None or one.marker.evaluate({"extra": extra}):
                key = canonicalize_name(one.name)
                assert any(one.specifier.filter(pins.get(key, ()), prereleases=True)), (name, one)
                todo += [(key, each) for each in one.extras]
    assert len({name for name, _ in seen}) > len(pins) / 2


def _is_installed(name: str) -> bool:
    try:
        return bool(metadata.version(name))
    except metadata.PackageNotFoundError:
        return False


@cache
def declared() -> tuple[frozenset[str], frozenset[str]]:
    """Return the distributions that pyproject.toml declares: for the code, and with the tests'."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = project["project"]["optional-dependencies"].values()
    code = [*project["project"]["dependencies"], *chain.from_iterable(extras)]
    names = [
        frozenset(canonicalize_name(Requirement(one).name) for one in requirements)
        for requirements in (code, [*code, *project["dependency-groups"]["dev"]])
    ]
    return names[0], names[1]


#: Code that only those who develop the project run: what it imports may be of the dev group.
INSTRUMENTS = ("tests/", "agentweb/bench/", "agentweb/testing/")


_distributions = cache(packages_distributions)


def undeclared(name: str, module: str) -> set[str]:
    """Return the distributions of an imported module, unless one of them is declared."""
    top = module.partition(".")[0]
    if top in sys.stdlib_module_names or top in OURS:
        return set()
    providers = {canonicalize_name(one) for one in _distributions().get(top, [top])}
    # Where several put files into one package, the one that it is named for brings the package.
    providers = {canonicalize_name(top)} & providers or providers
    code, everything = declared()
    known = everything if name.startswith(INSTRUMENTS) else code
    return set() if providers & known else providers


#: Programs that run where what they import was installed for them.
ELSEWHERE = ("agentweb/bench/clients/programs", "agentweb/bench/rivals/programs")


def test_everything_that_is_imported_is_declared() -> None:
    missing = {
        f"{path.relative_to(ROOT)}: {module}"
        for path in (*of_python(tests=False), *of_python(tests=True))
        if not any(path.is_relative_to(ROOT / folder) for folder in ELSEWHERE)
        for node in ast.walk(tree(path))
        for module in modules_imported(node)
        if undeclared(str(path.relative_to(ROOT)), module)
    }
    assert missing == set()


def test_an_import_that_is_not_declared_is_found() -> None:
    assert undeclared("tests/a.py", "pytest") == set()
    assert undeclared("conversations/a.py", "pytest") == {"pytest"}
    assert undeclared("agentweb/edge/a.py", "websockets.client") == {"websockets"}
    assert undeclared("agentweb/bench/a.py", "websockets.client") == set()
    assert undeclared("tests/a.py", "there_is_no_such") == {"there-is-no-such"}
    assert undeclared("tools/a.py", "json.decoder") == undeclared("tools/a.py", "agentweb") == set()


def modules_imported(node: ast.AST) -> list[str]:
    match node:
        case ast.Import():
            return [alias.name for alias in node.names]
        case ast.ImportFrom(module=str(module), level=0):
            return [module]
    return []


def test_no_mocks() -> None:
    imported = {
        (str(path.relative_to(ROOT)), name)
        for path in of_python(tests=True)
        for node in ast.walk(tree(path))
        for name in names_imported(node)
    }
    assert {file for file, name in imported if "mock" in name} == set()


def names_imported(node: ast.AST) -> list[str]:
    match node:
        case ast.Import():
            return [alias.name for alias in node.names]
        case ast.ImportFrom():
            return [f"{node.module}.{alias.name}" for alias in node.names]
    return []


def test_no_group_is_repeated_possessively() -> None:
    """The first Pythons of 3.11 keep half of an iteration that fails; `(?>(?:...)*)` they can."""
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in of_python(tests=False)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if re.search(r"\)([*+?]|\{[0-9,]+\})\+", line)
    ]
    assert found == []


def test_a_process_that_runs_no_turns_does_without_the_sdk() -> None:
    """More than half of what is imported with it is the SDK's: seconds, and 50 megabytes."""
    imports = "agentweb.asgi, agentweb.urls, conversations.runtime.process, conversations.tasks"
    script = (
        f"import sys, django; django.setup(); import {imports};"
        " print({'anthropic', 'aiohttp', 'mcp', 'pypdf', 'docx', 'openpyxl'} & {*sys.modules})"
    )
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, check=True, cwd=ROOT, capture_output=True, text=True)
    assert done.stdout == "set()\n"


def test_every_skip_says_why() -> None:
    silent = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in of_python(tests=True)
        for node in ast.walk(tree(path))
        if isinstance(node, ast.expr) and is_silent_skip(node, tree(path))
    ]
    assert silent == []


def is_silent_skip(node: ast.expr, module: ast.Module) -> bool:
    """Tell whether this is a skip or an expected failure without a reason."""
    if isinstance(node, ast.Attribute) and ast.unparse(node) in {
        "pytest.mark.skip", "pytest.mark.skipif", "pytest.mark.xfail",
    }:  # fmt: skip
        calls = [call for call in ast.walk(module) if isinstance(call, ast.Call)]
        mine = [call for call in calls if call.func is node]
        return not any(word.arg == "reason" for call in mine for word in call.keywords)
    if isinstance(node, ast.Call) and ast.unparse(node.func) in {"pytest.skip", "pytest.xfail"}:
        return not (node.args or node.keywords)
    return False


@pytest.mark.parametrize("table", TABLES, ids=lambda table: f"{table.file}-{table.name}")
def test_the_tables_of_the_readmes_are_those_that_code_makes(table: Table) -> None:
    assert table.is_current(), "run `manage.py docs`"


def test_every_link_of_a_readme_leads_somewhere() -> None:
    broken = [
        f"{readme.relative_to(ROOT)}: {target}"
        for readme in tracked()
        if readme.suffix == ".md"
        for target in re.findall(r"\]\(([^)\s]+)\)", readme.read_text(encoding="utf-8"))
        if not is_there(readme, target)
    ]
    assert broken == []


def is_there(readme: Path, target: str) -> bool:
    """Tell whether a link's file is there, and the heading that its anchor names."""
    name, _, anchor = target.partition("#")
    path = (readme.parent / name).resolve() if name else readme
    if not anchor or not path.is_file():
        return path.exists()
    heads = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return anchor in {re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in heads}


def test_the_front_page_is_short() -> None:
    """Details stand in the README of the package they speak of."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    prose = [line for line in text.splitlines() if not line.startswith(("|", "!["))]
    assert len(text.splitlines()) <= 150
    assert [line for line in prose if len(line) > 120] == []
    special = text.partition("## What is special\n")[2].partition("##")[0]
    assert len(re.findall(r"^- ", special, re.MULTILINE)) == 8


def test_every_setting_says_what_it_means() -> None:
    rows = read_settings()
    assert [row.name for row in rows if not row.meaning.endswith(".")] == []
    assert len({row.name for row in rows}) == len(rows) > 100


def test_every_variable_that_the_settings_read_is_in_the_table() -> None:
    """A reader that the table does not know, or a computed name, would leave it out unseen."""
    text = (ROOT / "agentweb" / "settings.py").read_text(encoding="utf-8")
    found = re.findall(r'\benv\.\w+\(\s*"([A-Z_]+)"', text)
    assert set(found) == {row.name for row in read_settings()} - {
        PREFIX + name.upper() for name in list_defaults()
    }
    others = re.findall(r"\benv\.(\w+)\((?!\s*\"[A-Z])", text)
    assert set(others) <= {
        "database", "sqlite", "owner_database", "list_languages", "make_namespace",
        "describe_unwritable", "text", "typed",
    }  # fmt: skip


def test_commands_that_import_packages_of_development_bring_them() -> None:
    for words in (["test", "tests/turns"], ["docs"], ["docs", "--check"], ["bench", "context"]):
        assert manage.choose_lock(words) == manage.DEV
    for words in ([], ["serve"], ["demo"], ["verify", "docs"], ["emulator", "--bench"]):
        assert manage.choose_lock(words) == manage.RUNTIME


def test_every_command_says_what_it_does() -> None:
    rows = [line.strip("| ").split(" | ") for line in render_commands().splitlines()[2:]]
    assert [row for row in rows if len(row) != 2 or len(row[1]) < 12] == []


def test_every_package_says_what_it_holds() -> None:
    rows = [line.strip("| ").split(" | ") for line in render_layers().splitlines()[2:]]
    assert [row for row in rows if len(row) != 3 or len(row[2]) < 12] == []


def test_every_module_of_a_package_stands_in_its_readme() -> None:
    readmes = list((ROOT / "conversations").rglob("README.md"))
    assert len(readmes) > 25
    for readme in readmes:
        named = re.findall(
            r"`(?:[^`\s]*/)?([^`\s/]+?)(?:\.py)?`", readme.read_text(encoding="utf-8")
        )
        modules = {path.stem for path in readme.parent.glob("*.py")} - {"__init__"}
        assert modules <= set(named), readme.parent.name
