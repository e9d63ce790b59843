"""The software bill of materials: the locked packages as CycloneDX, made without a network.

Names, versions and digests come from the lock file, licences and who needs whom from what is
installed. The same lock gives the same bytes: no time, and a serial number derived from the lock.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from hashlib import sha256
from importlib import metadata
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from agentweb.lock_files import LOCK, Entry, read_entries

#: The version of CycloneDX's schema.
SPEC = "1.6"


def build_bill(root: Path, lock: str = LOCK) -> dict[str, Any]:
    """Return the bill of materials of a lock file of the project, as JSON values."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    entries = read_entries(root / lock)
    refs: dict[str, str] = {entry.name: _write_purl(entry) for entry in entries}
    own = f"{project['name']}@{project['version']}"
    needs = [{"ref": own, "dependsOn": _list_needed(project["dependencies"], refs)}]
    needs += [
        {"ref": ref, "dependsOn": _list_needed(_read_requirements(name), refs)}
        for name, ref in sorted(refs.items())
    ]
    return {
        "$schema": f"http://cyclonedx.org/schema/bom-{SPEC}.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": SPEC,
        "serialNumber": uuid5(NAMESPACE_URL, sha256((root / lock).read_bytes()).hexdigest()).urn,
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": own,
                "name": project["name"],
                "version": project["version"],
                "licenses": [{"license": {"id": project["license"]}}],
            }
        },
        "components": [_describe_component(entry) for entry in entries],
        "dependencies": needs,
    }


def _describe_component(entry: Entry) -> dict[str, Any]:
    """Return the component of an entry of a lock; its digests are those of all its files."""
    component = {
        "type": "library",
        "bom-ref": _write_purl(entry),
        "name": entry.name,
        "version": entry.version,
        "purl": _write_purl(entry),
        "hashes": [{"alg": "SHA-256", "content": one} for one in entry.digests],
    }
    licence = _read_licence(entry.name)
    return component | ({"licenses": [licence]} if licence else {})


def _write_purl(entry: Entry) -> str:
    return f"pkg:pypi/{entry.name}@{entry.version.replace('+', '%2B')}"


def _read_requirements(name: str) -> list[str]:
    try:
        return metadata.requires(name) or []
    except metadata.PackageNotFoundError:
        return []


def _list_needed(requirements: Iterable[str], refs: dict[str, str]) -> list[str]:
    """Return those of the locked packages that the requirements name, for this Python."""
    found = set()
    for text in requirements:
        try:
            one = Requirement(text)
        except InvalidRequirement:
            continue
        if one.marker is None or one.marker.evaluate({"extra": ""}):
            found.add(refs.get(canonicalize_name(one.name), ""))
    return sorted(found - {""})


def _read_licence(name: str) -> dict[str, Any] | None:
    """Return the licence that a package declares, if it is installed."""
    try:
        declared = metadata.metadata(name)
    except metadata.PackageNotFoundError:
        return None
    for expression in declared.get_all("License-Expression") or []:
        return {"expression": expression}
    kinds = (
        each.rpartition(" :: ")[2]
        for each in declared.get_all("Classifier") or []
        if each.startswith("License :: ")
    )
    named = next((kind for kind in kinds if kind != "OSI Approved"), "")
    return {"license": {"name": named}} if named else None
