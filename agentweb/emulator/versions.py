"""The versions of the API that a request can name, and what each of them takes.

A row says what changed in a version, with its source and date; a rule asks the profile and never
compares names. What a version does not change is the same in all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    name: str
    #: Whether requests have the fields `temperature`, `top_p` and `top_k`.
    has_sampling: bool
    #: Whether the assistant's messages may contain documents.
    takes_assistant_documents: bool
    #: Whether texts of the user may have citations.
    takes_user_citations: bool
    source: str
    date: str


_OLD = Version(
    name="2023-06-01",
    has_sampling=True,
    takes_assistant_documents=True,
    takes_user_citations=True,
    source="recorded exchanges of 2024 to 2026",
    date="2026-08-31",
)
_NEW = Version(
    name="2026-10-21",
    has_sampling=False,
    takes_assistant_documents=False,
    takes_user_citations=False,
    source="API versions, docs; live requests of others under both versions",
    date="2026-10-21",
)
VERSIONS: Mapping[str, Version] = {
    "2023-01-01": _OLD,
    "2023-06-01": _OLD,
    "2026-10-21": _NEW,
}
