"""Shared by the client programs: runs checks concurrently and prints one JSON object at the end."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable

#: A model that still accepts a forced tool and a temperature, as clients send them.
MODEL = "claude-sonnet-4-6"
_found: list[dict[str, str]] = []


def check(name: str) -> Callable[[Callable[[], None]], None]:
    """Run the function now; its error becomes the result of the check."""

    def run(function: Callable[[], None]) -> None:
        try:
            function()
        except Exception as error:
            _found.append({"check": name, "error": f"{type(error).__name__}: {error}"[:300]})
        else:
            _found.append({"check": name, "error": ""})

    return run


def finish() -> None:
    """Print the results as the last line."""
    sys.stdout.write("\n" + json.dumps(_found) + "\n")
