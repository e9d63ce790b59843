"""Errors of the context engine, each with a stable code and its data."""

from __future__ import annotations

from conversations.context.translation import gettext_noop, mark_recorded

_TOO_LONG = mark_recorded(
    gettext_noop("The chat is about %(count)s tokens and %(model)s takes at most %(most)s here.")
)


class ContextError(Exception):
    """Base of the engine's errors; `code` is stable, the text is for people."""

    code = "context"


class WireError(ContextError):
    """Text that should be JSON of a known shape is not."""

    code = "wire"


class EditError(ContextError):
    """An edit names something the view does not have: a bug, never ignored."""

    code = "edit"


class RuleError(ContextError):
    """A request would break a rule of the API; it is never sent."""

    code = "rule"

    def __init__(self, rule: str, where: str, detail: str) -> None:
        super().__init__(f"{rule} at {where}: {detail}")
        self.rule, self.where, self.detail = rule, where, detail


class WindowError(ContextError):
    """The request does not fit the model's window, and nothing more can be reduced."""

    code = "context_full"

    def __init__(self, tokens: int, limit: int, model: str) -> None:
        values = {"count": f"{tokens:,}", "model": model, "most": f"{limit:,}"}
        super().__init__(_TOO_LONG % values)
        self.tokens, self.limit, self.model = tokens, limit, model
