"""An import contract of our own: some packages import the standard library and named modules only.

import-linter's `forbidden` contract lists what may not be imported, so a new package passes. Here
everything is forbidden that is not listed.
"""

from __future__ import annotations

import sys
from typing import Any

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output


class ClosedContract(Contract):
    """`source_modules` may import only the standard library, each other and `allowed_modules`."""

    source_modules = fields.ListField(subfield=fields.StringField())
    allowed_modules = fields.ListField(subfield=fields.StringField(), required=False, default=[])

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        sources: Any = self.source_modules
        allowed: Any = self.allowed_modules
        inside = {one for name in sources for one in (name, *graph.find_descendants(name))}
        packages = tuple(f"{name}." for name in (*sources, *allowed))
        wrong = sorted(
            (importer, imported)
            for importer in inside
            for imported in graph.find_modules_directly_imported_by(importer)
            if imported.partition(".")[0] not in sys.stdlib_module_names
            and not f"{imported}.".startswith(packages)
        )
        return ContractCheck(kept=not wrong, metadata={"wrong": wrong})

    def render_broken_contract(self, check: ContractCheck) -> None:
        for importer, imported in check.metadata["wrong"]:
            output.print_error(f"{importer} is not allowed to import {imported}")
