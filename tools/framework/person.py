"""For whom the code that runs here works: a person's id, or "" for the site itself."""

from __future__ import annotations

from contextvars import ContextVar

current_person: ContextVar[str] = ContextVar("current_person", default="")
