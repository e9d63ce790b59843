"""Workspaces: the index in the database, the bytes in a Django storage.

Any storage works. An object is written once under a unique name and is never changed, moved or
locked, so an object store serves as well as a disk. The database maps paths to objects, under the
lock of the owner. Room is reserved before the first byte is written, and no transaction is open
during the transfer: a row `pending` reserves the room, then the object is stored, then the row
becomes `live` and the row it replaces `gone`. A crash between two steps leaves a row that the next
sweep deletes with its object.

Files in the trash are discarded when their room is needed, the oldest first.
"""

from __future__ import annotations

from conversations.files.workspace.arrange import (
    clear_workspace,
    delete_files,
    empty_file_trash,
    move_files,
    restore_files,
)
from conversations.files.workspace.attached import ChatWorkspace
from conversations.files.workspace.index import read_quota
from conversations.files.workspace.objects import read_object
from conversations.files.workspace.sweep import sweep_workspaces
from conversations.files.workspace.user import UserWorkspace
from conversations.files.workspace.write import write_file

__all__ = [
    "ChatWorkspace",
    "UserWorkspace",
    "clear_workspace",
    "delete_files",
    "empty_file_trash",
    "move_files",
    "read_object",
    "read_quota",
    "restore_files",
    "sweep_workspaces",
    "write_file",
]
