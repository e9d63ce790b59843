"""Rebuild one request as it was sent, from the record."""

from __future__ import annotations

from dataclasses import dataclass

from conversations.context.view import wire
from conversations.context.view.envelope import join_body, read_lifetime
from conversations.context.view.view import View
from conversations.log.findings import DAMAGE, reraise_outage
from conversations.log.path import fold_path, read_path
from conversations.models import ApiCall


@dataclass(frozen=True, slots=True)
class RebuiltRequest:
    """A body with its digest and length, or the reason why there is none."""

    body: str = ""
    digest: str = ""
    size: int = 0
    problem: str = ""


def rebuild_request(call: ApiCall, view: View | None = None) -> RebuiltRequest:
    """Join the body of a call again from its envelope and the view at its tip.

    Pass `view` if the path is folded already.
    """
    try:
        text = join_body(call.envelope.text, _read_messages(call, view))
    except DAMAGE as error:
        reraise_outage(error)
        return RebuiltRequest(problem=f"{type(error).__name__}: {error}")
    return RebuiltRequest(text, wire.digest(text), len(text.encode()))


def _read_messages(call: ApiCall, view: View | None) -> str:
    if view is None:
        if call.messages is not None:
            return call.messages.text
        view = fold_path(read_path(call.conversation, call.tip))
    return view.join(read_lifetime(call.envelope.text))
