"""A worst-case object store: no rename, no locks, no listing, and sometimes unreachable."""

from __future__ import annotations

from io import BytesIO
from threading import Lock
from typing import Any

from django.core.files.base import File
from django.core.files.storage import Storage

#: The contents of every bucket, by name: stores are created anew in each process and thread.
BUCKETS: dict[str, dict[str, bytes]] = {}
_writing = Lock()


class Unreachable(Exception):
    """The store does not answer."""


class Bucket(Storage):
    """Put, get and delete; everything else is missing, and all fail while `is_down`."""

    def __init__(self, bucket: str) -> None:
        self.bucket = bucket
        self.is_down = False

    @property
    def objects(self) -> dict[str, bytes]:
        return BUCKETS.setdefault(self.bucket, {})

    def _demand(self) -> None:
        if self.is_down:
            raise Unreachable

    def _open(self, name: str, mode: str = "rb") -> File[bytes]:
        self._demand()
        if name not in self.objects:
            raise FileNotFoundError(name)
        return File(BytesIO(self.objects[name]), name)

    def _save(self, name: str, content: File[Any]) -> str:
        self._demand()
        data = content.read()
        with _writing:
            assert name not in self.objects, "an object is written once"
            self.objects[name] = data
        return name

    def exists(self, name: str) -> bool:
        return name in self.objects

    def delete(self, name: str) -> None:
        self._demand()
        self.objects.pop(name, None)
