"""A workspace in memory: the product's rules over an index in a dict."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from tools.framework.errors import FileChangedError, FileMissingError, FileRefusedError
from tools.workspace.paths import split_path
from tools.workspace.workspace import (
    Entry,
    Quota,
    check_placement,
    compute_digest,
    list_below,
    missing_error,
    normalize_path,
    plan_move,
)


@dataclass
class MemoryWorkspace:
    quota: Quota = field(default_factory=Quota)
    files: dict[str, bytes] = field(default_factory=dict)
    trash: dict[str, bytes] = field(default_factory=dict)
    #: which call changed a path last
    done: dict[str, str] = field(default_factory=dict)
    #: when a path was changed, where that matters
    changed: dict[str, datetime] = field(default_factory=dict)
    #: what another one writes right before our next write
    meanwhile: list[tuple[str, bytes]] = field(default_factory=list)

    @property
    def held(self) -> dict[str, int]:
        return {path: len(data) for path, data in self.files.items()}

    def entries(self, path: str = "") -> list[Entry]:
        folder = "/".join(split_path(path))
        found = list_below(self.held, folder) or [each for each in self.files if each == folder]
        if folder and not found:
            raise FileMissingError("There is no such folder.")
        return [Entry(each, len(self.files[each]), self.changed.get(each)) for each in found]

    def read(self, path: str) -> bytes:
        path = normalize_path(path)
        if list_below(self.held, path):
            raise FileRefusedError("This is a folder.")
        if path not in self.files:
            raise missing_error(path)
        return self.files[path]

    def write(self, path: str, data: bytes, *, key: str = "", over: str | None = None) -> bool:
        path = normalize_path(path)
        if self.meanwhile:
            other, text = self.meanwhile.pop(0)
            self.files[other] = text
        if over is not None and compute_digest(self.files.get(path, b"none")) != over:
            raise FileChangedError("It was changed meanwhile.")
        check_placement(self.held, path, len(data), self.quota)
        is_new = path not in self.files
        self.files[path], self.done[path] = data, key
        return is_new

    def move(self, path: str, to: str, *, key: str = "") -> int:
        if key and key in self.done.values():
            return 1
        new = plan_move(self.held, path, to)
        moved = {new[old]: self.files.pop(old) for old in new}
        self.files |= moved
        self.done |= dict.fromkeys(moved, key)
        return len(new)

    def delete(self, path: str, *, key: str = "") -> None:
        path = normalize_path(path)
        if key and self.done.get(f"trash:{path}") == key:
            return
        if path not in self.files:
            raise missing_error(path)
        self.trash[path] = self.files.pop(path)
        self.done[f"trash:{path}"] = key

    def is_done(self, path: str, key: str) -> bool:
        return self.done.get(normalize_path(path)) == key
