"""The workspace of a chat: the person's files, and those attached to the chat in a folder.

Attached files are read there like others, page by page or sheet by sheet, and never changed.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from conversations.files.attached_bytes import decode_data
from conversations.files.workspace.user import UserWorkspace, with_connection
from conversations.models import Attachment
from tools.framework.clean_text import quote
from tools.framework.errors import FileMissingError, FileRefusedError, PathRefusedError
from tools.workspace.paths import split_path
from tools.workspace.workspace import Entry, normalize_path

#: The folder in which a chat's attached files are.
FOLDER = "attached"


@dataclass(frozen=True, slots=True)
class ChatWorkspace(UserWorkspace):
    """The Workspace port with the files of one conversation."""

    conversation_id: int

    @with_connection
    def entries(self, path: str = "") -> list[Entry]:
        folder = "/".join(split_path(path))
        found = {
            key: Entry(key, row.size, row.created_at)
            for key, row in self._map_attached(folder).items()
            if not folder or key == folder or key.startswith(f"{folder}/")
        }
        # A folder of the workspace by that name is shown too.
        with suppress(*([FileMissingError] if found else [])):
            own = UserWorkspace.entries(self, path)
            found = {entry.path: entry for entry in own} | found
        return [found[key] for key in sorted(found)]

    @with_connection
    def read(self, path: str) -> bytes:
        row = self._map_attached(path).get(normalize_path(path))
        return UserWorkspace.read(self, path) if row is None else decode_data(row)

    @with_connection
    def write(self, path: str, data: bytes, *, key: str = "", over: str | None = None) -> bool:
        self._demand_own(path)
        return UserWorkspace.write(self, path, data, key=key, over=over)

    @with_connection
    def move(self, path: str, to: str, *, key: str = "") -> int:
        self._demand_own(path, to)
        return UserWorkspace.move(self, path, to, key=key)

    @with_connection
    def delete(self, path: str, *, key: str = "") -> None:
        self._demand_own(path)
        UserWorkspace.delete(self, path, key=key)

    def _demand_own(self, *paths: str) -> None:
        for path in paths:
            if "/".join(split_path(path)) in self._map_attached(path):
                raise FileRefusedError(
                    f"{quote(path)} is attached to this chat and stays as it is; use another path."
                )

    def _map_attached(self, path: str) -> dict[str, Attachment]:
        """Return the attached files by path, the newest of a name; none for a path elsewhere."""
        if (split_path(path) or (FOLDER,))[0] != FOLDER:
            return {}
        rows = Attachment.objects.filter(conversation=self.conversation_id).order_by("pk")
        found = {}
        for row in rows:
            # A name that is no path cannot be asked for either.
            with suppress(PathRefusedError):
                found[normalize_path(f"{FOLDER}/{row.name}")] = row
        return found
