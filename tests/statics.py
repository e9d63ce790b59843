"""The static files, looked up once in a run and not by every client.

Django's test client builds all middleware anew for each client. That of the static files asks the
disk for every file there is, which takes longer than most pages that are then asked for.
"""

from __future__ import annotations

from typing import Any

from servestatic.middleware import ServeStaticMiddleware


def look_once() -> None:
    """Let later middleware have what the first one of the same settings found."""
    look = ServeStaticMiddleware.add_files_from_finders
    found: dict[tuple[object, ...], tuple[dict[str, Any], list[Any]]] = {}

    def recall(self: ServeStaticMiddleware) -> None:
        asked = (self.static_prefix, self.max_age, self.autorefresh)
        if asked not in found:
            look(self)
            found[asked] = dict(self.files), list(self.directories)
        files, directories = found[asked]
        self.files, self.directories = dict(files), list(directories)

    ServeStaticMiddleware.add_files_from_finders = recall
