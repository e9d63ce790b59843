"""The generated tables of READMEs: packages, roles, settings, commands.

`manage.py docs` writes them between their markers; `manage.py docs --check` and a test compare.
Packages are the layers of the import contract with the first sentence of each docstring,
settings are the `#:` comments above the lines that read them, commands come from their parsers.
"""

from __future__ import annotations

import argparse
import ast
import re
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import get_commands, load_command_class

from agentweb.marked_text import read_marked, replace_marked
from conversations.accounts.roles import render_roles
from conversations.conf import PREFIX, Conf, list_defaults
from conversations.context.policy.policy import POLICY_WORDS

ROOT = Path(settings.BASE_DIR)
#: Sources of settings: those of the project, of the application and of the context policy.
PROJECT_SETTINGS = ROOT / "agentweb/settings.py"
CONF, POLICY = ROOT / "conversations/conf.py", ROOT / "conversations/context/policy/policy.py"
#: The sentence at the end of a comment that states a default which is not a literal begins so.
_DEFAULT = "Default: "
#: Packages whose commands are documented, in this order; and Django's commands without a row.
_OURS, _OF_DJANGO = ("agentweb", "conversations"), frozenset({"migrate"})
#: Options that Django gives every command.
_DJANGO = frozenset({
    "help", "version", "verbosity", "settings", "pythonpath", "traceback", "no_color",
    "force_color", "skip_checks",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Setting:
    """One row of the table: a setting's name, its default as text, its meaning."""

    name: str
    default: str
    meaning: str


@dataclass(frozen=True, slots=True)
class Table:
    """A generated table: the README, the name of its marks, and the function that renders it."""

    file: str
    name: str
    render: Callable[[], str]

    @property
    def path(self) -> Path:
        return ROOT / self.file

    def is_current(self) -> bool:
        return read_marked(self.path, self.name) == self.render()

    def write(self) -> bool:
        """Write the table; return False when the README has no marks for it."""
        return replace_marked(self.path, self.name, self.render())


def render_layers() -> str:
    """Return one row for each package, by the layers of the contract, top to bottom."""
    lines = ["| line | package | what it holds |", "|---:|---|---|"]
    for number, layer in enumerate(read_layers("conversations"), 1):
        lines += [f"| {number} | {_link(name)} | {_summarize(name)} |" for name in layer]
    return "\n".join(lines)


def render_packages() -> str:
    """Return one row for each package with a README, top to bottom, for the project's README."""
    lines = ["| package | what it holds |", "|---|---|"]
    lines += [
        f"| [`{name}`](conversations/{name}/README.md) | {_summarize(name)} |"
        for layer in read_layers("conversations")
        for name in layer
        if (ROOT / "conversations" / name / "README.md").exists()
    ]
    return "\n".join(lines)


def read_layers(container: str) -> list[list[str]]:
    """Return the lines of a container's closed layers contract, each as its modules."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    for contract in project["tool"]["importlinter"]["contracts"]:
        if contract.get("containers") == [container]:
            return [[name.strip() for name in line.split("|")] for line in contract["layers"]]
    raise LookupError(f"pyproject.toml has no layers contract for {container}")


def _link(name: str) -> str:
    readme = ROOT / "conversations" / name / "README.md"
    return f"[`{name}`]({name}/README.md)" if readme.exists() else f"`{name}`"


def _summarize(name: str) -> str:
    """Return the first sentence of a package's docstring."""
    path = ROOT / "conversations" / name
    source = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    text = ast.get_docstring(ast.parse(source.read_text(encoding="utf-8"))) or ""
    paragraph = " ".join(text.partition("\n\n")[0].split())
    return _cell(re.split(r"(?<=[.!])\s(?=[A-Z])", paragraph, maxsplit=1)[0])


def render_settings() -> str:
    lines = ["| setting | default | meaning |", "|---|---|---|"]
    for one in read_settings():
        default = one.default if " " in one.default or not one.default else f"`{one.default}`"
        lines.append(f"| `{one.name}` | {default} | {_cell(one.meaning)} |")
    return "\n".join(lines)


def read_settings() -> list[Setting]:
    """Return every setting: the project's, the application's, the context policy's."""
    return [*_project_settings(), *_application_settings()]


def _project_settings() -> Iterator[Setting]:
    """Read `NAME = env.kind("VARIABLE", default)` with its comment from the settings module."""
    source = PROJECT_SETTINGS.read_text(encoding="utf-8")
    for node in ast.parse(source).body:
        for call in ast.walk(node):
            if isinstance(call, ast.Call) and (name := _variable(call)):
                meaning, default = _comment_above(source, node), _literal_default(call)
                meaning, _, words = meaning.partition(_DEFAULT)
                yield Setting(name, words.removesuffix(".") or default, meaning.rstrip())


def _variable(call: ast.Call) -> str:
    """Return the variable that a call of `env` reads by a literal name, or ""."""
    match call:
        case ast.Call(
            func=ast.Attribute(value=ast.Name(id="env")), args=[ast.Constant(value=str(name)), *_]
        ):
            return name
    return ""


def _literal_default(call: ast.Call) -> str:
    match call:
        case ast.Call(func=ast.Attribute(attr="flag"), args=[_]):
            return "false"
        case ast.Call(func=ast.Attribute(attr="number"), args=[_]):
            return "0"
        case ast.Call(args=[_, ast.Constant(value=value)]):
            return show_default(value)
        case ast.Call(func=ast.Attribute(attr="choice"), args=[_, ast.Tuple(elts=[first, *_])]):
            return show_default(ast.literal_eval(first))
    return ""


def _application_settings() -> Iterator[Setting]:
    comments = _field_comments(POLICY, "Policy") | _field_comments(CONF, Conf.__name__)
    for name, value in list_defaults().items():
        # A policy number has a text for its form; a comment, where there is one, is longer.
        meaning = comments[name] or POLICY_WORDS[name]
        yield Setting(PREFIX + name.upper(), show_default(value), meaning)


def _field_comments(file: Path, name: str) -> dict[str, str]:
    """Return the comment of each annotated field of a class."""
    source = file.read_text(encoding="utf-8")
    [found] = (
        node
        for node in ast.parse(source).body
        if isinstance(node, ast.ClassDef) and node.name == name
    )
    return {
        field.target.id: _comment_above(source, field)
        for field in found.body
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
    }


def _comment_above(source: str, node: ast.stmt) -> str:
    """Return the `#:` lines directly above a statement, as one line; "" where there are none."""
    found: list[str] = []
    for line in reversed(source.splitlines()[: node.lineno - 1]):
        if not line.strip().startswith("#:"):
            break
        found.insert(0, line.strip()[2:].strip())
    return " ".join(found)


def show_default(value: Any) -> str:
    """Format a default as it would be written in the environment."""
    match value:
        case bool():
            return "true" if value else "false"
        case tuple():
            return ",".join(value)
    return str(value)


def render_commands() -> str:
    """Return one row for each command, or for each action of those that have several."""
    lines = ["| command | what it does |", "|---|---|"]
    places = get_commands()
    for app in _OURS:
        for name in sorted(set(places) - _OF_DJANGO):
            if places[name] != app:
                continue
            command: Any = load_command_class(app, name)
            parser = command.create_parser("manage.py", name)
            lines += [
                f"| `{_cell(usage)}` | {_cell(words)} |" for usage, words in _rows(name, parser)
            ]
    return "\n".join(lines)


def _rows(name: str, parser: argparse.ArgumentParser) -> Iterator[tuple[str, str]]:
    actions = [one for one in parser._actions if isinstance(one, argparse._SubParsersAction)]
    if not any(one.required for one in actions):
        yield _usage(name, parser), " ".join((parser.description or "").split())
    for action in actions:
        helps = {one.dest: one.help or "" for one in action._choices_actions}
        for key, child in action.choices.items():
            yield _usage(f"{name} {key}", child), helps.get(key, "")


def _usage(name: str, parser: argparse.ArgumentParser) -> str:
    """Return a command with its own arguments, without those that Django gives to all."""
    words = [f"manage.py {name}"]
    for action in parser._actions:
        if action.dest in _DJANGO or action.help == argparse.SUPPRESS:
            continue
        if not isinstance(action, argparse._SubParsersAction):
            words.append(_argument(action))
    return " ".join(words)


def _argument(action: argparse.Action) -> str:
    """Format one argument as in a usage line."""
    choices = "|".join(map(str, action.choices)) if action.choices else ""
    value = action.metavar or choices or action.dest.upper()
    value = " ".join(value) if isinstance(value, tuple) else str(value)
    if action.nargs in ("*", "+"):
        value = f"{value}..."
    if not action.option_strings:
        return f"[{value}]" if action.nargs in ("?", "*") else value
    word = action.option_strings[-1]
    if action.nargs != 0:
        word += f" [{value}]" if action.nargs in ("?", "*") else f" {value}"
    return word if action.required else f"[{word}]"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


TABLES = (
    Table("README.md", "packages", render_packages),
    Table("conversations/README.md", "layers", render_layers),
    Table("conversations/accounts/README.md", "roles", render_roles),
    Table("agentweb/README.md", "settings", render_settings),
    Table("agentweb/README.md", "commands", render_commands),
)
