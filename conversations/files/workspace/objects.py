"""Stored objects: written under a new name, read and compared with their digest, deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

from django.core.files.base import ContentFile
from django.core.files.storage import Storage, storages

from tools.framework.clean_text import quote
from tools.framework.errors import FileRefusedError
from tools.workspace.workspace import compute_digest

if TYPE_CHECKING:
    from conversations.models import WorkspaceFile

ALIAS = "workspace"


def find_storage() -> Storage:
    return storages[ALIAS]


def make_object_name(owner_id: int) -> str:
    return f"{owner_id}/{uuid4().hex}"


def put_object(name: str, data: bytes) -> None:
    kept = find_storage().save(name, ContentFile(data))
    if kept != name:
        find_storage().delete(kept)
        raise RuntimeError(f"the storage kept {name} under another name")


def read_object(file: WorkspaceFile) -> bytes:
    """Return the bytes of a file; raises FileNotFoundError, or FileRefusedError for other bytes."""
    with find_storage().open(file.object) as stored:
        data: bytes = stored.read(file.bytes + 1)
    if compute_digest(data) != file.digest:
        raise FileRefusedError(
            f"{quote(file.path)} was changed from outside or is damaged; it is not read."
        ).because("damaged", path=quote(file.path))
    return data


def drop_object(name: str) -> None:
    find_storage().delete(name)
