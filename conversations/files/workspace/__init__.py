"""Workspaces: the index in the database, the bytes in a Django storage.

There is one way for every storage. An object is written once under a name nobody else has and is
never changed, moved or locked, so a store of objects is as good as a disk; which path is which
object is decided in the database, under the lock of its owner. Room is kept before the first byte
is written and no transaction is open while bytes travel: a row `pending` holds the place, then the
object is stored, then the row becomes `live` and the one it replaces `gone`. A crash between two
steps leaves a row that the next sweep takes with its object.

What is in the trash holds room only while nobody needs it: the oldest goes first.
"""

from __future__ import annotations

from conversations.files.workspace.arrange import (
    clear_workspace,
    delete_files,
    empty_file_trash,
    move_files,
    restore_files,
)
from conversations.files.workspace.index import get_quota
from conversations.files.workspace.objects import read_object
from conversations.files.workspace.sweep import sweep_workspaces
from conversations.files.workspace.user import UserWorkspace
from conversations.files.workspace.write import write_file

__all__ = [
    "UserWorkspace",
    "clear_workspace",
    "delete_files",
    "empty_file_trash",
    "get_quota",
    "move_files",
    "read_object",
    "restore_files",
    "sweep_workspaces",
    "write_file",
]
