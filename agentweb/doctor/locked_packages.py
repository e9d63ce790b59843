"""The lock files hold what pyproject.toml asks for, checked without a network."""

from __future__ import annotations

import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from agentweb.lock_files import LOCK, read_pins

_DEV_LOCK = "requirements-dev.lock"


def find_complaints(root: Path) -> list[str]:
    """List what the lock files lack, or have in a version outside the declared range."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    wanted = project["project"]["dependencies"]
    runtime, dev = read_pins(root / LOCK), read_pins(root / _DEV_LOCK)
    found = _find_unmet(wanted, runtime, LOCK)
    found += _find_unmet([*wanted, *project["dependency-groups"]["dev"]], dev, _DEV_LOCK)
    differing = sorted(name for name, versions in runtime.items() if dev.get(name) != versions)
    return found + [f"{name} differs between the two locks" for name in differing]


def _find_unmet(wanted: list[str], locked: dict[str, set[str]], lock: str) -> list[str]:
    requirements = [Requirement(text) for text in wanted]
    return [
        f"{lock} has {sorted(locked.get(canonicalize_name(one.name), ()))} for {one}"
        for one in requirements
        if not any(one.specifier.filter(locked.get(canonicalize_name(one.name), ())))
    ]
