"""Names of models as people read them, from their ids; an id of another form is its own name."""

from __future__ import annotations

import re

_ID = re.compile(r"claude-([a-z]+)-(\d{1,2}(?:-\d{1,2})?)(?:-\d{8})?")


def name_model(model: str) -> str:
    """Return the name of a model: claude-opus-4-8 is Opus 4.8, with a date or without."""
    found = _ID.fullmatch(model)
    return f"{found[1].capitalize()} {found[2].replace('-', '.')}" if found else model


def name_scope(scope: str) -> str:
    """Return the name of what a budget counts: a family, such as Opus, or a model."""
    return scope.capitalize() if scope.isalpha() else name_model(scope)
