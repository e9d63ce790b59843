"""One request as it was sent, rebuilt from the record."""

from __future__ import annotations

from dataclasses import dataclass

from conversations.context.errors import ContextError
from conversations.context.view import wire
from conversations.context.view.envelope import join_body
from conversations.context.view.view import View
from conversations.log.path import path, step
from conversations.models import ApiCall

#: What rows that were damaged raise when they are folded.
DAMAGE = (ContextError, LookupError, TypeError, ValueError, AttributeError)


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """A body with its digest and length, or why there is none."""

    body: str = ""
    digest: str = ""
    size: int = 0
    problem: str = ""


def rebuilt(call: ApiCall, view: View | None = None) -> Rebuilt:
    """Join the body of a call again from its envelope and the view at its tip.

    `view` is what the path folds to, where that is known already.
    """
    try:
        text = join_body(call.envelope.text, _messages(call) if view is None else view.body)
    except DAMAGE as error:
        return Rebuilt(problem=f"{type(error).__name__}: {error}")
    return Rebuilt(text, wire.digest(text), len(text.encode()))


def _messages(call: ApiCall) -> str:
    if call.messages is not None:
        return call.messages.text
    view = View()
    for entry in path(call.conversation, call.tip):
        view = step(view, entry)
    return view.body
