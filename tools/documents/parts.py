"""Parts of a document and what can be wrong with it, for parent and child process."""

from __future__ import annotations

from typing import NamedTuple


class Part(NamedTuple):
    title: str
    text: str


class RefusedError(Exception):
    """The document may not or cannot be read; the text says why."""


class UnknownPartError(Exception):
    """There is no such page or sheet; the text says what there is."""
