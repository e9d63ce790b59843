"""The lock files hold what pyproject.toml asks for, checked without a network."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

_PIN = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^ ;\\]+)", re.MULTILINE)


def find_complaints(root: Path) -> list[str]:
    """List what the lock files lack, or have in a version outside the declared range."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    wanted = project["project"]["dependencies"]
    runtime, dev = read_pins(root / "requirements.lock"), read_pins(root / "requirements-dev.lock")
    found = _find_unmet(wanted, runtime, "requirements.lock")
    found += _find_unmet(
        [*wanted, *project["dependency-groups"]["dev"]], dev, "requirements-dev.lock"
    )
    differing = sorted(name for name, versions in runtime.items() if dev.get(name) != versions)
    return found + [f"{name} differs between the two locks" for name in differing]


def read_pins(lock: Path) -> dict[str, set[str]]:
    """Return the pinned versions of each package; markers may select between several."""
    versions: dict[str, set[str]] = {}
    for pin in _PIN.finditer(lock.read_text(encoding="utf-8")):
        versions.setdefault(canonicalize_name(pin["name"]), set()).add(pin["version"])
    return versions


def _find_unmet(wanted: list[str], locked: dict[str, set[str]], lock: str) -> list[str]:
    requirements = [Requirement(text) for text in wanted]
    return [
        f"{lock} has {sorted(locked.get(canonicalize_name(one.name), ()))} for {one}"
        for one in requirements
        if not any(one.specifier.filter(locked.get(canonicalize_name(one.name), ())))
    ]
