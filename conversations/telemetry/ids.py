"""Ids of log lines: request, user, conversation, turn and call.

They are kept in one context variable, so that they follow a request into its threads and a turn
into its tasks. Only ids are allowed: no names and no texts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType

#: In the order of the log lines.
NAMES = ("request", "user", "conversation", "turn", "call")
Id = str | int | None
_NONE: Mapping[str, Id] = MappingProxyType({})
_ids: ContextVar[Mapping[str, Id]] = ContextVar("agentweb_ids", default=_NONE)


def list_log_ids() -> dict[str, Id]:
    """Return the ids that are set here."""
    ids = _ids.get()
    return {name: ids[name] for name in NAMES if ids.get(name) is not None}


def add_log_ids(**ids: Id) -> None:
    """Add ids for the rest of this task; None removes one."""
    _ids.set({**_ids.get(), **_demand_known(ids)})


@contextmanager
def use_log_ids(**ids: Id) -> Iterator[None]:
    """Add ids to the log lines of a block."""
    token = _ids.set({**_ids.get(), **_demand_known(ids)})
    try:
        yield
    finally:
        _ids.reset(token)


def _demand_known(ids: dict[str, Id]) -> dict[str, Id]:
    if unknown := ids.keys() - set(NAMES):
        raise TypeError(f"no ids of log lines: {', '.join(sorted(unknown))}")
    return ids
